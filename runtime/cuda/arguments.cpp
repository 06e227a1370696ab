#include "runtime/cuda/arguments.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/spec/number_range.hpp"
#include "runtime/call/tensor_role.hpp"

namespace tilewright::cuda {
namespace {

namespace cuda_abi = tilewright::abi::cuda;

static_assert(kMaxRank == cuda_abi::kMaxBufferRank);
constexpr std::int64_t kMaxInt = std::numeric_limits<int>::max();

template <int kRank>
void write_argument(const TensorView& view, std::byte* to) {
  cuda_abi::BufferArgument<kRank> argument{.data = view.data, .stride = {}, .size = {}};
  for (int& size : argument.size) size = 1;
  for (int i = 0; i < view.rank; ++i) {
    argument.size[i] = static_cast<int>(view.shape[i]);
    argument.stride[i] = view.shape[i] == 1 ? 0 : view.strides[i];
  }
  std::memcpy(to, &argument, sizeof argument);
}

cuda_abi::ScalarArgument scalar_argument(const ScalarSpec& spec, double value) {
  cuda_abi::ScalarArgument argument{};
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
  const auto buffer_count = static_cast<int>(buffers.size());
  const auto scalar_count = static_cast<int>(spec.scalar_entries());
  const int rank = argument_rank(spec);
  BindingArguments arguments;
  arguments.bytes.resize(
      static_cast<std::size_t>(cuda_abi::snippet_argument_bytes(buffer_count, scalar_count, rank)));
  std::byte* to = arguments.bytes.data() + cuda_abi::kSnippetHeaderBytes;
  for (const TensorView& view : buffers) {
    if (rank == cuda_abi::kUsualBufferRank) {
      write_argument<cuda_abi::kUsualBufferRank>(view, to);
    } else {
      write_argument<cuda_abi::kMaxBufferRank>(view, to);
    }
    to += cuda_abi::buffer_argument_bytes(rank);
  }
  to = arguments.bytes.data() + cuda_abi::scalar_offset(buffer_count, rank);
  std::size_t index = 0;
  const auto append = [&to](const cuda_abi::ScalarArgument& argument) {
    std::memcpy(to, &argument, sizeof argument);
    to += sizeof argument;
  };
  for (const auto& [name, scalar] : spec.scalars) append(scalar_argument(scalar, scalars[index++]));
  index = 0;
  for (const auto& [name, scalar] : spec.scalars) {
    const double value = scalars[index++];
    if (scalar.dtype == DType::i64) append({.as_i32 = high_word(value)});
  }
  return arguments;
}

void require_strides(const Spec& spec, const Bindings& bindings) {
  std::size_t index = 0;
  for (const auto& [name, buffer] : spec.buffers) {
    const TensorView& view = bindings.buffers()[index++];
    if (view.rank == 0) continue;
    const auto last = static_cast<std::size_t>(view.rank - 1);
    const auto bytes = static_cast<std::int64_t>(size_of(view.dtype));
    const std::int64_t furthest = kMaxInt / bytes;
    const bool fits = view.strides[last] >= -furthest && view.strides[last] <= furthest;
    if (view.shape[last] == 1 || fits) continue;
    throw Error(ErrorCode::tensor,
                fmt::format("buffer \"{}\" has a stride of {} elements in its last dimension; on a "
                            "GPU it must be below 2^31 bytes, forwards or backwards",
                            name, view.strides[last]),
                "copy the buffer into contiguous memory");
  }
}

SnippetParameter::SnippetParameter(const BindingArguments& bindings, const Shape& shape) {
  const int header[] = {static_cast<int>(shape.batch),
                        static_cast<int>(shape.num_q_heads),
                        static_cast<int>(shape.num_kv_heads),
                        static_cast<int>(shape.q_len),
                        static_cast<int>(shape.kv_len),
                        static_cast<int>(shape.q_offset),
                        static_cast<int>(shape.kv_offset),
                        0,
                        0,
                        0};
  static_assert(sizeof header == cuda_abi::kSnippetHeaderBytes);
  std::memcpy(bytes_, bindings.bytes.data(), std::min(bindings.bytes.size(), sizeof bytes_));
  std::memcpy(bytes_, header, sizeof header);
}

SnippetParameter::SnippetParameter(const BindingArguments& bindings, const Shape& shape,
                                   const abi::SequencePages& pages)
    : SnippetParameter(bindings, shape) {
  std::memcpy(bytes_ + bindings.bytes.size(), &pages, sizeof pages);
}

cuda_abi::TensorArgument tensor_argument(const ResolvedTensor& tensor) {
  return {tensor.data, tensor.batch_stride, tensor.head_stride, tensor.row_stride};
}

bool is_aligned(const Spec& spec, const ForwardCall& call) {
  return tilewright::is_aligned(call.q, spec.dtype) &&
         tilewright::is_aligned(call.k, spec.key_value_dtype()) &&
         // Elements of a row of v lie apart in paged_x, and are read one by one.
         (spec.is_paged_x() || tilewright::is_aligned(call.v, spec.key_value_dtype())) &&
         tilewright::is_aligned(call.k_new, spec.dtype) &&
         tilewright::is_aligned(call.v_new, spec.dtype) &&
         tilewright::is_aligned(call.out, spec.output_dtype());
}

}  // namespace tilewright::cuda
