#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kept_cells.hpp"
#include "reference.hpp"

namespace tilewright::verify {

/// Which columns the rows of one query head keep.
template <typename Score>
class KeptRows {
 public:
  /// @param snippets outlives this
  /// @param block    sides of the mask's tiles
  KeptRows(const DenseProblem& problem, const RowSnippets<Score>& snippets,
           const std::array<std::int64_t, 2>& block, std::int64_t b, std::int64_t h)
      : snippets_(snippets),
        b_(b),
        h_(h),
        scores_(static_cast<std::size_t>(problem.k.rows)),
        modified_(scores_.size()),
        keep_(scores_.size()),
        cells_(problem.q.rows, problem.k.rows, block) {
    for (std::int64_t row = 0; row < problem.q.rows; ++row) {
      keeps_some_.push_back(cells_.keep_row(row, columns_of(row)));
    }
  }

  /// Evaluates the row's snippets. Of each column: not 0 where the row keeps it, until the next
  /// call.
  const std::vector<unsigned char>& columns_of(std::int64_t row) {
    snippets_(b_, h_, row, scores_.data(), modified_.data(), keep_.data());
    return keep_;
  }
  bool keeps_some(std::int64_t row) const { return keeps_some_[static_cast<std::size_t>(row)]; }
  bool may_share_a_tile(std::int64_t row, std::int64_t column) const {
    return cells_.may_share_a_tile(row, column);
  }

 private:
  const RowSnippets<Score>& snippets_;
  std::int64_t b_, h_;
  std::vector<Score> scores_, modified_;
  std::vector<unsigned char> keep_;
  KeptCells cells_;
  std::vector<bool> keeps_some_ = {};
};

}  // namespace tilewright::verify
