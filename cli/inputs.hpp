#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/gradients.hpp"
#include "cli/sequence_tensors.hpp"
#include "cli/verb.hpp"
#include "generator/spec/spec.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/api/safetensors.hpp"
#include "verify/problem.hpp"
#include "verify/random_inputs.hpp"
#include "verify/random_sequences.hpp"

namespace tilewright::cli {

/// Where a call's tensors, scalars and offsets come from: the arguments that run, check and mask
/// share.
struct InputArguments {
  /// A safetensors file, or random:B,HQ,HKV,SQ,SKV, or random:HQ,HKV/Q:KV,... of a packed spec.
  std::string inputs;
  std::vector<std::string> scalars;       ///< NAME=NUMBER
  std::vector<std::string> buffers = {};  ///< NAME=EXTENT,...
  /// Tensors that may stand in the file of the inputs too.
  std::vector<std::string> others = {};
  std::optional<std::uint64_t> seed = {};  ///< of random contents; none: 0
  std::optional<std::int64_t> q_offset;
  std::optional<std::int64_t> kv_offset;
  std::optional<double> scale;
  bool batch_invariant = false;             ///< of a packed call
  std::int64_t splits = 0;                  ///< PlanOptions::splits, ForwardOptions::splits
  std::optional<std::int64_t> shared = {};  ///< PageOptions::shared_columns

  /// --scalar, --buffer, --seed, --q-offset and --kv-offset.
  void declare_values(CLI::App& app);
  /// Those, --inputs (required), --scale, --batch-invariant and --splits.
  void declare_call(CLI::App& app);
};

/// --batch-invariant of a dense spec. @throws Error with code usage
void refuse_batch_invariant(bool given);

/// Refuses random tensors of a shape that this machine, or its container, cannot hold, outputs
/// included.
/// @throws Error with code memory
void require_memory(const Spec& spec, const Shape& shape);

/// The tensors and values of one call, checked against the spec as far as that needs no kernel.
class CallInputs {
 public:
  /// Reads or makes q, k, v and the buffers, checks every shape and makes room for the outputs.
  /// @throws Error with code file, tensor, usage or memory
  static CallInputs load(const Spec& spec, const InputArguments& arguments);

  /// For a block mask of the given sizes: buffers and scalars alone. A file may also hold q, k and
  /// v. Of a packed spec: one sequence of that size, whose last row of q and last column have the
  /// same position unless the arguments say otherwise.
  static CallInputs load_for_mask(const Spec& spec, const InputArguments& arguments, Shape shape);

  const verify::Problem& problem() const { return problem_; }
  const Shape& shape() const { return problem_.shape; }
  bool is_packed() const { return problem_.sequences.has_value(); }
  /// The sizes in words, without the bounds of a packed call.
  std::string describe() const;
  const Tensor& out() const { return out_; }
  const std::optional<Tensor>& lse() const { return lse_; }
  const std::optional<Tensor>& max_scores() const { return max_scores_; }
  const std::optional<Tensor>& weights() const { return weights_; }

  Bindings bindings(const Attention& attention) const;
  ForwardTensors tensors();
  ForwardOptions options() const;
  /// Of a spec with gradients; else null.
  CallGradients* gradients() { return gradients_ ? &*gradients_ : nullptr; }
  const CallGradients* gradients() const { return gradients_ ? &*gradients_ : nullptr; }

 private:
  CallInputs() = default;
  void take_file(const Spec& spec, const InputArguments& arguments, bool with_qkv);
  void take_random(const Spec& spec, const InputArguments& arguments, const Shape& shape);
  void take_random_packed(const Spec& spec, const InputArguments& arguments,
                          const verify::PackedLengths& lengths);
  void take_sequences(const Spec& spec);
  void take_one_sequence(const Spec& spec, const InputArguments& arguments, Shape& shape);
  void take_random_buffers(const Spec& spec, const InputArguments& arguments, const Shape& shape);
  void take_values(const Spec& spec, const InputArguments& arguments);
  void make_outputs(const Spec& spec);

  // The problem views one of these three.
  TensorFile file_;
  std::optional<verify::Inputs> random_;
  std::optional<verify::PackedInputs> random_packed_;
  std::optional<SequenceTensors> sequences_;  // of a packed call from a file, or of a mask
  verify::Problem problem_;
  Tensor out_;
  std::optional<Tensor> lse_;
  std::optional<Tensor> max_scores_;
  std::optional<Tensor> weights_;
  std::optional<CallGradients> gradients_;
};

}  // namespace tilewright::cli
