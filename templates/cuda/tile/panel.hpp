#pragma once

#include "cuda/language.hpp"

// Operands of matrix products in shared memory: panels of 128 bytes a row, 64 columns of 16 bits or 128 of 8, as
// tensor_copy.hpp brings them and wgmma reads them (sm_90a).

namespace tw_kernel {

constexpr int kPanelRowBytes = 128;
constexpr int kRowGroupBytes = 8 * kPanelRowBytes;  // of 8 rows of a panel, which the swizzle repeats after

// Where a product finds an operand in shared memory (PTX, "Matrix Descriptor Format"): panels as
// tensor_copy.hpp brings them. Rows come in groups of 8, `group_bytes` apart. `panel_bytes` is the
// distance of panels where they follow each other along the operand's contiguous dimension, which
// matters only if that is not the one summed over.
TW_INLINE unsigned long long make_descriptor(unsigned address, unsigned panel_bytes,
                                             unsigned group_bytes = kRowGroupBytes) {
  constexpr unsigned long long kSwizzle128 = 1ull << 62;
  return kSwizzle128 | static_cast<unsigned long long>(group_bytes >> 4) << 32 |
         static_cast<unsigned long long>(panel_bytes >> 4) << 16 | (address & 0x3ffffu) >> 4;
}

}  // namespace tw_kernel
