#pragma once

#include "abi/cuda_tensor_maps.hpp"
#include "cuda/language.hpp"

// Copies of boxes of a tensor between global and shared memory by the copy engine, TMA (sm_90).
//
// A box is 64 elements of 16 bits (128 bytes) wide. In shared memory its rows lie one after the
// other, and the 16-byte chunk c of a row stands at place c ^ (r % 8), where r is the row's address
// by 128: the 128-byte swizzle that wgmma reads, for which a tile begins at a multiple of 1024 bytes.
// A box begins at a multiple of 128 bytes. What is outside of the tensor is read as 0 and counts as
// brought, and is not written.

namespace tw_kernel {

using tilewright::abi::cuda::TensorMap;

TW_INLINE void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Brings the box at (b, h, row, column) and counts its bytes at the barrier. An address of the block's own
// memory stands for itself among a cluster's.
TW_INLINE void load_box(unsigned to, const TensorMap& map, unsigned barrier, int column, int row,
                        int h, int b) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, { %3, %4, %5, %6}], [%2];" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(column), "r"(row), "r"(h), "r"(b)
      : "memory");
}

// The same of a map with five dimensions, packed ones or pages (abi/cuda_tensor_maps.hpp).
TW_INLINE void load_box(unsigned to, const TensorMap& map, unsigned barrier, int column, int row,
                        int h, int begin, int turn) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, { %3, %4, %5, %6, %7}], [%2];" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(column), "r"(row), "r"(h), "r"(begin), "r"(turn)
      : "memory");
}

TW_INLINE void store_box(const TensorMap& map, unsigned from, int column, int row, int h, int b) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, { %2, %3, %4, %5}], [%1];" ::"l"(
          &map),
      "r"(from), "r"(column), "r"(row), "r"(h), "r"(b)
      : "memory");
}

TW_INLINE void store_box(const TensorMap& map, unsigned from, int column, int row, int h, int begin,
                         int turn) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, { %2, %3, %4, %5, %6}], [%1];" ::"l"(
          &map),
      "r"(from), "r"(column), "r"(row), "r"(h), "r"(begin), "r"(turn)
      : "memory");
}

TW_INLINE void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// This thread's stores have read shared memory, which may be overwritten.
TW_INLINE void wait_until_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// What threads wrote to shared memory before becomes visible to copies and matrix products after.
TW_INLINE void fence_for_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace tw_kernel
