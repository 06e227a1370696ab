#pragma once

#include "abi/append.hpp"
#include "abi/plan.hpp"
#include "attention/stored_number.hpp"
#include "cpu/inline.hpp"
#include "kernel/configuration.hpp"
#include "kernel/pool_rows.hpp"
#include "kernel/row_scales.hpp"

// New rows of k and v into a pool of pages.

namespace tw_kernel {

using tilewright::abi::AppendArguments;
using tilewright::abi::AppendedRow;
using tilewright::abi::AppendPlace;
using tilewright::abi::AppendTensor;

// scale_of: of a head
template <typename PoolRow, typename ScaleOf>
TW_INLINE void append_row(const AppendTensor& fresh, const AppendTensor& pool, int heads,
                          int page_size, const AppendPlace& place, const ScaleOf& scale_of) {
  for (int h = 0; h < heads; ++h) {
    const auto scale = scale_of(h);
    const NewElement* const from = static_cast<const NewElement*>(fresh.data) +
                                   place.new_row * fresh.row_stride + h * fresh.head_stride;
    KvElement* const to = static_cast<KvElement*>(pool.data) +
                          tilewright::abi::offset_of(pool, place) + h * pool.head_stride;
    for (int d = 0; d < pool.width; ++d) {
      store_scaled(from[d], scale, to + PoolRow::at(d, page_size));
    }
  }
}

TW_INLINE void append_row(const AppendArguments& call, const AppendPlace& place,
                          const AppendedRow& row, const RowScales& scales) {
  if (place.page < 0) return;
  const int page_size = call.pages.page_size.value;
  append_row<KPoolRow>(call.k_new, call.k, call.heads, page_size, place,
                       [&](int h) { return scales.of_k(place, row, h); });
  append_row<VPoolRow>(call.v_new, call.v, call.heads, page_size, place,
                       [&](int h) { return scales.of_v(place, row, h); });
}

// See abi/append.hpp.
TW_INLINE void append(const AppendArguments& call, const RowScales& scales, long long first,
                      long long count) {
  if (call.slots != nullptr) {
    for (long long i = 0; i < count; ++i) {
      append_row(call, tilewright::abi::place_of_slot(call, first + i), {-1, 0}, scales);
    }
    return;
  }
  const tilewright::abi::PlannedRow entry = call.work[first];
  const tilewright::abi::RowsOfTiles rows = tilewright::abi::rows_of_entry(call, entry);
  for (int row = rows.begin; row < rows.end; ++row) {
    append_row(call, tilewright::abi::place_of_row(call, entry.sequence, row),
               {entry.sequence, row}, scales);
  }
}

}  // namespace tw_kernel
