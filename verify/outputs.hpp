#pragma once

#include <optional>
#include <string>

#include "../generator/spec.hpp"
#include "../runtime/attention.hpp"
#include "../runtime/block_mask.hpp"
#include "../runtime/shape.hpp"
#include "attention_values.hpp"
#include "guarded_tensor.hpp"
#include "problem.hpp"

namespace tilewright::verify {

/// The memory that a call of a spec writes to, on the host: poisoned and guarded (GuardedTensor).
class Outputs {
 public:
  Outputs(const Spec& spec, const Shape& shape, const Placement& placement = {});

  /// The problem's inputs with these outputs.
  ForwardTensors tensors(const Problem& problem) const;
  /// What was written, out in the spec's layout.
  AttentionValues values(const Spec& spec) const;
  /// "memory around out was written to: 3 elements behind its end"; empty where it was not.
  std::optional<std::string> damage() const;

 private:
  GuardedTensor out_;
  std::optional<GuardedTensor> lse_;
};

/// Milliseconds of a call.
struct CallTimes {
  double mask = 0;
  double forward = 0;
};

/// Runs a call whose tensors lie on the host, on the Attention's device, and waits for it.
/// @return the block mask, where the spec has a mask_mod
/// @throws Error as Attention::block_mask and Attention::forward
std::optional<BlockMask> run_call(const Attention& attention, const Problem& problem,
                                  const Outputs& outputs, CallTimes* times = nullptr);

/// The same for whom only the result matters.
AttentionValues run_call(const Attention& attention, const Problem& problem);

}  // namespace tilewright::verify
