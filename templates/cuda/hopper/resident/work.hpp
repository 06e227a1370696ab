#pragma once

#include "cuda/attention/q_tile.hpp"
#include "kernel/configuration.hpp"

// What a block of threads works on while K and V of a sequence stay in its shared memory.

namespace tw_kernel {

constexpr int kUnitRows = 64;  // of q, that a warpgroup computes at a time
constexpr int kUnitsOfBlock = kBlockQ / kUnitRows;
static_assert(kBlockQ % kUnitRows == 0, "a unit's rows are of one row of tiles");
static_assert(kStages <= 8, "a byte has a bit for each tile");

// One sequence with one head of K and V, and some of the query heads that share it. Its units go from the
// sequence's last rows to its first, and at the same rows from head to head: under a causal mask the last tiles
// are done with first, and the next item's come to their places while the first rows are computed.
struct ResidentItem {
  QTile q_tile;      // of the first of its heads; with all of the sequence's rows
  int heads;         // 0: no item is left
  int lead;          // of the sequence: rows before its first in its first row of tiles (abi/plan.hpp)
  int row_of_tiles;  // of the tile map: the sequence's first, in list 0
  int units;         // of a head, counted from the begin of its first row of tiles
  int kv_tiles;      // that the sequence has
  int needed_from[kStages];  // of each tile the first unit of a head that has something of it; kUnneeded: none has

  static constexpr int kUnneeded = 1 << 30;

  // The first one with rows.
  __forceinline__ int first_unit() const { return lead / kUnitRows; }

  // Bit t: one of the units from the first to `unit` may have something of tile t.
  __forceinline__ unsigned needed_up_to(int unit) const {
    unsigned tiles = 0;
#pragma unroll
    for (int t = 0; t < kStages; ++t) tiles |= static_cast<unsigned>(needed_from[t] <= unit) << t;
    return tiles;
  }
  // Bit t: tile t is brought.
  __forceinline__ unsigned brought() const { return needed_up_to(units); }
};

// Bit t of each: tile t.
struct TilesOfUnit {
  unsigned char kept;      // it is visited
  unsigned char partial;   // and the mask decides over its elements
  unsigned char masked;    // partial, or some of its rows or columns do not exist
  unsigned char released;  // the warpgroup needs it no more after this unit
};

// What a warpgroup is told of its next 64 rows.
struct Unit {
  enum class Kind : int { rows, none, end };  // none: it has no rows in this item, and only gives tiles back

  // A q tile of all warpgroups in which this one has the unit's rows. The others' rows do not count; it ends with the
  // unit's.
  QTile q_tile;
  Kind kind;
  TilesOfUnit tiles;
};

}  // namespace tw_kernel
