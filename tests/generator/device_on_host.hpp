#pragma once

// What the kernels' walks over lists of tiles need of a device, for tests that run them on the
// host: they include the walks' headers with the folder device_on_host/ in place of those that the
// walks include.

#define __forceinline__ inline
#define TW_INLINE inline

template <typename T>
T __ldg(const T* address) {
  return *address;
}

// As templates/abi/cuda_forward.hpp and cuda/attention/q_tile.hpp, as far as the walks read them.
struct BlockMaskArguments {
  const long long* row_offsets;
  const int* indices;
  const long long* full_row_offsets;
  const int* full_indices;
  int q_blocks;
};
struct QTile {
  int mask_row;
  int first_row;
};
