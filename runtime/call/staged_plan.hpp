#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "../api/attention.hpp"

namespace tilewright::cuda {
class DeviceTensor;
}

namespace tilewright {

/// How a plan is made, of PlanOptions.
struct PlanWishes {
  const BlockMask* positions = nullptr;  ///< must outlive the StagedPlan
  bool batch_invariant = false;
  std::int64_t splits = 0;
};

/// The sequences of a packed call, whose tensors lie on the host, and the workspace of its plan,
/// for an Attention on any device. What StagedCall is for a call's other tensors. The plan of a
/// spec with gradients serves backward.
class StagedPlan {
 public:
  /// What becomes of a plan whose report names a value.
  enum class OnFaults {
    refuse,
    take_unsorted,  ///< buffers that break a promise of the spec; all else is refused
    clamp
  };

  /// Makes room for the plan, copies the sequences' tensors to where the device can reach them, and
  /// plans.
  /// @param sequences must outlive this where the device is a CPU
  /// @throws Error as Attention::plan; with code tensor where the plan's report names a value and
  ///         is refused: then its text is the message
  StagedPlan(const Attention& attention, const PackedShape& shape, const Sequences& sequences,
             const Bindings& bindings, OnFaults on_faults = OnFaults::refuse,
             const PlanWishes& wishes = {});
  ~StagedPlan();

  const Plan& plan() const { return *plan_; }

  /// Plans other sequences of the same shape in the same workspace, whatever it holds.
  /// @throws Error as the constructor
  void plan_again(const Attention& attention, const Sequences& sequences, const Bindings& bindings);

  /// Waits, and says what was written outside of the workspace, or to a sequence's tensor of a GPU.
  std::optional<std::string> damage() const;

 private:
  TensorView stage(const std::string& name, const TensorView& host);
  Sequences stage(const Sequences& host);
  TensorView make_workspace(std::int64_t bytes);
  void make(const Attention& attention, const PackedShape& shape, const Sequences& sequences,
            const Bindings& bindings, OnFaults on_faults);

  struct Copy;

  Device device_;
  PlanWishes wishes_;
  std::vector<std::byte> memory_;  // of the workspace on the host, with a guard before and after it
  std::size_t offset_ = 0;         // of the workspace in it
  std::size_t bytes_ = 0;
  TensorView workspace_;
  std::deque<Copy> copies_;  // of the sequences' tensors on a GPU
  std::deque<cuda::DeviceTensor> device_memory_;
  std::optional<Plan> plan_;
};

}  // namespace tilewright
