#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../base/ceil_div.hpp"

namespace tilewright::verify {

/// The rows and columns of a head in cells no smaller than any tile, and which cells keep an
/// element. What a tile keeps reaches at most its cell's neighbours.
class KeptCells {
 public:
  /// @param block sides of the mask's tiles; a kernel's own may be greater, and begin elsewhere
  KeptCells(std::int64_t rows, std::int64_t columns, const std::array<std::int64_t, 2>& block)
      : row_side_(std::max(kGreatestTile, block[0])),
        column_side_(std::max(kGreatestTile, block[1])),
        width_(ceil_div(columns, column_side_)),
        height_(ceil_div(rows, row_side_)),
        kept_(static_cast<std::size_t>(width_ * height_)) {}

  /// @param keep of each column: not 0 where the row keeps it
  /// @return whether the row keeps some
  bool keep_row(std::int64_t row, const std::vector<unsigned char>& keep) {
    bool keeps_some = false;
    for (std::size_t column = 0; column < keep.size(); ++column) {
      if (keep[column] == 0) continue;
      const std::int64_t cell = static_cast<std::int64_t>(column) / column_side_;
      kept_[static_cast<std::size_t>(row / row_side_ * width_ + cell)] = true;
      keeps_some = true;
    }
    return keeps_some;
  }

  bool may_share_a_tile(std::int64_t row, std::int64_t column) const {
    const std::int64_t y = row / row_side_, x = column / column_side_;
    for (std::int64_t i = std::max<std::int64_t>(y - 1, 0); i < std::min(y + 2, height_); ++i) {
      for (std::int64_t j = std::max<std::int64_t>(x - 1, 0); j < std::min(x + 2, width_); ++j) {
        if (kept_[static_cast<std::size_t>(i * width_ + j)]) return true;
      }
    }
    return false;
  }

 private:
  static constexpr std::int64_t kGreatestTile = 256;  // of any kernel's rows or columns

  std::int64_t row_side_, column_side_, width_, height_;
  std::vector<bool> kept_;
};

}  // namespace tilewright::verify
