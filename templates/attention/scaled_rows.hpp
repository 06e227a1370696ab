#pragma once

#include "abi/append.hpp"
#include "abi/plan.hpp"
#include "attention/row_state.hpp"
#include "kernel/configuration.hpp"
#include "kernel/language.hpp"
#include "snippet/scales.hpp"

// New rows of a spec whose stored values of k or v have scales: they are divided by them.

namespace tw_kernel {

class RowScales {
 public:
  TW_MEMBER RowScales(const tilewright::abi::AppendArguments& call,
                      const tilewright::abi::SnippetArguments& snippet)
      : call_(call), snippet_(snippet) {}

  TW_MEMBER float of_k(const tilewright::abi::AppendPlace& place,
                       const tilewright::abi::AppendedRow& row, int h_kv) const {
    const StoredRow stored = stored_row(place, row);
    return tw_snippet::tw_k_scale(state_of_row(snippet_, stored, call_.pages), sequence_of(row), 0,
                                  h_kv, stored.index);
  }
  TW_MEMBER float of_v(const tilewright::abi::AppendPlace& place,
                       const tilewright::abi::AppendedRow& row, int h_kv) const {
    const StoredRow stored = stored_row(place, row);
    return tw_snippet::tw_v_scale(state_of_row(snippet_, stored, call_.pages), sequence_of(row), 0,
                                  h_kv, stored.index);
  }

 private:
  // With slots a scale names neither the sequence nor the column.
  TW_MEMBER static int sequence_of(const tilewright::abi::AppendedRow& row) {
    return row.sequence >= 0 ? row.sequence : 0;
  }
  TW_MEMBER StoredRow stored_row(const tilewright::abi::AppendPlace& place,
                                 const tilewright::abi::AppendedRow& row) const {
    StoredRow stored = {0, 0, 0, place.page * call_.pages.page_size.value + place.row};
    if (row.sequence >= 0) {
      const tilewright::abi::PlannedSequence& sequence = call_.sequences[row.sequence];
      stored.q_len = sequence.q_len;
      stored.kv_len = sequence.kv_len;
      stored.index = sequence.kv_len - sequence.q_len + row.row + sequence.kv_offset;
    }
    return stored;
  }

  const tilewright::abi::AppendArguments& call_;
  const tilewright::abi::SnippetArguments& snippet_;
};

}  // namespace tw_kernel
