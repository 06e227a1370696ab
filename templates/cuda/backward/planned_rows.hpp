#pragma once

#include "abi/cuda_packed.hpp"
#include "abi/cuda_packed_backward.hpp"
#include "abi/plan.hpp"
#include "cuda/backward/mapped_walks.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/sequence.hpp"

// Where a block's rows of q lie in a packed call, and the tiles that they meet by the plan's map.

namespace tw_kernel {

using BackwardArguments = tilewright::abi::cuda::PackedBackwardArguments;

// Hopper's kernels have computed, as no rows are shared (abi/cuda_packed_backward.hpp).
TW_INLINE bool is_left_to_hopper(const BackwardArguments& arguments) {
  return arguments.shares_rows != nullptr && *arguments.shares_rows == 0;
}

// Heads whose rows of facts lie one after the other: a head has rows for all sequences.
TW_INLINE long long heads_of_call(const SnippetArguments& call) { return call.num_q_heads; }

// The rows of q of one head of a sequence that a block owns.
struct OwnRows {
  PlacedSequence sequence;
  int b;
  int h;
  int h_kv;
  int first;           // from end on there is no row
  int end;             // where the rows of the entry of work end
  long long fact_row;  // of the facts: the sequence's first row
  long long map_row;   // of the map
};

constexpr int kTilesOfWork = kWorkSide / kQTile;
static_assert(kWorkSide % kQTile == 0 && kBlockQ % kQTile == 0, "a tile has rows of one row of tiles");

// The plan's rows in its order, those of decoded sequences too.
TW_INLINE OwnRows find_own_rows(const BackwardArguments& arguments, const SnippetArguments& call,
                                unsigned number) {
  const tilewright::abi::cuda::PlanArguments& plan = arguments.plan;
  const unsigned tiles_of_entry = static_cast<unsigned>(call.num_q_heads) * kTilesOfWork;
  const auto entry = static_cast<int>(number / tiles_of_entry);
  const auto in_entry = static_cast<int>(number % tiles_of_entry);
  const int h = in_entry / kTilesOfWork, tile = in_entry % kTilesOfWork;
  OwnRows own;
  own.sequence.rows = {};
  own.sequence.end_of_rows = own.sequence.begin_in_block = 0;
  own.b = own.first = own.end = 0;
  own.h = h;
  own.h_kv = h / (call.num_q_heads / call.num_kv_heads);
  own.fact_row = own.map_row = 0;
  if (entry >= plan.header->all_rows) return own;
  const int list = plan.map.heads == 1 ? 0 : h;
  const tilewright::abi::PlannedRow row =
      plan.work[static_cast<long long>(list) * plan.map.rows + entry];
  const tilewright::abi::PlannedSequence& sequence = plan.sequences[row.sequence];
  const tilewright::abi::RowsOfWork work = tilewright::abi::rows_of_work(
      sequence.q_len, sequence.lead, row.q_block, kBlockQ, kWorkSide);
  own.sequence.rows = sequence;
  own.sequence.end_of_rows = sequence.q_len;
  own.b = row.sequence;
  own.first = work.rows.begin + tile * kQTile;
  own.end = work.rows.end;
  own.fact_row = static_cast<long long>(h) * arguments.facts_rows + sequence.q_begin;
  own.map_row = static_cast<long long>(list) * plan.map.rows + sequence.tile_row + work.q_block +
                (work.row_in_block + tile * kQTile) / kBlockQ;
  return own;
}

TW_INLINE MappedColumns walk_columns(const BackwardArguments& arguments, const OwnRows& own,
                                     int kv_len) {
  return {arguments.plan.map.spans + own.map_row * arguments.plan.map.spans_of_row, kv_len};
}

}  // namespace tw_kernel
