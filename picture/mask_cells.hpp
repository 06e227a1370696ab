#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "../runtime/api/block_mask.hpp"
#include "canvas.hpp"

namespace tilewright::picture {

/// One batch and head of a call. A mask that is shared by batches or heads has one list for all.
struct ListIndex {
  std::int64_t b = 0;
  std::int64_t h = 0;
};

/// One row of a call's elements: what the snippets say about each, kv_len of both.
struct ElementRow {
  std::vector<float> scores;        ///< what score_mod makes of a constant score
  std::vector<unsigned char> keep;  ///< not 0: mask_mod keeps it
};

/// Fills `row` with a row of elements of a batch and head.
using ReadElements = std::function<void(ListIndex list, std::int64_t q_row, ElementRow& row)>;

/// How many neighbours share a cell, so that `count` of them need at most `max_cells` cells: a
/// power of two.
std::int64_t neighbours_in_cell(std::int64_t count, std::int64_t max_cells);

/// The tiles of one list, counted by kind.
TileCounts count_tiles(const BlockMask& mask, ListIndex list);

/// What a cell of several tiles shows, in every picture.
enum class CellKind : std::uint8_t { empty, partial, full };

/// The kind of most visited tiles; full where both are equally many; empty where none is visited.
CellKind kind_of_cell(std::int64_t partial, std::int64_t full);

/// The legend's words for a kind, in every picture: "full: every element is kept".
std::string_view legend_of(CellKind kind);

/// The tiles of one list. A cell of several tiles has the colour of most visited ones, paler the
/// fewer they are, but never so pale that it looks empty.
Cells tile_cells(const BlockMask& mask, ListIndex list, std::int64_t max_cells);

/// The elements of one list: kept and dropped ones in the colours of their tiles, mixed in cells of
/// several.
Cells element_cells(const BlockMask& mask, ListIndex list, const ReadElements& read,
                    std::int64_t max_cells);

/// Scores over the elements of one list, by cells as element_cells has them.
struct ScoreCells {
  Cells layout;               ///< without colours
  std::vector<float> values;  ///< mean of the kept elements' finite scores; NaN where there is none
};

/// Of cells with many rows only some rows are read, so that the time follows the picture.
ScoreCells score_cells(const BlockMask& mask, ListIndex list, const ReadElements& read,
                       std::int64_t max_cells);

}  // namespace tilewright::picture
