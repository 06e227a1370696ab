#include "verify/snippet_evaluator.hpp"

#include <algorithm>

#include "generator/spec/target.hpp"

namespace tilewright::verify {
namespace {

static_assert(static_cast<int>(SnippetKind::k_scale) == abi::kKScale &&
              static_cast<int>(SnippetKind::out_scale) == abi::kOutScale &&
              static_cast<int>(SnippetKind::sink) == abi::kSink &&
              static_cast<int>(SnippetKind::dropout) == abi::kDropout);

std::int64_t logical_size(const BufferDim& dim, const Shape& shape, std::int64_t physical) {
  if (const auto* size = std::get_if<std::int64_t>(&dim)) return *size;
  if (const auto* named = std::get_if<NamedDim>(&dim)) return extent_of(*named, shape);
  return physical;
}

abi::BufferArgument buffer_argument(const BufferSpec& spec, const TensorView& view,
                                    const Shape& shape, SnippetValues::Extents extents) {
  abi::BufferArgument argument{.data = view.data, .size = {1, 1, 1, 1, 1}, .stride = {}};
  for (int i = 0; i < view.rank; ++i) {
    argument.size[i] = extents == SnippetValues::Extents::logical
                           ? logical_size(spec.shape[static_cast<std::size_t>(i)], shape,
                                          view.shape[static_cast<std::size_t>(i)])
                           : view.shape[static_cast<std::size_t>(i)];
    argument.stride[i] = view.shape[static_cast<std::size_t>(i)] == 1
                             ? 0
                             : view.strides[static_cast<std::size_t>(i)];
  }
  return argument;
}

std::int64_t whole(double value) {
  return static_cast<std::int64_t>(value);
}

abi::ScalarArgument scalar_argument(DType dtype, double value) {
  abi::ScalarArgument argument{};
  if (dtype == DType::i64) {
    argument.as_i32 = static_cast<int>(static_cast<std::uint64_t>(whole(value)) & 0xffffffffu);
  } else if (dtype == DType::i32) {
    argument.as_i32 = static_cast<int>(value);
  } else {
    argument.as_f32 = static_cast<float>(value);
  }
  return argument;
}

}  // namespace

SnippetValues::SnippetValues(const Spec& spec, const SnippetInputs& inputs, const Shape& shape,
                             Extents extents)
    : shape_(shape) {
  const Bindings bindings(spec, inputs);
  bindings.check(spec, shape);
  std::size_t index = 0;
  for (const auto& [name, buffer] : spec.buffers) {
    buffers_.push_back(buffer_argument(buffer, bindings.buffers()[index++], shape, extents));
  }
  index = 0;
  for (const auto& [name, scalar] : spec.scalars) {
    scalars_.push_back(scalar_argument(scalar.dtype, bindings.scalars()[index++]));
  }
  index = 0;
  for (const auto& [name, scalar] : spec.scalars) {
    const double value = bindings.scalars()[index++];
    if (scalar.dtype != DType::i64) continue;
    scalars_.push_back({.as_i32 = static_cast<int>(whole(value) >> 32)});
  }
}

abi::SnippetArguments SnippetValues::arguments() const {
  return {.buffers = buffers_.data(),
          .scalars = scalars_.data(),
          .batch = static_cast<int>(shape_.batch),
          .num_q_heads = static_cast<int>(shape_.num_q_heads),
          .num_kv_heads = static_cast<int>(shape_.num_kv_heads),
          .q_len = static_cast<int>(shape_.q_len),
          .kv_len = static_cast<int>(shape_.kv_len),
          .q_offset = static_cast<int>(shape_.q_offset),
          .kv_offset = static_cast<int>(shape_.kv_offset),
          // Of one sequence that begins with the tensors; arguments_of says it of others.
          .q_token_offset = static_cast<int>(-shape_.q_offset),
          .kv_token_offset = static_cast<int>(-shape_.kv_offset),
          .pages = {}};
}

template <typename Score>
SnippetEvaluator<Score>::SnippetEvaluator(const Spec& spec, KernelRole role,
                                          const Toolchain& toolchain)
    : kernel_(load_kernel(spec, Target::host_cpu(), {.role = role}, toolchain)),
      entry_(kernel_->template entry<Entry>("tilewright_evaluate_row")) {
  if (!spec.has_other_snippets()) return;
  scale_entry_ = kernel_->template entry<ScaleEntry>("tilewright_evaluate_scale");
}

template <typename Score>
void SnippetEvaluator<Score>::scale(SnippetKind kind, const abi::SnippetArguments& arguments,
                                    std::int64_t b, std::int64_t h, std::int64_t first,
                                    std::int64_t count, Score* values) const {
  const int which = static_cast<int>(kind);
  scale_entry_(&arguments, which, static_cast<int>(b), static_cast<int>(h), static_cast<int>(first),
               static_cast<int>(count), values);
}

template class SnippetEvaluator<float>;
template class SnippetEvaluator<double>;

CheckedInterpretation::CheckedInterpretation(const Spec& spec, const Toolchain& toolchain)
    : SnippetEvaluator(spec, KernelRole::evaluate_checked, toolchain),
      take_(kernel().entry<Take>("tilewright_take_findings")) {}

CheckedInterpretation::Findings CheckedInterpretation::take_findings(int capacity) const {
  Findings findings;
  findings.first.resize(static_cast<std::size_t>(capacity));
  findings.count = take_(findings.first.data(), capacity);
  findings.first.resize(static_cast<std::size_t>(
      std::min<std::int64_t>(findings.count, static_cast<std::int64_t>(capacity))));
  return findings;
}

}  // namespace tilewright::verify
