#pragma once

#include "abi/append.hpp"
#include "abi/plan.hpp"
#include "attention/stored_number.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// New rows of k and v into a pool of pages. A thread copies 8 elements of one row and head at a time.

namespace tw_kernel {

using tilewright::abi::AppendArguments;
using tilewright::abi::AppendPlace;
using tilewright::abi::AppendTensor;

template <typename From, typename To>
TW_INLINE void copy_elements(const From* from, bool, To* to) {
#pragma unroll
  for (int i = 0; i < tilewright::abi::kAppendElements; ++i) store_number(from[i], to + i);
}
template <typename Element>
TW_INLINE void copy_elements(const Element* from, bool is_aligned, Element* to) {
  if (is_aligned) {
    constexpr int kCopies = tilewright::abi::kAppendElements * static_cast<int>(sizeof(Element)) / 16;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      reinterpret_cast<int4*>(to)[i] = reinterpret_cast<const int4*>(from)[i];
    }
  } else {
#pragma unroll
    for (int i = 0; i < tilewright::abi::kAppendElements; ++i) to[i] = from[i];
  }
}

TW_INLINE void append_elements(const AppendTensor& fresh, const AppendTensor& pool,
                               const AppendPlace& place, int h, int column) {
  const NewElement* const from = static_cast<const NewElement*>(fresh.data) +
                                 place.new_row * fresh.row_stride + h * fresh.head_stride + column;
  KvElement* const to = static_cast<KvElement*>(pool.data) +
                        tilewright::abi::offset_of(pool, place) + h * pool.head_stride + column;
  copy_elements(from, fresh.is_aligned != 0 && pool.is_aligned != 0, to);
}

// place_of: of a row from 0 to rows - 1
template <typename PlaceOf>
TW_INLINE void append_rows(const AppendArguments& call, int rows, const PlaceOf& place_of) {
  constexpr int kElements = tilewright::abi::kAppendElements;
  const int k_copies = call.k.width / kElements, v_copies = call.v.width / kElements;
  const int of_head = k_copies + v_copies, of_row = of_head * call.heads;
#pragma unroll 4
  for (int id = threadIdx.x; id < rows * of_row; id += tilewright::abi::kAppendThreads) {
    const int row = id / of_row, in_row = id - row * of_row;
    const int h = in_row / of_head, copy = in_row - h * of_head;
    const AppendPlace place = place_of(row);
    if (place.page < 0) continue;
    if (copy < k_copies) {
      append_elements(call.k_new, call.k, place, h, copy * kElements);
    } else {
      append_elements(call.v_new, call.v, place, h, (copy - k_copies) * kElements);
    }
  }
}

TW_INLINE void append(const AppendArguments& call) {
  constexpr int kRows = tilewright::abi::kAppendRowsOfBlock;
  if (call.slots != nullptr) {
    const long long first = static_cast<long long>(blockIdx.x) * kRows;
    const int rows = call.rows - first < kRows ? static_cast<int>(call.rows - first) : kRows;
    append_rows(call, rows,
                [&](int row) { return tilewright::abi::place_of_slot(call, first + row); });
    return;
  }
  const auto parts = static_cast<unsigned>(call.parts_of_work);
  const auto entry = static_cast<int>(blockIdx.x / parts), part = static_cast<int>(blockIdx.x % parts);
  if (entry >= call.header->all_rows) return;
  const tilewright::abi::PlannedRow row = call.work[entry];
  const tilewright::abi::RowsOfTiles rows = tilewright::abi::rows_of_entry(call, row);
  const int first = rows.begin + part * kRows;
  const int left = rows.end - first;
  append_rows(call, left < kRows ? left : kRows, [&](int i) {
    return tilewright::abi::place_of_row(call, row.sequence, first + i);
  });
}

}  // namespace tw_kernel
