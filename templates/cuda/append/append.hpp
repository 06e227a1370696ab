#pragma once

#include "abi/append.hpp"
#include "abi/plan.hpp"
#include "attention/stored_number.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/pool_rows.hpp"
#include "kernel/row_scales.hpp"

// New rows of k and v into a pool of pages. A thread copies kElementsOfCopy elements of one row and head at a time.

namespace tw_kernel {

using tilewright::abi::AppendArguments;
using tilewright::abi::AppendedRow;
using tilewright::abi::AppendPlace;
using tilewright::abi::AppendTensor;

// scale: what the elements are divided by, or NoScale
template <typename From, typename Scale, typename To>
TW_INLINE void copy_elements(const From* from, bool, Scale scale, To* to) {
#pragma unroll
  for (int i = 0; i < kElementsOfCopy; ++i) store_scaled(from[i], scale, to + i);
}
template <typename Element>
TW_INLINE void copy_elements(const Element* from, bool is_aligned, NoScale, Element* to) {
  constexpr int kCopies = kElementsOfCopy * static_cast<int>(sizeof(Element)) / 16;
  if (kCopies > 0 && is_aligned) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      reinterpret_cast<int4*>(to)[i] = reinterpret_cast<const int4*>(from)[i];
    }
  } else {
#pragma unroll
    for (int i = 0; i < kElementsOfCopy; ++i) to[i] = from[i];
  }
}

template <typename PoolRow, typename Scale>
TW_INLINE void append_elements(const AppendTensor& fresh, const AppendTensor& pool, int page_size,
                               const AppendPlace& place, int h, int column, Scale scale) {
  const NewElement* const from = static_cast<const NewElement*>(fresh.data) +
                                 place.new_row * fresh.row_stride + h * fresh.head_stride + column;
  KvElement* const to = static_cast<KvElement*>(pool.data) +
                        tilewright::abi::offset_of(pool, place) + h * pool.head_stride;
  if constexpr (PoolRow::kIsContiguous) {
    copy_elements(from, fresh.is_aligned != 0 && pool.is_aligned != 0, scale, to + column);
  } else {
#pragma unroll
    for (int i = 0; i < kElementsOfCopy; ++i) {
      store_scaled(from[i], scale, to + PoolRow::at(column + i, page_size));
    }
  }
}

// place_of, row_of: of a row from 0 to rows - 1
template <typename PlaceOf, typename RowOf>
TW_INLINE void append_rows(const AppendArguments& call, const RowScales& scales, int rows,
                           const PlaceOf& place_of, const RowOf& row_of) {
  const int k_copies = call.k.width / kElementsOfCopy, v_copies = call.v.width / kElementsOfCopy;
  const int page_size = call.pages.page_size.value;
  const int of_head = k_copies + v_copies, of_row = of_head * call.heads;
#pragma unroll 4
  for (int id = threadIdx.x; id < rows * of_row; id += tilewright::abi::kAppendThreads) {
    const int row = id / of_row, in_row = id - row * of_row;
    const int h = in_row / of_head, copy = in_row - h * of_head;
    const AppendPlace place = place_of(row);
    if (place.page < 0) continue;
    if (copy < k_copies) {
      append_elements<KPoolRow>(call.k_new, call.k, page_size, place, h, copy * kElementsOfCopy,
                                scales.of_k(place, row_of(row), h));
    } else {
      append_elements<VPoolRow>(call.v_new, call.v, page_size, place, h,
                                (copy - k_copies) * kElementsOfCopy,
                                scales.of_v(place, row_of(row), h));
    }
  }
}

TW_INLINE void append(const AppendArguments& call, const RowScales& scales) {
  constexpr int kRows = tilewright::abi::kAppendRowsOfBlock;
  if (call.slots != nullptr) {
    const long long first = static_cast<long long>(blockIdx.x) * kRows;
    const int rows = call.rows - first < kRows ? static_cast<int>(call.rows - first) : kRows;
    append_rows(
        call, scales, rows,
        [&](int row) { return tilewright::abi::place_of_slot(call, first + row); },
        [](int) { return AppendedRow{-1, 0}; });
    return;
  }
  const auto parts = static_cast<unsigned>(call.parts_of_work);
  const auto entry = static_cast<int>(blockIdx.x / parts), part = static_cast<int>(blockIdx.x % parts);
  if (entry >= call.header->all_rows) return;
  const tilewright::abi::PlannedRow row = call.work[entry];
  const tilewright::abi::RowsOfTiles rows = tilewright::abi::rows_of_entry(call, row);
  const int first = rows.begin + part * kRows;
  const int left = rows.end - first;
  append_rows(
      call, scales, left < kRows ? left : kRows,
      [&](int i) { return tilewright::abi::place_of_row(call, row.sequence, first + i); },
      [&](int i) {
        return AppendedRow{row.sequence, first + i};
      });
}

}  // namespace tw_kernel
