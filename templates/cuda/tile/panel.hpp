#pragma once

#include "cuda/language.hpp"

// Operands of matrix products in shared memory: panels of 64 columns of 16 bits, as tensor_copy.hpp
// brings them and wgmma reads them (sm_90a).

namespace tw_kernel {

constexpr int kPanelColumns = 64;
constexpr int kPanelRowBytes = 128;

// Where a product finds an operand in shared memory (PTX, "Matrix Descriptor Format"): panels as
// tensor_copy.hpp brings them. Rows come in groups of 8, 1024 bytes apart. `panel_bytes` is the
// distance of panels where they follow each other along the operand's contiguous dimension, which
// matters only if that is not the one summed over.
TW_INLINE unsigned long long make_descriptor(unsigned address, unsigned panel_bytes) {
  constexpr unsigned long long kSwizzle128 = 1ull << 62;
  constexpr unsigned long long kGroupBytes = 1024;
  return kSwizzle128 | (kGroupBytes >> 4) << 32 |
         static_cast<unsigned long long>(panel_bytes >> 4) << 16 | (address & 0x3ffffu) >> 4;
}

}  // namespace tw_kernel
