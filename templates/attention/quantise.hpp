#pragma once

#include "abi/quantise.hpp"
#include "attention/row_state.hpp"
#include "kernel/configuration.hpp"
#include "kernel/element.hpp"
#include "kernel/language.hpp"
#include "snippet/scales.hpp"
#include "snippet/snippets.hpp"

// Which rows a block of the kernel quantise stores, and what it divides them by.

namespace tw_kernel {

using tilewright::abi::QuantiseArguments;
using tilewright::abi::QuantisedRow;

TW_INLINE float scale_of_row(const QuantiseArguments& call,
                             const tilewright::abi::SnippetArguments& snippet,
                             const QuantisedRow& row, int h) {
  StoredRow stored = {snippet.q_len, snippet.kv_len, row.index, row.token};
  if (call.sequences != nullptr) {
    stored.q_len = call.sequences[row.b].q_len;
    stored.kv_len = call.sequences[row.b].kv_len;
  }
  const tw_snippet::tw_State state = state_of_row(snippet, stored, call.pages);
  if (call.operand == tilewright::abi::kQuantiseQ) {
    return tw_snippet::tw_q_scale(state, row.b, h, h / call.group, row.index);
  }
  return call.operand == tilewright::abi::kQuantiseK
             ? tw_snippet::tw_k_scale(state, row.b, 0, h, row.index)
             : tw_snippet::tw_v_scale(state, row.b, 0, h, row.index);
}

// store(source type, rows, row_of): of up to kQuantiseRowsOfBlock rows
template <typename Source, typename Store>
TW_INLINE void quantise_block(const QuantiseArguments& call, long long block, const Store& store) {
  constexpr int kRows = tilewright::abi::kQuantiseRowsOfBlock;
  if (call.sequences == nullptr) {
    const long long first = block * kRows, left = call.all_rows - first;
    store(static_cast<const Source*>(call.from.data), left < kRows ? static_cast<int>(left) : kRows,
          [&](int i) { return tilewright::abi::row_of_tensor(call, first + i); });
    return;
  }
  const int b = static_cast<int>(block / call.parts_of_sequence);
  const int part = static_cast<int>(block % call.parts_of_sequence);
  const int rows = tilewright::abi::rows_to_quantise(call, call.sequences[b]);
  for (int first = part * kRows; first < rows; first += call.parts_of_sequence * kRows) {
    store(static_cast<const Source*>(call.from.data), rows - first < kRows ? rows - first : kRows,
          [&](int i) { return tilewright::abi::row_of_sequence_to_quantise(call, b, first + i); });
  }
}

template <typename Store>
TW_INLINE void quantise_block(const QuantiseArguments& call, long long block, const Store& store) {
  switch (call.source) {
    case tilewright::abi::kFromF16:
      return quantise_block<Half>(call, block, store);
    case tilewright::abi::kFromBF16:
      return quantise_block<BFloat16>(call, block, store);
    default:
      return quantise_block<float>(call, block, store);
  }
}

}  // namespace tw_kernel
