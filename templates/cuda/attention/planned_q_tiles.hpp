#pragma once

#include "abi/cuda_packed.hpp"
#include "abi/plan.hpp"
#include "abi/tile_map.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/sequence.hpp"

// The q tiles of a packed call, by their numbers. The plan's groups of sequences come one after the other;
// in each, groups of heads, whose K and V the L2 cache holds; in each of these, rows of tiles in the
// order of the plan with all its heads.

namespace tw_kernel {

constexpr int kTilesOfRow = kWorkSide / kQTile;
static_assert(kWorkSide % kQTile == 0, "an entry of the list of work is a whole number of q tiles");

// Q tiles of all heads.
TW_INLINE unsigned count_q_tiles(const ForwardArguments& arguments, const SnippetArguments& call) {
  return static_cast<unsigned>(arguments.plan.header->rows) * kTilesOfRow * call.num_q_heads;
}

// What says which kv tiles a q tile visits.
TW_INLINE const tilewright::abi::TileMap& tile_source(const ForwardArguments& arguments) {
  return arguments.plan.map;
}

// Which row of the lists, and which of its q tiles.
struct RankOfTile {
  int rank, tile, h;
};

// rank: of the row that the number would have if heads were in no groups; it is of the same group of
// sequences.
TW_INLINE RankOfTile find_rank(const tilewright::abi::PlanHeader& header, unsigned number, int rank,
                               int heads, int heads_in_group) {
  int first = 0, end = 0;
#pragma unroll
  for (int i = 0; i < tilewright::abi::kMostPlanGroups; ++i) {
    const int begin = header.group_begin[i];
    if (begin <= rank) first = begin, end = header.group_begin[i + 1];
  }
  const auto tiles = static_cast<unsigned>((end - first) * kTilesOfRow);
  const unsigned in_sequences = number - static_cast<unsigned>(first * kTilesOfRow) * heads;
  const auto first_head =
      static_cast<int>(in_sequences / (tiles * heads_in_group)) * heads_in_group;
  const unsigned side_by_side = min(heads_in_group, heads - first_head);
  const unsigned in_heads = in_sequences - tiles * first_head;
  const unsigned item = in_heads / side_by_side;
  return {first + static_cast<int>(item / kTilesOfRow), static_cast<int>(item % kTilesOfRow),
          first_head + static_cast<int>(in_heads % side_by_side)};
}

// A number past the last q tile gives a sentinel without rows.
TW_INLINE QTile find_q_tile(const ForwardArguments& arguments, const SnippetArguments& call,
                           unsigned number) {
  const tilewright::abi::cuda::PlanArguments& plan = arguments.plan;
  QTile q_tile;
  const auto ungrouped =
      static_cast<int>(number / (static_cast<unsigned>(call.num_q_heads) * kTilesOfRow));
  if (ungrouped >= plan.header->rows) {
    q_tile.rows = {};
    q_tile.end_of_rows = q_tile.begin_in_block = q_tile.first_row = q_tile.mask_row = 0;
    q_tile.b = q_tile.h = q_tile.h_kv = 0;
    return q_tile;
  }
  const RankOfTile found =
      find_rank(*plan.header, number, ungrouped, call.num_q_heads, arguments.heads_in_group);
  q_tile.h = found.h;
  q_tile.h_kv = q_tile.h / (call.num_q_heads / call.num_kv_heads);
  const int list = plan.map.heads == 1 ? 0 : q_tile.h;
  const tilewright::abi::PlannedRow row =
      plan.work[static_cast<long long>(list) * plan.map.rows + found.rank];
  const tilewright::abi::PlannedSequence& sequence = plan.sequences[row.sequence];
  q_tile.b = row.sequence;
  q_tile.take(call, sequence, row.sequence);
  const int first_row = list * plan.map.rows + sequence.tile_row;  // of the map: the sequence's
  if (kWorkSide == kBlockQ) {
    const tilewright::abi::RowsOfTiles rows =
        tilewright::abi::rows_of_tiles(sequence.q_len, sequence.lead, row.q_block, kBlockQ);
    q_tile.end_of_rows = rows.end;
    q_tile.first_row = rows.begin + found.tile * kQTile;
    q_tile.mask_row = first_row + row.q_block;
    q_tile.begin_in_block = 0;
  } else {
    const tilewright::abi::RowsOfWork work = tilewright::abi::rows_of_work(
        sequence.q_len, sequence.lead, row.q_block, kBlockQ, kWorkSide);
    const int in_block = work.row_in_block + found.tile * kQTile;
    q_tile.end_of_rows = work.rows.end;
    q_tile.first_row = work.rows.begin + found.tile * kQTile;
    q_tile.mask_row = first_row + work.q_block + in_block / kBlockQ;
    q_tile.begin_in_block = in_block % kBlockQ;
  }
  return q_tile;
}

}  // namespace tw_kernel
