#pragma once

#include "../../templates/abi/cuda_tensor_maps.hpp"
#include "../call/forward_call.hpp"
#include "driver.hpp"

namespace tilewright::cuda {

/// Whether the copy engine can bring and store a call's tensors: bases and strides are multiples of
/// 16 bytes, and rows do not lie on top of each other.
bool fit_tensor_maps(const Spec& spec, const ForwardCall& call);

/// Makes the maps of a call whose tensors fit.
/// @param kv_box_rows  rows of the boxes of k and v
/// @param maps  not returned by value: gcc 12 aligns such a temporary to 32 bytes, not to 64
/// @throws Error with code device where the driver refuses
void make_tensor_maps(const Driver& driver, const Spec& spec, const ForwardCall& call,
                      std::int64_t kv_box_rows, abi::cuda::TensorMaps& maps);

}  // namespace tilewright::cuda
