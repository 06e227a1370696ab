#include "runtime/call/resident_items.hpp"

#include <cstdlib>

#include "base/error.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

constexpr ResidentLaunch kH200 = {.multiprocessors = 132, .kv_rows = 256};

std::int64_t heads_of(std::int64_t batch, std::int64_t num_q_heads, std::int64_t num_kv_heads,
                      std::int64_t max_kv_len = 256) {
  return resident_heads(kH200, {.batch = batch,
                                .num_q_heads = num_q_heads,
                                .num_kv_heads = num_kv_heads,
                                .total_q = batch * 256,
                                .total_kv = batch * 256,
                                .max_kv_len = max_kv_len});
}

}  // namespace

TEST_CASE("resident items: whole groups of heads where these fill the machine, else shares") {
  CHECK(heads_of(64, 32, 8) == 4);  // 512 items in 4 rounds of 132
  CHECK(heads_of(256, 32, 8) == 4);
  CHECK(heads_of(17, 32, 8) == 1);  // 136 items would take two rounds, and so would 272 three
  CHECK(heads_of(16, 32, 8) == 4);  // 128
  CHECK(heads_of(16, 8, 8) == 1);
}

TEST_CASE("resident items: calls of few sequences or of longer ones have none") {
  CHECK(heads_of(2, 32, 8) == 0);
  CHECK(heads_of(64, 32, 8, 257) == 0);
  CHECK(heads_of(0, 32, 8) == 0);
  CHECK(resident_heads({.multiprocessors = 132}, {.batch = 64,
                                                  .num_q_heads = 32,
                                                  .num_kv_heads = 8,
                                                  .total_q = 64,
                                                  .total_kv = 64,
                                                  .max_kv_len = 64}) == 0);
}

TEST_CASE("resident items: TILEWRIGHT_RESIDENT decides where columns fit") {
  ::setenv("TILEWRIGHT_RESIDENT", "1", 1);
  CHECK(heads_of(2, 32, 8) == 4);
  CHECK(heads_of(2, 32, 8, 257) == 0);
  ::setenv("TILEWRIGHT_RESIDENT", "0", 1);
  CHECK(heads_of(64, 32, 8) == 0);
  ::setenv("TILEWRIGHT_RESIDENT", "perhaps", 1);
  CHECK_THROWS_AS(heads_of(64, 32, 8), Error);
  ::unsetenv("TILEWRIGHT_RESIDENT");
}
