#pragma once

#include "abi/quantise.hpp"
#include "attention/quantise.hpp"
#include "attention/stored_number.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// Tensors of one byte from wider ones. A thread stores 8 elements of one row and head at a time.

namespace tw_kernel {

// Where both are aligned, by loads of 16 bytes and a store of 8.
template <typename From>
TW_INLINE void quantise_elements(const From* from, bool is_aligned, float scale, StoredElement* to) {
  constexpr int kElements = tilewright::abi::kQuantiseElements;
  if (!is_aligned) {
#pragma unroll
    for (int i = 0; i < kElements; ++i) store_scaled(from[i], scale, to + i);
    return;
  }
  alignas(16) From values[kElements];
  alignas(8) StoredElement stored[kElements];
#pragma unroll
  for (int i = 0; i < kElements * static_cast<int>(sizeof(From)) / 16; ++i) {
    reinterpret_cast<int4*>(values)[i] = reinterpret_cast<const int4*>(from)[i];
  }
#pragma unroll
  for (int i = 0; i < kElements; ++i) store_scaled(values[i], scale, stored + i);
  *reinterpret_cast<long long*>(to) = *reinterpret_cast<const long long*>(stored);
}

TW_INLINE void quantise(const QuantiseArguments& call,
                        const tilewright::abi::SnippetArguments& snippet) {
  constexpr int kElements = tilewright::abi::kQuantiseElements;
  const int of_head = call.width / kElements, of_row = of_head * call.heads;
  quantise_block(call, blockIdx.x, [&](const auto* source, int rows, const auto& row_of) {
    for (int id = threadIdx.x; id < rows * of_row; id += tilewright::abi::kQuantiseThreads) {
      const int i = id / of_row, in_row = id - i * of_row;
      const int h = in_row / of_head, column = (in_row - h * of_head) * kElements;
      const QuantisedRow row = row_of(i);
      if (row.batch < 0) continue;
      quantise_elements(source + tilewright::abi::offset_of(call.from, row, h) + column,
                        call.is_aligned != 0, scale_of_row(call, snippet, row, h),
                        static_cast<StoredElement*>(call.to.data) +
                            tilewright::abi::offset_of(call.to, row, h) + column);
    }
  });
}

}  // namespace tw_kernel
