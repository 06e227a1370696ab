#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "generator/spec/spec.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/api/tensor.hpp"
#include "verify/gradients.hpp"
#include "verify/problem.hpp"

namespace tilewright::cli {

/// --deterministic of a spec without gradients. @throws Error with code usage
void require_gradients(const Spec& spec, bool deterministic);

/// What the backward pass reads in addition to the call's own tensors, and what it writes.
class CallGradients {
 public:
  /// dout and dlse of a file, or a random dout; makes room for each gradient.
  /// @param file  the tensors of --inputs; without dout it is drawn from a normal distribution
  static CallGradients load(const Spec& spec, const verify::Problem& problem, const TensorView& out,
                            const std::map<std::string, Tensor>& file, std::uint64_t seed);

  /// Holds views: this and the forward call must outlive it.
  BackwardTensors tensors(const ForwardTensors& forward) const;
  GradientBuffers buffers() const;
  /// dq, dk, dv and d_NAME, those that the spec names.
  std::map<std::string, TensorView> outputs() const;
  /// The same with dout and dlse, for verify.
  verify::GradientResults results() const;

 private:
  CallGradients() = default;

  std::optional<Tensor> random_dout_;
  TensorView dout_ = {};
  std::optional<TensorView> dlse_;
  std::map<std::string, Tensor> written_;  // by the names of files: dq, d_slopes
};

}  // namespace tilewright::cli
