// Packed calls on the emulated GPU, against dense calls on the CPU.
#include "tests/support/packed_batch.hpp"

namespace tilewright {
using namespace packed_calls;

namespace {

void check(const Spec& spec, Batch batch) {
  batch.make();
  check_against_dense(spec, batch, 2e-5f, Device::parse("cuda"));
}

}  // namespace

TEST_CASE("packed on a GPU: without snippets") {
  check(packed_spec(64, "", true), {.lengths = {{128, 128}, {57, 57}, {1, 1}, {200, 200}},
                                    .heads = 2,
                                    .kv_heads = 2,
                                    .dim = 64});
}

TEST_CASE("packed on a GPU: causal, bottom right, rows and sequences without columns") {
  check(packed_spec(32, "q_idx >= kv_idx", true),
        {.lengths = {{1, 332}, {5, 18}, {129, 263}, {0, 9}, {7, 3}, {64, 0}, {140, 30}},
         .heads = 4,
         .kv_heads = 2,
         .dim = 32});
}

TEST_CASE("packed on a GPU: more kv tiles than the ring of tiles has room for") {
  check(packed_spec(16, "q_idx >= kv_idx && (q_idx - kv_idx) % 1500 < 700", false),
        {.lengths = {{3, 5000}, {40, 2500}}, .heads = 1, .kv_heads = 1, .dim = 16});
}

TEST_CASE("packed on a GPU: masks that tell heads apart, and one that no interval decides") {
  check(packed_spec(32, "q_idx >= kv_idx && (q_idx - kv_idx) < 100 + 64 * h", true),
        {.lengths = {{200, 300}, {33, 400}}, .heads = 2, .kv_heads = 1, .dim = 32});
  check(packed_spec(32, "(q_idx * 7 + kv_idx * 13) % 5 != 2", false),
        {.lengths = {{150, 150}, {10, 300}}, .heads = 1, .kv_heads = 1, .dim = 32});
}

}  // namespace tilewright
