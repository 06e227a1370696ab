// Packed calls in graphs, and often, on the emulated GPU: tests/gpu/packed_test.cpp in small.
#include "tests/gpu/packed_gpu_call.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

constexpr PackedShape kShape = {.batch = 5,
                                .num_q_heads = 2,
                                .num_kv_heads = 1,
                                .total_q = 300,
                                .total_kv = 500,
                                .max_kv_len = 260};

}  // namespace

TEST_CASE("packed on a GPU: calls captured once replay with other sets of lengths") {
  for (const Spec& spec : packed_gpu_specs()) require_equal_replays(spec, kShape, 8);
}

TEST_CASE("packed on a GPU: repeats give the same bits, whatever the order of threads") {
  for (const Spec& spec : packed_gpu_specs()) require_equal_repeats(spec, kShape, 8);
}
