#include "picture/mask_cells.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/ceil_div.hpp"

namespace tilewright::picture {
namespace {

using Tile = BlockMask::Tile;

// Fainter, a visited tile among many empty ones would be lost on the page.
constexpr double kLeastVisible = 0.3;
// A cell's colour is one of few, so that neighbours share it and an SVG stays small.
constexpr double kShades = 16;
// Of each cell, when scores are drawn.
constexpr std::int64_t kRowsRead = 4;

ListIndex list_in(const BlockMask& mask, ListIndex list) {
  return {.b = mask.batch() == 1 ? 0 : list.b, .h = mask.heads() == 1 ? 0 : list.h};
}

std::int64_t first_row_of(const BlockMask& mask, ListIndex list) {
  const ListIndex own = list_in(mask, list);
  return (own.b * mask.heads() + own.h) * mask.q_blocks();
}

Color shade(std::int64_t partial, std::int64_t full, std::int64_t tiles) {
  const CellKind kind = kind_of_cell(partial, full);
  if (kind == CellKind::empty) return kEmpty;
  // Blue and orange would mix to a grey that neither is.
  const Color hue = kind == CellKind::partial ? kPartial : kFull;
  const double visited = static_cast<double>(partial + full) / static_cast<double>(tiles);
  const double share = std::max(kLeastVisible, std::round(visited * kShades) / kShades);
  return mix(kEmpty, hue, share);
}

Cells layout(std::int64_t height, std::int64_t width, std::int64_t tokens_down,
             std::int64_t tokens_across) {
  Cells cells{.rows = ceil_div(height, tokens_down),
              .columns = ceil_div(width, tokens_across),
              .tokens_down = tokens_down,
              .tokens_across = tokens_across,
              .height = height,
              .width = width,
              .colors = {}};
  return cells;
}

Cells element_layout(const BlockMask& mask, std::int64_t max_cells) {
  const Shape& shape = mask.fingerprint().shape;
  return layout(shape.q_len, shape.kv_len, neighbours_in_cell(shape.q_len, max_cells),
                neighbours_in_cell(shape.kv_len, max_cells));
}

// An element as attention treats it: mask_mod is asked in partial tiles only.
enum class Element : std::uint8_t { skipped, dropped, kept_in_partial, kept_in_full };
constexpr std::array<Color, 4> kElementColors = {kEmpty, kPartialDropped, kPartial, kFull};

Element element_in(Tile tile, bool keep) {
  if (tile == Tile::empty) return Element::skipped;
  if (tile == Tile::full) return Element::kept_in_full;
  return keep ? Element::kept_in_partial : Element::dropped;
}

class ElementReader {
 public:
  ElementReader(const BlockMask& mask, ListIndex list, const ReadElements& read)
      : mask_(mask), list_(list), read_(read) {}

  void go_to(std::int64_t q_row) {
    const ListIndex own = list_in(mask_, list_);
    const std::int64_t q_block = q_row / mask_.block()[0];
    if (q_block != q_block_) tiles_ = mask_.row(own.b, own.h, q_block);
    q_block_ = q_block;
    read_(list_, q_row, row_);
  }

  Element at(std::int64_t column) const {
    const auto i = static_cast<std::size_t>(column);
    return element_in(tiles_[static_cast<std::size_t>(column / mask_.block()[1])],
                      row_.keep[i] != 0);
  }
  float score(std::int64_t column) const { return row_.scores[static_cast<std::size_t>(column)]; }

 private:
  const BlockMask& mask_;
  ListIndex list_;
  const ReadElements& read_;
  std::int64_t q_block_ = -1;
  std::vector<Tile> tiles_;
  ElementRow row_;
};

Color mean_color(const std::array<std::int64_t, 4>& counts) {
  std::array<double, 3> sum{};
  std::int64_t elements = 0;
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    const Color color = kElementColors[kind];
    const auto count = static_cast<double>(counts[kind]);
    sum[0] += count * color.red;
    sum[1] += count * color.green;
    sum[2] += count * color.blue;
    elements += counts[kind];
  }
  const auto mean = [&](double value) {
    return static_cast<std::uint8_t>(std::lround(value / static_cast<double>(elements)));
  };
  return {mean(sum[0]), mean(sum[1]), mean(sum[2])};
}

}  // namespace

std::int64_t neighbours_in_cell(std::int64_t count, std::int64_t max_cells) {
  std::int64_t neighbours = 1;
  while (ceil_div(count, neighbours) > max_cells) neighbours *= 2;
  return neighbours;
}

CellKind kind_of_cell(std::int64_t partial, std::int64_t full) {
  if (partial + full == 0) return CellKind::empty;
  return partial > full ? CellKind::partial : CellKind::full;
}

std::string_view legend_of(CellKind kind) {
  switch (kind) {
    case CellKind::full:
      return "full: every element is kept";
    case CellKind::partial:
      return "partial: mask_mod decides";
    case CellKind::empty:
      return "empty: skipped";
  }
  return "";
}

TileCounts count_tiles(const BlockMask& mask, ListIndex list) {
  const TileLists& lists = mask.lists();
  const std::int64_t first = first_row_of(mask, list), last = first + mask.q_blocks();
  return {.partial = lists.row_offsets[last] - lists.row_offsets[first],
          .full = lists.full_row_offsets[last] - lists.full_row_offsets[first],
          .evaluated = 0};
}

Cells tile_cells(const BlockMask& mask, ListIndex list, std::int64_t max_cells) {
  const std::int64_t down = neighbours_in_cell(mask.q_blocks(), max_cells);
  const std::int64_t across = neighbours_in_cell(mask.kv_blocks(), max_cells);
  const Shape& shape = mask.fingerprint().shape;
  Cells cells = layout(shape.q_len, shape.kv_len, down * mask.block()[0], across * mask.block()[1]);
  const auto count = static_cast<std::size_t>(cells.rows * cells.columns);
  std::vector<std::int64_t> partial(count), full(count);
  const std::int64_t first = first_row_of(mask, list);
  const TileLists& lists = mask.lists();
  const auto add = [&](const std::vector<std::int64_t>& offsets,
                       const std::vector<std::int32_t>& indices, std::vector<std::int64_t>& to) {
    for (std::int64_t q_block = 0; q_block < mask.q_blocks(); ++q_block) {
      const std::int64_t cell_row = q_block / down * cells.columns;
      for (std::int64_t i = offsets[first + q_block]; i < offsets[first + q_block + 1]; ++i) {
        ++to[static_cast<std::size_t>(cell_row + indices[i] / across)];
      }
    }
  };
  add(lists.row_offsets, lists.indices, partial);
  add(lists.full_row_offsets, lists.full_indices, full);
  for (std::int64_t row = 0; row < cells.rows; ++row) {
    const std::int64_t tiles_down = std::min(down, mask.q_blocks() - row * down);
    for (std::int64_t column = 0; column < cells.columns; ++column) {
      const std::int64_t tiles_across = std::min(across, mask.kv_blocks() - column * across);
      const auto cell = static_cast<std::size_t>(row * cells.columns + column);
      cells.colors.push_back(shade(partial[cell], full[cell], tiles_down * tiles_across));
    }
  }
  return cells;
}

Cells element_cells(const BlockMask& mask, ListIndex list, const ReadElements& read,
                    std::int64_t max_cells) {
  Cells cells = element_layout(mask, max_cells);
  ElementReader reader(mask, list, read);
  for (std::int64_t row = 0; row < cells.rows; ++row) {
    std::vector<std::array<std::int64_t, 4>> counts(static_cast<std::size_t>(cells.columns));
    const std::int64_t last = std::min((row + 1) * cells.tokens_down, cells.height);
    for (std::int64_t q_row = row * cells.tokens_down; q_row < last; ++q_row) {
      reader.go_to(q_row);
      for (std::int64_t column = 0; column < cells.width; ++column) {
        ++counts[static_cast<std::size_t>(column / cells.tokens_across)]
                [static_cast<std::size_t>(reader.at(column))];
      }
    }
    for (const auto& cell : counts) cells.colors.push_back(mean_color(cell));
  }
  return cells;
}

ScoreCells score_cells(const BlockMask& mask, ListIndex list, const ReadElements& read,
                       std::int64_t max_cells) {
  ScoreCells result{.layout = element_layout(mask, max_cells), .values = {}};
  const Cells& cells = result.layout;
  ElementReader reader(mask, list, read);
  for (std::int64_t row = 0; row < cells.rows; ++row) {
    std::vector<double> sums(static_cast<std::size_t>(cells.columns));
    std::vector<std::int64_t> counts(sums.size());
    const std::int64_t first = row * cells.tokens_down;
    const std::int64_t rows = std::min(cells.tokens_down, cells.height - first);
    const std::int64_t rows_read = std::min(rows, kRowsRead);
    for (std::int64_t i = 0; i < rows_read; ++i) {
      reader.go_to(first + (2 * i + 1) * rows / (2 * rows_read));
      for (std::int64_t column = 0; column < cells.width; ++column) {
        const Element element = reader.at(column);
        const float score = reader.score(column);
        if (element < Element::kept_in_partial || !std::isfinite(score)) continue;
        const auto cell = static_cast<std::size_t>(column / cells.tokens_across);
        sums[cell] += static_cast<double>(score);
        ++counts[cell];
      }
    }
    for (std::size_t cell = 0; cell < sums.size(); ++cell) {
      result.values.push_back(
          counts[cell] == 0 ? std::numeric_limits<float>::quiet_NaN()
                            : static_cast<float>(sums[cell] / static_cast<double>(counts[cell])));
    }
  }
  return result;
}

}  // namespace tilewright::picture
