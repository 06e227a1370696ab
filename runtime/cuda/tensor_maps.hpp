#pragma once

#include "../../templates/abi/cuda_hopper_backward.hpp"
#include "../../templates/abi/cuda_tensor_maps.hpp"
#include "../call/backward_call.hpp"
#include "../call/forward_call.hpp"
#include "driver.hpp"

namespace tilewright::cuda {

/// Whether the copy engine can bring and store a call's tensors: bases and strides are multiples of
/// 16 bytes, and rows do not lie on top of each other.
bool fit_tensor_maps(const Spec& spec, const ForwardCall& call);

/// log2 of the rows of boxes of k and v in pages: as many as divide both a page and a tile.
/// @param page_size a multiple of 16
int page_box_shift(std::int64_t page_size, std::int64_t kv_tile);

/// Where a call's maps are made. Kernels of other specs take TensorMaps, the first part of either.
union ForwardMaps {
  abi::cuda::PagedTensorMaps paged;
  abi::cuda::NewRowsTensorMaps new_rows;  // of a spec with kv_new
};

/// Makes the maps of a call whose tensors fit.
/// @param kv_tile  rows of the boxes of k and v; where these are in pages, page_box_shift says it
/// @param maps  not returned by value: gcc 12 aligns such a temporary to 32 bytes, not to 64
/// @throws Error with code device where the driver refuses
void make_tensor_maps(const Driver& driver, const Spec& spec, const ForwardCall& call,
                      std::int64_t kv_tile, ForwardMaps& maps);

/// The same of a call of backward: whether the copy engine can bring and store its tensors.
bool fit_backward_maps(const Spec& spec, const BackwardCall& call);

/// @param rows     of q, of a tile
/// @param columns  that a block of threads owns
/// @throws Error with code device where the driver refuses
void make_backward_maps(const Driver& driver, const Spec& spec, const BackwardCall& call,
                        std::int64_t rows, std::int64_t columns, abi::cuda::BackwardMaps& maps);

}  // namespace tilewright::cuda
