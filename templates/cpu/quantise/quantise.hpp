#pragma once

#include "abi/quantise.hpp"
#include "attention/quantise.hpp"
#include "attention/stored_number.hpp"
#include "cpu/inline.hpp"
#include "kernel/configuration.hpp"

// Tensors of one byte from wider ones.

namespace tw_kernel {

TW_INLINE void quantise(const QuantiseArguments& call,
                        const tilewright::abi::SnippetArguments& snippet, long long block) {
  quantise_block(call, block, [&](const auto* source, int rows, const auto& row_of) {
    for (int i = 0; i < rows; ++i) {
      const QuantisedRow row = row_of(i);
      if (row.batch < 0) continue;
      for (int h = 0; h < call.heads; ++h) {
        const float scale = scale_of_row(call, snippet, row, h);
        const auto* const from = source + tilewright::abi::offset_of(call.from, row, h);
        StoredElement* const to = static_cast<StoredElement*>(call.to.data) +
                                  tilewright::abi::offset_of(call.to, row, h);
        for (int d = 0; d < call.width; ++d) store_scaled(from[d], scale, to + d);
      }
    }
  });
}

}  // namespace tw_kernel
