// A sequence gives the same bits alone and among others, on the CPU.
#include "tests/support/batch_invariance.hpp"

namespace tilewright {
using namespace packed_calls;

TEST_CASE("batch invariant: a sequence has the same bits whatever else the call has") {
  const DType dtype = GENERATE(f32, bf16);
  const char* const mask =
      GENERATE("", "q_idx >= kv_idx", "q_idx >= kv_idx && q_idx - kv_idx < 100 + 50 * h",
               "(q_idx * 7 + kv_idx * 13) % 5 != 2");
  const Spec spec{
      .dtype = dtype, .head_dim = 64, .score_mod = "30 * tanh(score / 30)", .mask_mod = mask};
  for (const Lengths one : {Lengths{1, 333}, Lengths{70, 150}, Lengths{260, 260}}) {
    check_batch_invariance(spec, Device::cpu(), one);
  }
}

TEST_CASE("batch invariant: it costs a plan no memory, and is for packed calls") {
  const Attention attention(packed_spec(32, "q_idx >= kv_idx", false), {.device = Device::cpu()});
  const PackedShape shape = {.batch = 3, .total_q = 400, .total_kv = 900};
  CHECK(attention.workspace_size(shape, true) == attention.workspace_size(shape));
  CHECK(attention.workspace_size(shape, false) == attention.workspace_size(shape));
}

}  // namespace tilewright
