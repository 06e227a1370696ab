// Packed calls on the emulated GPU, against dense calls on the CPU: the portable kernel in float32
// and on tensor cores, and Hopper's.
#include "tests/support/packed_batch.hpp"

namespace tilewright {
using namespace packed_calls;

namespace {

// P in f16 is off by 2^-11 of each weight, and so is each element of out, of at most 1.5, and its
// rounding by as much again.
constexpr float kF16Tolerance = 2 * 1.5f * 0x1p-11f;

void check(Spec spec, const Batch& batch) {
  spec.dtype = GENERATE(f32, f16);
  if (spec.dtype == f16)
    spec.tactic =
        GENERATE(values<std::optional<TacticSpec>>({std::nullopt, TacticSpec{.name = "portable"}}));
  CAPTURE(to_string(spec.dtype), spec.tactic.has_value(), spec.mask_mod);
  Batch made = {
      .lengths = batch.lengths, .heads = batch.heads, .kv_heads = batch.kv_heads, .dim = batch.dim};
  made.make();
  check_against_dense(spec, made, spec.dtype == f16 ? kF16Tolerance : 2e-5f, Device::parse("cuda"));
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
  const char* const mask = GENERATE("q_idx >= kv_idx && (q_idx - kv_idx) < 100 + 64 * h",
                                    "(q_idx * 7 + kv_idx * 13) % 5 != 2");
  check(packed_spec(32, mask, true),
        {.lengths = {{200, 300}, {33, 400}}, .heads = 2, .kv_heads = 1, .dim = 32});
}

}  // namespace tilewright
