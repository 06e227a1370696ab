#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "../api/block_mask.hpp"
#include "../api/plan.hpp"
#include "plan_state.hpp"

namespace tilewright {

/// The tile map of a plan as it was at one time, on the host: for tools and tests.
class PlanMap {
 public:
  using Tile = BlockMask::Tile;

  /// Waits for the plan's last build.
  /// @param block sides of a tile, the spec's
  /// @throws Error with code device
  PlanMap(const Plan& plan, const std::array<std::int64_t, 2>& block);

  /// As clamped, by number.
  const std::vector<abi::PlannedSequence>& sequences() const { return sequences_; }
  /// False for a spec without mask_mod: every tile is visited, and row() must not be called.
  bool has_tiles() const { return geometry_.spans_of_row > 0; }
  /// 1, or num_q_heads where mask_mod tells heads apart.
  std::int64_t heads() const { return geometry_.heads; }
  std::int64_t q_blocks(std::int64_t b) const;
  std::int64_t kv_blocks(std::int64_t b) const;
  /// Rows of q of a row of tiles, from the sequence's first on.
  abi::RowsOfTiles rows_of(std::int64_t b, std::int64_t q_block) const;

  /// The tiles of one row of sequence b, by kv block.
  std::vector<Tile> row(std::int64_t b, std::int64_t h, std::int64_t q_block) const;
  /// Whether the words that forward reads of a row mark tiles after the sequence's last one.
  bool marks_more(std::int64_t b, std::int64_t h, std::int64_t q_block) const;

  /// Tiles of all sequences and of the map's heads.
  struct Counts {
    std::int64_t partial = 0, full = 0, empty = 0;
    /// The share that forward visits, 0 to 1; 0 without tiles.
    double density() const;
  };
  Counts counts() const;

 private:
  const abi::TileSpan* spans_of(std::int64_t b, std::int64_t h, std::int64_t q_block) const;

  std::array<std::int64_t, 2> block_;
  PlanGeometry geometry_;
  std::vector<abi::PlannedSequence> sequences_;
  std::vector<abi::TileSpan> spans_;
};

}  // namespace tilewright
