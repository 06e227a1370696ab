#pragma once

#include <cstdint>

#include "../../generator/spec/spec.hpp"
#include "../../generator/tactic/kernel_variant.hpp"
#include "../api/sequences.hpp"
#include "../api/shape.hpp"

namespace tilewright {

/// The kernel that splits q tiles, on a device.
struct SplitLaunch {
  std::int64_t multiprocessors = 0;
  std::int64_t q_tile = 0;  ///< rows; 0: the spec has no such kernel there
  std::int64_t kv_tile = 0;
  std::int64_t value_dim = 0;
  /// Rows of q that q tiles fill: of an entry of a plan's work, of a row of a block mask, or
  /// q_tile.
  std::int64_t work_side = 0;

  /// Bytes of the partial results of a call.
  std::int64_t partial_bytes(std::int64_t q_tiles, std::int64_t parts) const;
  std::int64_t warpgroups() const { return q_tile / 64; }
};

/// The q tiles of a call.
struct QTiles {
  std::int64_t most = 0;  ///< that the call can have, whatever its sequences' lengths are
  std::int64_t room = 0;  ///< that the workspace has room for: at least `most`
};

/// SplitLaunch::work_side of dense calls.
/// @param kernel the one that splits q tiles of q_tile rows
std::int64_t dense_work_side(const Spec& spec, const KernelVariant& kernel, std::int64_t q_tile);

/// @param launch its q_tile is not 0
QTiles dense_q_tiles(const SplitLaunch& launch, const Shape& shape);

/// @param launch its q_tile is not 0
/// @param row_side rows of q of a row of tiles
/// @param rows of tiles that the plan has room for
QTiles packed_q_tiles(const SplitLaunch& launch, const PackedShape& shape, std::int64_t row_side,
                      std::int64_t rows);

/// Whether a workspace may hold so many parts of each q tile.
bool has_room_for_parts(const SplitLaunch& launch, QTiles q_tiles, std::int64_t parts);

/// @param splits PlanOptions::splits or ForwardOptions::splits
/// @throws Error with code usage for fewer than 0
void require_splits(std::int64_t splits);

/// What becomes of such a wish: blocks of threads for `items` heads of k and v whose columns are
/// cut.
/// @param blocks without the wish, and at most
std::int64_t blocks_for_splits(std::int64_t splits, std::int64_t items, std::int64_t blocks);

/// Likewise parts of each q tile. @param parts without the wish, and at most
std::int64_t parts_for_splits(std::int64_t splits, std::int64_t parts);

/// How many parts each q tile of a call is cut into, from its sizes alone; 1: none is.
/// docs/decisions/0080-splits-of-prefill.md has the reasons.
/// @param kv_len columns of the longest sequence
std::int64_t split_parts(const SplitLaunch& launch, QTiles q_tiles, std::int64_t kv_len);

}  // namespace tilewright
