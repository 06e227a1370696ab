#include "cli/bench/kept.hpp"

#include <cmath>

#include "cli/call.hpp"
#include "generator/snippet/snippet.hpp"
#include "runtime/call/staged_call.hpp"

namespace tilewright::cli {
namespace {

constexpr std::int64_t kWidth = 16;  // the least: it is not looked at

Spec counting_spec(const Spec& spec, const Snippet& mask_mod, const Device& device) {
  Spec counting{.name = spec.name,
                .dtype = device.kind() == Device::Kind::cpu ? DType::f32 : DType::bf16,
                .head_dim = kWidth,
                .mask_mod = spec.mask_mod,
                .block = spec.block,
                .outputs = {.out = true, .lse = true}};
  counting.precise_math = spec.precise_math;
  for (const auto& [name, buffer] : spec.buffers) {
    if (mask_mod.mentions(name)) counting.buffers.emplace(name, buffer);
  }
  for (const auto& [name, scalar] : spec.scalars) {
    if (mask_mod.mentions(name)) counting.scalars.emplace(name, scalar);
  }
  return counting;
}

SnippetInputs inputs_of(const Spec& counting, const SnippetInputs& all) {
  SnippetInputs inputs;
  for (const auto& [name, buffer] : counting.buffers) inputs.buffers[name] = all.buffers.at(name);
  for (const auto& [name, scalar] : counting.scalars) {
    if (const auto found = all.scalars.find(name); found != all.scalars.end()) {
      inputs.scalars.insert(*found);
    }
  }
  return inputs;
}

double sum_of_counts(const Tensor& lse) {
  double kept = 0;
  const auto* rows = static_cast<const float*>(lse.data());
  for (std::int64_t i = 0; i < lse.numel(); ++i) kept += std::round(std::exp(double{rows[i]}));
  return kept;
}

}  // namespace

double kept_share(const Spec& spec, const Shape& shape, const SnippetInputs& inputs,
                  const Device& device, ThreadPool* threads) {
  if (spec.mask_mod.empty()) return 1;
  const Snippet mask_mod = check_snippet(SnippetKind::mask_mod, spec.mask_mod);
  const Attention attention(
      counting_spec(spec, mask_mod, device),
      {.device = device, .kernels = command_line_toolchain(), .threads = threads});
  const DType dtype = attention.spec().dtype;
  const Tensor q = Tensor::zeros(dtype, {shape.batch, shape.num_q_heads, shape.q_len, kWidth});
  const Tensor k = Tensor::zeros(dtype, {1, shape.num_kv_heads, shape.kv_len, kWidth});
  const Tensor out = Tensor::zeros(dtype, q.shape());
  const Tensor lse = Tensor::zeros(DType::f32, {shape.batch, shape.num_q_heads, shape.q_len});
  const StagedCall call(device, {.q = q, .k = k, .v = k, .out = out, .lse = lse.view()}, {});
  const Bindings bindings = attention.bind(inputs_of(attention.spec(), inputs));
  attention.forward(call.tensors(), attention.block_mask(shape, bindings), bindings);
  call.copy_back();
  return sum_of_counts(lse) /
         (static_cast<double>(lse.numel()) * static_cast<double>(shape.kv_len));
}

}  // namespace tilewright::cli
