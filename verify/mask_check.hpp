#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "../generator/spec/spec.hpp"
#include "../runtime/api/block_mask.hpp"
#include "../runtime/api/executor.hpp"
#include "../runtime/api/shape.hpp"
#include "../runtime/call/plan_map.hpp"
#include "problem.hpp"
#include "snippet_evaluator.hpp"

namespace tilewright::verify {

/// How a block mask compares with its mask_mod evaluated at every element.
struct MaskVerdict {
  bool ok = true;
  std::int64_t tiles = 0;  ///< compared, over every batch and head of the call
  std::int64_t wrong_tiles = 0;
  std::string first_wrong = {};  ///< "tile (q block 1, kv block 0) of b 0, h 2 is full, ..."
};

/// Counts the kept elements of every tile of every batch and head by evaluation, and compares: none
/// is empty, all of those inside q_len x kv_len is full, anything else is partial. A mask whose
/// lists are shared by batches or heads must hold for each of them.
MaskVerdict check_block_mask(const Spec& spec, const Problem& problem, const BlockMask& mask,
                             const FloatInterpretation& interpretation, Executor& threads);

/// The same for the tile map of a packed call: a tile that it leaves out keeps nothing, a full one
/// keeps all of its elements inside its sequence; a partial one may keep any of them, since forward
/// evaluates it. The map's lengths must be the sequences', and nothing after their last tiles may
/// be marked. Without a mask_mod the lengths alone are compared. With positions each tile has the
/// state that their lists give it.
/// @param interpretation null where the spec has no mask_mod
MaskVerdict check_tile_map(const Spec& spec, const Problem& problem, const PlanMap& map,
                           const FloatInterpretation* interpretation, Executor& threads);

/// Which elements of one row of one head are kept: kv_len times 0 or not. Called from many threads.
using KeptRow =
    std::function<void(std::int64_t b, std::int64_t h, std::int64_t row, unsigned char* keep)>;

/// The same for a mask_mod that the caller evaluates.
MaskVerdict check_block_mask(const std::array<std::int64_t, 2>& block, const Shape& shape,
                             const BlockMask& mask, const KeptRow& kept_row, Executor& threads);
/// The same; b is the number of a sequence, row one of its own.
MaskVerdict check_tile_map(const Spec& spec, const Problem& problem, const PlanMap& map,
                           const KeptRow& kept_row, Executor& threads);

}  // namespace tilewright::verify
