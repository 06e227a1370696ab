#include "runtime/cpu/arguments.hpp"

#include "generator/spec/number_range.hpp"

namespace tilewright::cpu {
namespace {

static_assert(kMaxRank == abi::kMaxBufferRank);

abi::BufferArgument buffer_argument(const TensorView& view) {
  abi::BufferArgument argument{.data = view.data, .size = {1, 1, 1, 1, 1}, .stride = {}};
  for (int i = 0; i < view.rank; ++i) {
    argument.size[i] = view.shape[i];
    argument.stride[i] = view.shape[i] == 1 ? 0 : view.strides[i];
  }
  return argument;
}

abi::ScalarArgument scalar_argument(const ScalarSpec& spec, double value) {
  abi::ScalarArgument argument{};
  if (spec.dtype == DType::i64) {
    argument.as_i32 = low_word(value);
  } else if (spec.dtype == DType::i32) {
    argument.as_i32 = static_cast<int>(value);
  } else {
    argument.as_f32 = static_cast<float>(value);
  }
  return argument;
}

}  // namespace

BindingArguments binding_arguments(const Spec& spec, const std::vector<TensorView>& buffers,
                                   const std::vector<double>& scalars) {
  BindingArguments arguments;
  for (const TensorView& view : buffers) arguments.buffers.push_back(buffer_argument(view));
  size_t index = 0;
  for (const auto& [name, scalar] : spec.scalars) {
    arguments.scalars.push_back(scalar_argument(scalar, scalars[index++]));
  }
  index = 0;
  for (const auto& [name, scalar] : spec.scalars) {
    const double value = scalars[index++];
    if (scalar.dtype == DType::i64) arguments.scalars.push_back({.as_i32 = high_word(value)});
  }
  return arguments;
}

abi::SnippetArguments snippet_arguments(const BindingArguments& bindings, const Shape& shape) {
  return {.buffers = bindings.buffers.data(),
          .scalars = bindings.scalars.data(),
          .batch = static_cast<int>(shape.batch),
          .num_q_heads = static_cast<int>(shape.num_q_heads),
          .num_kv_heads = static_cast<int>(shape.num_kv_heads),
          .q_len = static_cast<int>(shape.q_len),
          .kv_len = static_cast<int>(shape.kv_len),
          .q_offset = static_cast<int>(shape.q_offset),
          .kv_offset = static_cast<int>(shape.kv_offset),
          .q_token_offset = 0,
          .kv_token_offset = 0,
          .pages = {}};
}

abi::TensorArgument tensor_argument(const ResolvedTensor& tensor) {
  return {tensor.data, tensor.batch_stride, tensor.head_stride, tensor.row_stride};
}

abi::TensorArgument from_row(abi::TensorArgument tensor, DType dtype, std::int64_t row) {
  if (tensor.data == nullptr) return tensor;
  const std::int64_t bytes = row * tensor.row_stride * static_cast<std::int64_t>(size_of(dtype));
  tensor.data = static_cast<std::byte*>(tensor.data) + bytes;
  return tensor;
}

abi::BlockMaskArgument lists_argument(const BlockMask& mask, const TileLists& lists,
                                      std::int64_t blocks) {
  static_assert(sizeof(long long) == sizeof(std::int64_t));
  return {.row_offsets = reinterpret_cast<const long long*>(lists.row_offsets.data()),
          .indices = lists.indices.data(),
          .full_row_offsets = reinterpret_cast<const long long*>(lists.full_row_offsets.data()),
          .full_indices = lists.full_indices.data(),
          .batch = static_cast<int>(mask.batch()),
          .heads = static_cast<int>(mask.heads()),
          .q_blocks = static_cast<int>(blocks)};
}

}  // namespace tilewright::cpu
