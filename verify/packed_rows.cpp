#include "verify/packed_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "verify/sequences.hpp"

namespace tilewright::verify {

AttentionValues rows_of_sequences(AttentionValues written, const Problem& problem) {
  if (!problem.sequences) return written;
  std::vector<bool> is_planned(static_cast<std::size_t>(problem.shape.q_len));
  for (const SequenceRows& rows : read_sequences(problem)) {
    std::fill_n(is_planned.begin() + rows.q_begin, rows.q_len, true);
  }
  for (Values* const one : {&written.out, &written.lse, &written.max_scores}) {
    for (std::int64_t item = 0; item < one->heads * one->rows; ++item) {
      const std::int64_t row = item % one->rows;
      if (is_planned[static_cast<std::size_t>(row)]) continue;
      std::fill_n(one->row(0, item / one->rows, row), one->width,
                  std::numeric_limits<double>::quiet_NaN());
    }
  }
  return written;
}

PlaceOfRow place_of_rows(const Problem& problem) {
  if (!problem.sequences) return {};
  return [sequences = read_sequences(problem)](std::int64_t, std::int64_t row) {
    for (std::size_t b = 0; b < sequences.size(); ++b) {
      const std::int64_t inside = row - sequences[b].q_begin;
      if (inside >= 0 && inside < sequences[b].q_len) {
        return RowPlace{static_cast<std::int64_t>(b), inside};
      }
    }
    return RowPlace{-1, row};
  };
}

}  // namespace tilewright::verify
