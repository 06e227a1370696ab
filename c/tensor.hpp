#pragma once

#include <optional>

#include "c/error.hpp"

namespace tilewright::capi {

/// True for a tensor that is left out: all zeros.
inline bool is_absent(const tw_tensor& tensor) {
  return tensor.data == nullptr && tensor.rank == 0;
}

/// The same tensor as the library sees it.
/// @param name what messages call it
/// @throws Error with code tensor where its device is known and is not one that `device` reads
TensorView view_of(const tw_tensor& tensor, const Device& device, const char* name);

/// Nothing where the tensor is left out.
/// @throws Error as view_of
std::optional<TensorView> optional_view_of(const tw_tensor& tensor, const Device& device,
                                           const char* name);

/// A call's tensors, of an attention and of context parallel.
/// @throws Error as view_of
ForwardTensors tensors_of(const tw_call& call, const Device& device);
BackwardTensors tensors_of(const tw_backward_call& call, const Device& device);

/// What options of every kind take from a call: the scale, the workspace and the stream.
template <typename Options, typename Call>
Options common_options(const Call& call) {
  Options options{.stream = call.stream};
  if (call.has_scale) options.scale = call.scale;
  if (call.workspace) {
    options.workspace = TensorView::contiguous(call.workspace, DType::u8, {call.workspace_bytes});
  }
  return options;
}

/// The opposite of view_of; with dense strides, on any device.
tw_tensor tensor_of(const TensorView& view);

}  // namespace tilewright::capi
