#pragma once

#include "abi/append.hpp"
#include "abi/plan.hpp"
#include "attention/stored_number.hpp"
#include "cpu/inline.hpp"
#include "kernel/configuration.hpp"

// New rows of k and v into a pool of pages.

namespace tw_kernel {

using tilewright::abi::AppendArguments;
using tilewright::abi::AppendPlace;
using tilewright::abi::AppendTensor;

TW_INLINE void append_row(const AppendTensor& fresh, const AppendTensor& pool, int heads,
                          const AppendPlace& place) {
  for (int h = 0; h < heads; ++h) {
    const NewElement* const from = static_cast<const NewElement*>(fresh.data) +
                                   place.new_row * fresh.row_stride + h * fresh.head_stride;
    KvElement* const to = static_cast<KvElement*>(pool.data) +
                          tilewright::abi::offset_of(pool, place) + h * pool.head_stride;
    for (int d = 0; d < pool.width; ++d) store_number(from[d], to + d);
  }
}

TW_INLINE void append_row(const AppendArguments& call, const AppendPlace& place) {
  if (place.page < 0) return;
  append_row(call.k_new, call.k, call.heads, place);
  append_row(call.v_new, call.v, call.heads, place);
}

// See abi/append.hpp.
TW_INLINE void append(const AppendArguments& call, long long first, long long count) {
  if (call.slots != nullptr) {
    for (long long i = 0; i < count; ++i) {
      append_row(call, tilewright::abi::place_of_slot(call, first + i));
    }
    return;
  }
  const tilewright::abi::PlannedRow entry = call.work[first];
  const tilewright::abi::RowsOfTiles rows = tilewright::abi::rows_of_entry(call, entry);
  for (int row = rows.begin; row < rows.end; ++row) {
    append_row(call, tilewright::abi::place_of_row(call, entry.sequence, row));
  }
}

}  // namespace tw_kernel
