#include "verify/mask_check.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/counted.hpp"
#include "verify/parts.hpp"
#include "verify/positions.hpp"

namespace tilewright::verify {
namespace {

using Tile = BlockMask::Tile;

const char* name_of(Tile tile) {
  return tile == Tile::empty ? "empty" : tile == Tile::full ? "full" : "partial";
}

// One row of tiles of one head, and what every tile of it should be.
struct TileRow {
  std::int64_t b, h, q_block;
  std::int64_t rows = 0;           // inside q_len
  std::vector<std::int64_t> kept;  // elements of each tile
};

TileRow count_kept(const std::array<std::int64_t, 2>& block, const Shape& shape,
                   const KeptRow& kept_row, TileRow tiles) {
  std::vector<unsigned char> keep(static_cast<std::size_t>(shape.kv_len));
  const std::int64_t first = tiles.q_block * block[0];
  const std::int64_t last = std::min(first + block[0], shape.q_len);
  tiles.rows = last - first;
  for (std::int64_t row = first; row < last; ++row) {
    kept_row(tiles.b, tiles.h, row, keep.data());
    for (std::int64_t column = 0; column < shape.kv_len; ++column) {
      tiles.kept[static_cast<std::size_t>(column / block[1])] +=
          keep[static_cast<std::size_t>(column)] != 0;
    }
  }
  return tiles;
}

std::int64_t columns_of(const std::array<std::int64_t, 2>& block, const Shape& shape,
                        std::size_t kv_block) {
  const std::int64_t first = static_cast<std::int64_t>(kv_block) * block[1];
  return std::min(first + block[1], shape.kv_len) - first;
}

std::string describe(const TileRow& tiles, std::size_t kv_block, Tile listed,
                     std::int64_t elements) {
  return fmt::format(
      "tile (q block {}, kv block {}) of b {}, h {} is listed as {}, but mask_mod keeps {} of its "
      "{} elements",
      tiles.q_block, kv_block, tiles.b, tiles.h, name_of(listed), tiles.kept[kv_block], elements);
}

void compare(MaskVerdict& verdict, const std::array<std::int64_t, 2>& block, const Shape& shape,
             const TileRow& tiles, const std::vector<Tile>& listed) {
  for (std::size_t kv_block = 0; kv_block < listed.size(); ++kv_block) {
    const std::int64_t elements = tiles.rows * columns_of(block, shape, kv_block);
    const std::int64_t kept = tiles.kept[kv_block];
    const Tile wanted = kept == 0 ? Tile::empty : kept == elements ? Tile::full : Tile::partial;
    ++verdict.tiles;
    if (listed[kv_block] == wanted) continue;
    if (verdict.wrong_tiles++ == 0) {
      verdict.first_wrong = describe(tiles, kv_block, listed[kv_block], elements);
    }
  }
}

// What a map says of one sequence, and what it should say.
class SequenceCheck {
 public:
  SequenceCheck(const Spec& spec, const PlanMap& map, const Parts::Piece& piece,
                const KeptRow& kept_row)
      : block_(spec.block), map_(map), piece_(piece), kept_row_(kept_row) {}

  std::int64_t rows() const {
    return piece_.columns() == 0
               ? 0
               : piece_.arguments.num_q_heads * ceil_div(piece_.rows(), block_[0]);
  }

  TileRow count(std::int64_t item) const {
    const std::int64_t q_blocks = ceil_div(piece_.rows(), block_[0]);
    const Shape shape{.q_len = piece_.rows(), .kv_len = piece_.columns()};
    TileRow tiles{.b = piece_.b,
                  .h = item / q_blocks,
                  .q_block = item % q_blocks,
                  .rows = 0,
                  .kept = std::vector<std::int64_t>(
                      static_cast<std::size_t>(ceil_div(piece_.columns(), block_[1])))};
    return count_kept(block_, shape, kept_row_, std::move(tiles));
  }

  void compare(MaskVerdict& verdict, const TileRow& tiles) const {
    const Shape shape{.q_len = piece_.rows(), .kv_len = piece_.columns()};
    const std::vector<Tile> listed = map_.row(tiles.b, tiles.h, tiles.q_block);
    for (std::size_t kv_block = 0; kv_block < listed.size(); ++kv_block) {
      const std::int64_t elements = tiles.rows * columns_of(block_, shape, kv_block);
      const std::int64_t kept = tiles.kept[kv_block];
      ++verdict.tiles;
      const bool is_right = listed[kv_block] == Tile::partial ||
                            kept == (listed[kv_block] == Tile::full ? elements : 0);
      if (is_right || verdict.wrong_tiles++ > 0) continue;
      verdict.first_wrong = describe(tiles, kv_block, listed[kv_block], elements);
    }
    if (!map_.marks_more(tiles.b, tiles.h, tiles.q_block) || verdict.wrong_tiles++ > 0) return;
    verdict.first_wrong =
        fmt::format("q block {} of b {}, h {} has tiles after the sequence's last column",
                    tiles.q_block, tiles.b, tiles.h);
  }

 private:
  std::array<std::int64_t, 2> block_;
  const PlanMap& map_;
  const Parts::Piece& piece_;
  const KeptRow& kept_row_;
};

// kept_row_of: of a sequence; null where there is no mask_mod
using KeptRowOf = std::function<KeptRow(const Parts::Piece&)>;

std::string describe(const SequenceRows& rows) {
  return fmt::format("rows {}..{} of q, {}..{} of k, offsets {} and {}", rows.q_begin,
                     rows.q_begin + rows.q_len, rows.kv_begin, rows.kv_begin + rows.kv_len,
                     rows.q_offset, rows.kv_offset);
}

void compare_lengths(MaskVerdict& verdict, const Problem& problem, const PlanMap& map) {
  const std::vector<SequenceRows> wanted = read_sequences(problem);
  for (std::size_t b = 0; b < wanted.size(); ++b) {
    const abi::PlannedSequence& planned = map.sequences()[b];
    const SequenceRows given{planned.q_begin,  planned.q_len,     planned.kv_begin, planned.kv_len,
                             planned.q_offset, planned.kv_offset, wanted[b].pages};
    if (given.has_rows_of(wanted[b]) || verdict.wrong_tiles++ > 0) continue;
    verdict.first_wrong = fmt::format("sequence {} is planned with {}, but has {}", b,
                                      describe(given), describe(wanted[b]));
  }
}

// Rows of tiles of one sequence against lists over positions. Their rows follow one another, and
// each has one list.
void compare_positions(MaskVerdict& verdict, const BlockMask& lists, const PlanMap& map,
                       const Parts::Piece& piece) {
  const PositionTiles positions(lists, piece);
  const auto refuse = [&](const std::string& what) {
    if (verdict.wrong_tiles++ == 0) verdict.first_wrong = what;
  };
  std::int64_t next = 0;
  for (std::int64_t q_block = 0; q_block < map.q_blocks(piece.b); ++q_block) {
    const abi::RowsOfTiles rows = map.rows_of(piece.b, q_block);
    const std::string name = fmt::format("q block {} of b {}", q_block, piece.b);
    if (rows.begin != next || rows.end <= rows.begin) {
      refuse(fmt::format("{} has rows {}..{}, after row {}", name, rows.begin, rows.end, next));
    }
    next = rows.end;
    for (std::int64_t h = 0; h < piece.arguments.num_q_heads; ++h) {
      const std::vector<Tile> planned = map.row(piece.b, h, q_block);
      verdict.tiles += static_cast<std::int64_t>(planned.size());
      for (const std::int64_t row : {rows.begin, rows.end - 1}) {
        const std::vector<Tile> wanted = positions.tiles_of_row(h, row);
        const auto [found, listed] =
            std::mismatch(planned.begin(), planned.end(), wanted.begin(), wanted.end());
        if (found == planned.end()) continue;
        refuse(fmt::format(
            "tile (q block {}, kv block {}) of b {}, h {} is planned as {}, but the "
            "positions list it as {}",
            q_block, found - planned.begin(), piece.b, h, name_of(*found), name_of(*listed)));
        break;
      }
      if (map.marks_more(piece.b, h, q_block)) {
        refuse(fmt::format("{}, h {} has tiles after the sequence's last column", name, h));
      }
    }
  }
  if (next != piece.rows()) {
    refuse(fmt::format("b {} has {}, and {} {} planned", piece.b, counted(piece.rows(), "row"),
                       next, is_or_are(next)));
  }
}

}  // namespace

MaskVerdict check_block_mask(const Spec& spec, const Problem& problem, const BlockMask& mask,
                             const FloatInterpretation& interpretation, Executor& threads) {
  const SnippetValues values(spec, problem.snippet, problem.shape);
  const abi::SnippetArguments arguments = values.arguments();
  const std::vector<float> scores(static_cast<std::size_t>(problem.shape.kv_len));
  const auto kept_row = [&](std::int64_t b, std::int64_t h, std::int64_t row, unsigned char* keep) {
    std::vector<float> modified(scores.size());
    interpretation.row(arguments, b, h, row, scores.data(), modified.data(), keep);
  };
  return check_block_mask(spec.block, problem.shape, mask, kept_row, threads);
}

MaskVerdict check_block_mask(const std::array<std::int64_t, 2>& block, const Shape& shape,
                             const BlockMask& mask, const KeptRow& kept_row, Executor& threads) {
  const std::int64_t q_blocks = ceil_div(shape.q_len, block[0]);
  const std::int64_t kv_blocks = ceil_div(shape.kv_len, block[1]);
  std::vector<TileRow> rows(static_cast<std::size_t>(shape.batch * shape.num_q_heads * q_blocks));
  threads.parallel_for(static_cast<std::int64_t>(rows.size()), [&](std::int64_t item, int) {
    TileRow tiles{.b = item / q_blocks / shape.num_q_heads,
                  .h = item / q_blocks % shape.num_q_heads,
                  .q_block = item % q_blocks,
                  .rows = 0,
                  .kept = std::vector<std::int64_t>(static_cast<std::size_t>(kv_blocks))};
    rows[static_cast<std::size_t>(item)] = count_kept(block, shape, kept_row, std::move(tiles));
  });

  MaskVerdict verdict;
  for (const TileRow& tiles : rows) {
    const std::int64_t b = mask.batch() == 1 ? 0 : tiles.b;
    const std::int64_t h = mask.heads() == 1 ? 0 : tiles.h;
    compare(verdict, block, shape, tiles, mask.row(b, h, tiles.q_block));
  }
  verdict.ok = verdict.wrong_tiles == 0;
  return verdict;
}

namespace {

MaskVerdict check_map(const Spec& spec, const Problem& problem, const PlanMap& map,
                      const KeptRowOf& kept_row_of, Executor& threads) {
  MaskVerdict verdict;
  compare_lengths(verdict, problem, map);
  if (verdict.wrong_tiles == 0 && map.has_tiles() && kept_row_of) {
    const Parts parts(spec, problem);
    for (const Parts::Piece& piece : parts.pieces()) {
      if (problem.positions) {
        compare_positions(verdict, *problem.positions, map, piece);
        continue;
      }
      const KeptRow kept_row = kept_row_of(piece);
      const SequenceCheck check(spec, map, piece, kept_row);
      std::vector<TileRow> rows(static_cast<std::size_t>(check.rows()));
      threads.parallel_for(check.rows(), [&](std::int64_t item, int) {
        rows[static_cast<std::size_t>(item)] = check.count(item);
      });
      for (const TileRow& tiles : rows) check.compare(verdict, tiles);
    }
  }
  verdict.ok = verdict.wrong_tiles == 0;
  return verdict;
}

}  // namespace

MaskVerdict check_tile_map(const Spec& spec, const Problem& problem, const PlanMap& map,
                           const FloatInterpretation* interpretation, Executor& threads) {
  if (interpretation == nullptr) return check_map(spec, problem, map, {}, threads);
  const auto kept_row_of = [interpretation](const Parts::Piece& piece) -> KeptRow {
    return [interpretation, &piece](std::int64_t b, std::int64_t h, std::int64_t row,
                                    unsigned char* keep) {
      const std::vector<float> scores(static_cast<std::size_t>(piece.columns()));
      std::vector<float> modified(scores.size());
      interpretation->row(piece.arguments, b, h, row, scores.data(), modified.data(), keep);
    };
  };
  return check_map(spec, problem, map, kept_row_of, threads);
}

MaskVerdict check_tile_map(const Spec& spec, const Problem& problem, const PlanMap& map,
                           const KeptRow& kept_row, Executor& threads) {
  return check_map(
      spec, problem, map, [&](const Parts::Piece&) { return kept_row; }, threads);
}

}  // namespace tilewright::verify
