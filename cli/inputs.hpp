#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/verb.hpp"
#include "generator/spec/spec.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/api/safetensors.hpp"
#include "verify/problem.hpp"
#include "verify/random_inputs.hpp"

namespace tilewright::cli {

/// Where a call's tensors, scalars and offsets come from: the arguments that run, check and mask
/// share.
struct InputArguments {
  std::string inputs;                ///< a safetensors file, or random:B,HQ,HKV,SQ,SKV
  std::vector<std::string> scalars;  ///< NAME=NUMBER
  /// Tensors that may stand in the file of the inputs too.
  std::vector<std::string> others = {};
  std::uint64_t seed = 0;  ///< of random contents
  std::int64_t q_offset = 0;
  std::int64_t kv_offset = 0;
  std::optional<double> scale;

  /// --scalar, --seed, --q-offset and --kv-offset.
  void declare_values(CLI::App& app);
  /// Those, --inputs (required) and --scale.
  void declare_call(CLI::App& app);
};

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
  /// v.
  static CallInputs load_for_mask(const Spec& spec, const InputArguments& arguments, Shape shape);

  const verify::Problem& problem() const { return problem_; }
  const Shape& shape() const { return problem_.shape; }
  const Tensor& out() const { return out_; }
  const std::optional<Tensor>& lse() const { return lse_; }

  Bindings bindings(const Attention& attention) const;
  ForwardTensors tensors();
  ForwardOptions options() const;

 private:
  CallInputs() = default;
  void take_file(const Spec& spec, const InputArguments& arguments, bool with_qkv);
  void take_random(const Spec& spec, const InputArguments& arguments, const Shape& shape);
  void take_random_buffers(const Spec& spec, const InputArguments& arguments, const Shape& shape);
  void take_values(const InputArguments& arguments);
  void make_outputs(const Spec& spec);

  // The problem views one of these two.
  TensorFile file_;
  std::optional<verify::Inputs> random_;
  verify::Problem problem_;
  Tensor out_;
  std::optional<Tensor> lse_;
};

}  // namespace tilewright::cli
