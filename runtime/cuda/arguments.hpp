#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "../../templates/abi/cuda_forward.hpp"
#include "../../templates/abi/cuda_paged.hpp"
#include "../../templates/abi/cuda_snippet.hpp"
#include "../../templates/abi/cuda_tensor_maps.hpp"
#include "../api/bindings.hpp"
#include "../call/forward_call.hpp"
#include "../compile/parameter_room.hpp"

namespace tilewright::cuda {

/// What is left of kMaxParameterBytes for abi::cuda::SnippetArguments and pages, at most; what a
/// spec's kernels leave is require_parameter_room()'s.
inline constexpr std::size_t kMaxSnippetBytes =
    kMaxParameterBytes - sizeof(abi::cuda::ForwardArguments) - sizeof(abi::cuda::TensorMaps);

/// Buffers and scalars as GPU kernels take them, made once for many calls: an
/// abi::cuda::SnippetArguments whose sizes are not filled in.
struct BindingArguments {
  std::vector<std::byte> bytes;
};

BindingArguments binding_arguments(const Spec& spec, const std::vector<TensorView>& buffers,
                                   const std::vector<double>& scalars);

/// @throws Error with code tensor for a buffer whose strides no GPU kernel can use
void require_strides(const Spec& spec, const Bindings& bindings);

/// The SnippetArguments of one call, complete, or its PagedSnippetArguments. Holds them itself, so
/// it allocates nothing.
class SnippetParameter {
 public:
  SnippetParameter(const BindingArguments& bindings, const Shape& shape);
  /// @param pages of all sequences
  SnippetParameter(const BindingArguments& bindings, const Shape& shape,
                   const abi::SequencePages& pages);
  void* data() { return bytes_; }

 private:
  alignas(8) std::byte bytes_[kMaxSnippetBytes];
};

abi::cuda::TensorArgument tensor_argument(const ResolvedTensor& tensor);

/// Whether the base and every stride of a call's tensors is a multiple of 16 bytes.
bool is_aligned(const Spec& spec, const ForwardCall& call);

}  // namespace tilewright::cuda
