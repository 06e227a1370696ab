#include "picture/text.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "picture/mask_cells.hpp"

namespace tilewright::picture {
namespace {

using Tile = BlockMask::Tile;

struct Symbols {
  const char* full;
  const char* partial;
  const char* empty = "  ";
};

Symbols symbols(const TextOptions& options) {
  return options.ascii ? Symbols{"##", "++"} : Symbols{"██", "░░"};
}

// How many tiles one cell stands for, so that `count` of them need at most `max` cells.
std::int64_t tiles_per_cell(std::int64_t count, int max) {
  const std::int64_t cells = std::max(max, 1);
  return ceil_div(count, cells);
}

// Tiles that share a cell.
struct Cell {
  std::int64_t full = 0;
  std::int64_t partial = 0;

  void add(Tile tile) {
    full += tile == Tile::full ? 1 : 0;
    partial += tile == Tile::partial ? 1 : 0;
  }
  const char* symbol(const Symbols& symbols) const {
    const CellKind kind = kind_of_cell(partial, full);
    if (kind == CellKind::empty) return symbols.empty;
    return kind == CellKind::full ? symbols.full : symbols.partial;
  }
};

// One batch and head of a mask, and how it is scaled.
struct Drawing {
  const BlockMask& mask;
  std::int64_t b;
  std::int64_t h;
  std::int64_t rows_per_cell;
  std::int64_t columns_per_cell;
  int label_width;
};

std::string cells_of(const Drawing& drawing, std::int64_t first_row, const Symbols& symbols) {
  const BlockMask& mask = drawing.mask;
  const std::int64_t columns = ceil_div(mask.kv_blocks(), drawing.columns_per_cell);
  std::vector<Cell> cells(static_cast<std::size_t>(columns));
  const std::int64_t last_row = std::min(first_row + drawing.rows_per_cell, mask.q_blocks());
  for (std::int64_t row = first_row; row < last_row; ++row) {
    const std::vector<Tile> tiles = mask.row(drawing.b, drawing.h, row);
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      cells[i / static_cast<std::size_t>(drawing.columns_per_cell)].add(tiles[i]);
    }
  }
  std::string text;
  for (const Cell& cell : cells) text += cell.symbol(symbols);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

// "kv 0            1024", the ends standing above the first and the last cell.
std::string column_axis(const Drawing& drawing) {
  const BlockMask& mask = drawing.mask;
  const std::int64_t cells = ceil_div(mask.kv_blocks(), drawing.columns_per_cell);
  const Shape& shape = mask.fingerprint().shape;
  const std::string begin = std::to_string(shape.kv_offset);
  const std::string end = std::to_string(shape.kv_len + shape.kv_offset);
  const auto width = std::max(static_cast<std::size_t>(2 * cells), begin.size() + end.size() + 1);
  return fmt::format("{:>{}}{}{:>{}}\n", "kv ", drawing.label_width + 3, begin, end,
                     width - begin.size());
}

// q_idx of a row of tiles' first row.
std::int64_t label_of_row(const BlockMask& mask, std::int64_t row) {
  return row * mask.block()[0] + mask.fingerprint().shape.q_offset;
}

std::string draw(const Drawing& drawing, const TextOptions& options) {
  const BlockMask& mask = drawing.mask;
  std::string text;
  if (mask.batch() > 1 || mask.heads() > 1) {
    text += fmt::format("\nb {}, h {}\n", drawing.b, drawing.h);
  }
  text += column_axis(drawing);
  for (std::int64_t row = 0; row < mask.q_blocks(); row += drawing.rows_per_cell) {
    const std::string line =
        fmt::format("{} {:>{}} {}", row == 0 ? "q" : " ", label_of_row(mask, row),
                    drawing.label_width, cells_of(drawing, row, symbols(options)));
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string heading(const BlockMask& mask) {
  const MaskFingerprint& fingerprint = mask.fingerprint();
  return fmt::format(
      "block mask: batch {}, heads {}, q_len {}, kv_len {}, tiles of {} x {}\n"
      "{} full, {} partial, {} empty; {:.1f} % of the tiles are visited\n",
      mask.batch(), mask.heads(), fingerprint.shape.q_len, fingerprint.shape.kv_len,
      fingerprint.source.block[0], fingerprint.source.block[1], mask.full_tiles(),
      mask.partial_tiles(), mask.empty_tiles(), 100 * mask.density());
}

std::string legend(const Drawing& drawing, const TextOptions& options) {
  const Symbols names = symbols(options);
  std::string text =
      fmt::format("{} {}\n{} {}\nblank {}\n", names.full, legend_of(CellKind::full), names.partial,
                  legend_of(CellKind::partial), legend_of(CellKind::empty));
  if (drawing.rows_per_cell * drawing.columns_per_cell == 1) return text;
  return text + fmt::format("A cell is {} x {} tiles: the kind of most that are visited.\n",
                            drawing.rows_per_cell, drawing.columns_per_cell);
}

}  // namespace

std::string text_picture(const BlockMask& mask, const TextOptions& options) {
  Drawing drawing{.mask = mask,
                  .b = 0,
                  .h = 0,
                  .rows_per_cell = tiles_per_cell(mask.q_blocks(), options.max_rows),
                  .columns_per_cell = tiles_per_cell(mask.kv_blocks(), options.max_columns),
                  .label_width = 0};
  drawing.label_width =
      static_cast<int>(std::max(std::to_string(label_of_row(mask, 0)).size(),
                                std::to_string(label_of_row(mask, mask.q_blocks() - 1)).size()));
  std::string text = heading(mask);
  const std::int64_t lists = mask.batch() * mask.heads();
  const std::int64_t drawn = std::min<std::int64_t>(lists, std::max(options.max_lists, 1));
  for (std::int64_t list = 0; list < drawn; ++list) {
    drawing.b = list / mask.heads();
    drawing.h = list % mask.heads();
    text += draw(drawing, options);
  }
  if (drawn < lists) text += fmt::format("... and {} more\n", lists - drawn);
  return text + legend(drawing, options);
}

}  // namespace tilewright::picture
