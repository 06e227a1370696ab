// A sequence gives the same bits alone and among others, on the emulated GPU: the portable kernel
// in float32 and on tensor cores, and Hopper's.
#include "tests/support/batch_invariance.hpp"

namespace tilewright {
using namespace packed_calls;

TEST_CASE("batch invariant on a GPU: a sequence has the same bits whatever else the call has") {
  const char* const mask = GENERATE("", "q_idx >= kv_idx && q_idx - kv_idx < 100 + 50 * h");
  Spec spec{.dtype = GENERATE(f32, f16), .head_dim = 64, .mask_mod = mask};
  if (spec.dtype == f16) {
    spec.tactic =
        GENERATE(values<std::optional<TacticSpec>>({std::nullopt, TacticSpec{.name = "portable"}}));
  }
  check_batch_invariance(spec, Device::parse("cuda"), {1, 150});
  check_batch_invariance(spec, Device::parse("cuda"), {140, 200});
}

}  // namespace tilewright
