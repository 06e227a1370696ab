#include "cli/bench/kept.hpp"

#include <cmath>
#include <optional>

#include "cli/bench/packed_workload.hpp"
#include "cli/call.hpp"
#include "generator/snippet/snippet.hpp"
#include "runtime/call/staged_call.hpp"
#include "runtime/call/staged_plan.hpp"
#include "verify/sequences.hpp"

namespace tilewright::cli {
namespace {

constexpr std::int64_t kWidth = 16;  // the least: it is not looked at

Spec counting_spec(const Spec& spec, const Device& device) {
  const Snippet mask_mod = check_snippet(SnippetKind::mask_mod, spec.mask_mod);
  Spec counting{.name = spec.name,
                .dtype = device.kind() == Device::Kind::cpu ? DType::f32 : DType::bf16,
                .head_dim = kWidth,
                .layout = spec.is_packed() ? Layout::packed : Layout::bhsd,
                .kv_layout = spec.is_paged() ? std::optional(Layout::paged) : std::nullopt,
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

Attention counting_attention(const Spec& spec, const Device& device, ThreadPool* threads) {
  return Attention(counting_spec(spec, device),
                   {.device = device, .kernels = command_line_toolchain(), .threads = threads});
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
  const Attention attention = counting_attention(spec, device, threads);
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

double packed_kept_share(const Spec& spec, const verify::Problem& problem,
                         const verify::PackedLengths& lengths, const SnippetInputs& inputs,
                         const Device& device, ThreadPool* threads) {
  const double pairs = pairs_of(lengths);
  if (spec.mask_mod.empty() || pairs == 0) return 1;
  const Attention attention = counting_attention(spec, device, threads);
  const DType dtype = attention.spec().dtype;
  const Shape& shape = problem.shape;
  const Tensor q = Tensor::zeros(dtype, {shape.q_len, shape.num_q_heads, kWidth});
  const std::int64_t page_size = problem.page_size;
  const Tensor k =
      page_size == 0
          ? Tensor::zeros(dtype, {shape.kv_len, shape.num_kv_heads, kWidth})
          : Tensor::zeros(dtype, {shape.kv_len / page_size, page_size, shape.num_kv_heads, kWidth});
  const Tensor out = Tensor::zeros(dtype, q.shape());
  const Tensor lse = Tensor::zeros(DType::f32, {shape.num_q_heads, shape.q_len});
  const StagedCall call(device, {.q = q, .k = k, .v = k, .out = out, .lse = lse.view()}, {});
  const Bindings bindings = attention.bind(inputs_of(attention.spec(), inputs));
  const StagedPlan plan(attention, verify::packed_shape(problem), *problem.sequences, bindings);
  attention.forward(call.tensors(), plan.plan(), bindings);
  call.copy_back();
  return sum_of_counts(lse) / (static_cast<double>(shape.num_q_heads) * pairs);
}

}  // namespace tilewright::cli
