#include "cli/gradients.hpp"

#include <vector>

#include "base/error.hpp"
#include "generator/spec/gradients.hpp"
#include "runtime/io/float16.hpp"
#include "verify/random.hpp"

namespace tilewright::cli {
namespace {

Tensor random_like(const TensorView& view, std::uint64_t seed) {
  Tensor tensor = Tensor::zeros(view.dtype, {view.extents().begin(), view.extents().end()});
  verify::Random random(seed, "dout");
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    write_element(tensor.data(), tensor.dtype(), i, random.normal());
  }
  return tensor;
}

}  // namespace

void require_gradients(const Spec& spec, bool deterministic) {
  if (!deterministic || !spec.gradients.empty()) return;
  throw Error(ErrorCode::usage, "--deterministic is for gradients, and the spec names none",
              "leave it out: forward always gives equal bits");
}

CallGradients CallGradients::load(const Spec& spec, const verify::Problem& problem,
                                  const TensorView& out, const std::map<std::string, Tensor>& file,
                                  std::uint64_t seed) {
  CallGradients gradients;
  const auto dout = file.find("dout"), dlse = file.find("dlse");
  if (dout == file.end()) gradients.random_dout_ = random_like(out, seed);
  gradients.dout_ = dout == file.end() ? gradients.random_dout_->view() : dout->second.view();
  if (dlse != file.end()) gradients.dlse_ = dlse->second.view();
  const auto make = [&](const std::string& name, const TensorView& like, DType dtype) {
    gradients.written_.emplace(
        name, Tensor::zeros(dtype, {like.extents().begin(), like.extents().end()}));
  };
  if (has_gradient(spec, "q")) make("dq", problem.q, spec.dtype);
  if (has_gradient(spec, "k")) make("dk", problem.k, spec.key_value_dtype());
  if (has_gradient(spec, "v")) make("dv", problem.v, spec.key_value_dtype());
  for (const std::string& name : gradient_names(spec)) {
    const auto buffer = problem.snippet.buffers.find(name);
    if (buffer != problem.snippet.buffers.end()) {
      make("d_" + name, buffer->second, DType::f32);
    } else {
      gradients.written_.emplace("d_" + name, Tensor::zeros(DType::f32, {1}));
    }
  }
  return gradients;
}

BackwardTensors CallGradients::tensors(const ForwardTensors& forward) const {
  const auto view = [&](const char* name) {
    const auto written = written_.find(name);
    return written == written_.end() ? std::nullopt : std::optional(written->second.view());
  };
  return {.q = forward.q,
          .k = forward.k,
          .v = forward.v,
          .out = forward.out,
          .lse = forward.lse.value(),
          .dout = dout_,
          .dlse = dlse_,
          .dq = view("dq"),
          .dk = view("dk"),
          .dv = view("dv")};
}

GradientBuffers CallGradients::buffers() const {
  GradientBuffers buffers;
  for (const auto& [name, tensor] : written_) {
    if (name.starts_with("d_")) buffers.emplace(name.substr(2), tensor.view());
  }
  return buffers;
}

std::map<std::string, TensorView> CallGradients::outputs() const {
  std::map<std::string, TensorView> outputs;
  for (const auto& [name, tensor] : written_) outputs.emplace(name, tensor.view());
  return outputs;
}

verify::GradientResults CallGradients::results() const {
  return {.dout = dout_, .dlse = dlse_, .gradients = outputs()};
}

}  // namespace tilewright::cli
