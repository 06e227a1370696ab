#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "generator/tactic/kernel_variant.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/call/staged_call.hpp"
#include "runtime/call/staged_plan.hpp"
#include "runtime/call/staged_workspace.hpp"
#include "verify/random_sequences.hpp"

namespace tilewright::cli {

struct Samples {
  double median_ms = 0;
  double least_ms = 0;
  std::size_t count = 0;
};

/// @param times at least one
Samples summarize(std::vector<double> times);

inline constexpr std::size_t kLeastSamples = 5;
inline constexpr std::size_t kMostSamples = 200;

/// Times calls of `body` by the host's clock: one to warm up, then as many as the budget allows.
template <typename Body>
Samples sample(double budget_ms, Body body) {
  body();
  std::vector<double> times;
  const Stopwatch total;
  while (times.size() < kLeastSamples || (times.size() < kMostSamples && total.ms() < budget_ms)) {
    const Stopwatch watch;
    body();
    times.push_back(watch.ms());
  }
  return summarize(std::move(times));
}

/// {ms, ms_min, samples}
Json to_json(const Samples& samples);

/// What is measured: a spec and the sizes of its call.
struct Workload {
  Spec spec;
  Shape shape;  ///< of a packed call as verify::Problem::shape
  std::optional<verify::PackedLengths> lengths = {};  ///< of a packed call
};

/// The spec with that tactic and no other.
Spec with_tactic(Spec spec, const TacticSpec& tactic);

/// A call on its own random data, ready to be made again and again.
class PreparedCall {
 public:
  struct Options {
    Device device;
    std::uint64_t seed = 0;         ///< of the contents
    std::string buffers = {};       ///< a safetensors file with buffers that are not to be random
    ThreadPool* threads = nullptr;  ///< none: ThreadPool::shared()
    bool batch_invariant = false;   ///< PlanOptions::batch_invariant
    std::int64_t splits = 0;        ///< PlanOptions::splits, or ForwardOptions::splits
    bool decode = true;             ///< AttentionOptions::decode, where calls gain from it
  };

  /// @throws Error as Attention; with code memory; with code file or tensor for the file of buffers
  PreparedCall(const Workload& workload, const Options& options);
  /// The same dense call on the same tensors, by another tactic.
  /// @throws Error as Attention
  PreparedCall(const PreparedCall& other, const TacticSpec& tactic);

  const Attention& attention() const { return attention_; }
  const Shape& shape() const { return tensors_->view.shape; }
  const Device& device() const { return attention_.device(); }
  const Bindings& bindings() const { return bindings_; }
  const StagedCall& staged() const { return *tensors_->staged; }
  const std::optional<verify::PackedLengths>& lengths() const { return lengths_; }
  /// Empty where the spec has no mask_mod, or is packed. Of a spec with gradients with its
  /// transposed lists.
  const std::optional<BlockMask>& mask() const { return mask_; }
  /// Of a packed call; else null. Of a spec with gradients it serves backward.
  const Plan* plan() const { return plan_.get(); }
  /// Share of the tiles that are visited, 0 to 1.
  double density() const { return density_; }
  std::string tactic() const;
  /// The kernel that the call takes: "forward_split".
  std::string kernel() const;

  void build_mask() const;
  /// Starts building the plan again; of a packed call alone.
  void enqueue_rebuild(Stream stream = nullptr) const;

  /// Starts the call; on a CPU it is done when this returns.
  void enqueue() const;
  void wait() const;
  void forward() const {
    enqueue();
    wait();
  }

  /// Fills out with bytes of 0xff, a NaN that no kernel computes; on a GPU in the order of the
  /// default stream.
  void poison_out() const;
  /// Looks at every element of out: a time means something only where the call wrote a result.
  /// @throws Error with code internal where an element is still poisoned; not_finite_error
  void require_result() const;
  /// The same for one element, which is cheap; any number chooses which.
  void require_result_at(std::size_t number) const;

  /// Share of the elements that mask_mod keeps, counted exactly: 0.5 for causal, about. Compiles a
  /// small kernel.
  double kept_share() const;

 private:
  struct Tensors {
    verify::PackedInputs inputs;  // without sequences in a dense call
    verify::Problem view;
    Tensor out = {};
    std::optional<Tensor> lse = {};
    std::optional<Tensor> max_scores = {};
    std::optional<Tensor> weights = {};
    std::unique_ptr<const StagedCall> staged = {};  // on the device
  };
  KernelVariant variant() const;  // that the call takes
  static std::shared_ptr<const Tensors> make_tensors(const Workload& workload,
                                                     const Options& options);
  void bind();
  void make_plan();

  ThreadPool* threads_;
  Attention attention_;
  std::optional<verify::PackedLengths> lengths_;
  std::shared_ptr<const Tensors> tensors_;
  Bindings bindings_;
  std::optional<BlockMask> mask_;
  std::unique_ptr<const StagedWorkspace> workspace_;  // of a dense call
  std::unique_ptr<const StagedPlan> staged_plan_;
  std::unique_ptr<Plan> plan_;  // the staged one
  double density_ = 1;
};

/// Floating-point operations of the two products if every element is kept:
/// 2 (head_dim + v_head_dim) HQ times the elements of all sequences, B SQ SKV of a dense call: 4 B
/// H SQ SKV D where the widths are equal.
double dense_operations(const Workload& workload);

}  // namespace tilewright::cli
