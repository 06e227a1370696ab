#pragma once

#include "abi/cuda_packed.hpp"
#include "abi/plan.hpp"
#include "abi/tile_map.hpp"
#include "cuda/attention/place.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/sequence.hpp"

// The q tiles of a packed call, by their numbers: rows of tiles in the order of the plan, each with all
// heads, whose K and V lie side by side in the L2 cache.

namespace tw_kernel {

constexpr int kTilesOfRow = kBlockQ / kQTile;
static_assert(kBlockQ % kQTile == 0, "a row of the tile map is a whole number of q tiles");

// Q tiles of all heads.
TW_INLINE unsigned count_q_tiles(const ForwardArguments& arguments, const SnippetArguments& call) {
  return static_cast<unsigned>(arguments.plan.header->rows) * kTilesOfRow * call.num_q_heads;
}

// What says which kv tiles a q tile visits.
TW_INLINE const tilewright::abi::TileMap& tile_source(const ForwardArguments& arguments) {
  return arguments.plan.map;
}

// A number behind the last q tile gives a place without rows.
TW_INLINE Place find_place(const ForwardArguments& arguments, const SnippetArguments& call,
                           unsigned number) {
  const tilewright::abi::cuda::PlanArguments& plan = arguments.plan;
  Place place;
  place.h = static_cast<int>(number % call.num_q_heads);
  place.h_kv = place.h / (call.num_q_heads / call.num_kv_heads);
  const auto item = static_cast<int>(number / call.num_q_heads);
  const int rank = item / kTilesOfRow;
  if (rank >= plan.header->rows) {
    place.rows = {};
    place.b = place.first_row = place.mask_row = 0;
    return place;
  }
  const int list = plan.map.heads == 1 ? 0 : place.h;
  const tilewright::abi::PlannedRow row =
      plan.work[static_cast<long long>(list) * plan.map.rows + rank];
  place.b = row.sequence;
  place.rows = plan.sequences[row.sequence];
  place.first_row = row.q_block * kBlockQ + item % kTilesOfRow * kQTile;
  place.mask_row = list * plan.map.rows + row.q_block +
                   tilewright::abi::row_of_sequence(place.rows.q_begin, row.sequence, kBlockQ);
  return place;
}

}  // namespace tw_kernel
