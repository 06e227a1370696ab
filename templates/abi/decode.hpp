#pragma once

#include "plan.hpp"

// The work of a decode kernel: sequences with few rows of q, or a dense call with few, whose columns are cut
// into ranges of equal size for the blocks of threads of a launch. Runtime and kernels share this file.

namespace tilewright::abi {

/// Rows of a tile: each is a row of q in one of the query heads that share a head of k and v.
constexpr int kDecodeRows = 16;

/// The most rows of q that the decode kernel takes of a sequence: a tile holds the rows of all query heads that share a
/// head of k and v.
template <typename Int>
constexpr Int most_decoded_rows(Int num_q_heads, Int num_kv_heads) {
  return kDecodeRows * num_kv_heads / num_q_heads;
}

/// An item is one head of k and v of one sequence. Its columns come in units of as many as a block of
/// threads works on side by side; without a column to keep it has one unit. Items follow each other
/// sequence by sequence, and blocks have ranges of them that differ by one unit at most (UnitCuts).
/// An item that several blocks share has a partial result for each: of the block that begins it the second,
/// of the others the first.
struct DecodeWork {
  int* units_before;        // of a plan, [batch * lists + 1]: of all items before each entry; an entry is the items of a
                            // sequence whose lists are alike, and of a list; 0 for sequences of prefill
  float* partial;           // [blocks][2][kDecodeRows][value_dim], relative to the row's maximum
  float* ends;              // [blocks][2][kDecodeRows][2]: maximum, sum
  unsigned* arrived;        // [blocks]: partial results of the item that the block begins; 0 between launches
  int lists;                // of a plan, of a sequence: 1, or num_kv_heads where the tile map tells heads apart
  int blocks;               // of threads
  int keeps_items_whole;    // an item goes to the block that its begin falls to
  int reserved;             // 0
};

/// Units cut into ranges, the first of which have one more.
struct UnitCuts {
  int units;   // of all items
  int blocks;  // that have some
  int least;   // units of a block
  int longer;  // blocks that have one more

  /// The first unit of a block.
  constexpr int begin_of(int block) const {
    return block * least + (block < longer ? block : longer);
  }
  constexpr int block_of(int unit) const {
    const int in_longer = longer * (least + 1);
    return unit < in_longer ? unit / (least + 1) : longer + (unit - in_longer) / least;
  }
};
constexpr UnitCuts cut_units(int units, int blocks) {
  const int used = units < blocks ? units : blocks;
  if (used == 0) return {0, 0, 0, 0};
  return {units, used, units / used, units % used};
}

/// Where its parts lie in a plan, in bytes from the plan's begin.
struct DecodeLayout {
  long long arrived;
  long long units_before;
  long long partial;
  long long ends;
  long long bytes;  // of all of the plan
};

/// @param layout    of the plan, whose end is where this begins
/// @param value_dim v_head_dim
constexpr DecodeLayout decode_layout(const PlanLayout& layout, long long batch, long long lists,
                                     long long blocks, long long value_dim) {
  constexpr long long kFloat = sizeof(float);
  const long long rows = blocks * 2 * kDecodeRows;
  DecodeLayout decode = {};
  decode.arrived = layout.decode_arrived;
  decode.units_before = layout.bytes;
  decode.partial =
      decode.units_before + plan_aligned((batch * lists + 1) * static_cast<long long>(sizeof(int)));
  decode.ends = decode.partial + plan_aligned(rows * value_dim * kFloat);
  decode.bytes = decode.ends + plan_aligned(rows * 2 * kFloat);
  return decode;
}

/// Counters at the begin of every workspace of a dense call, whatever its shape or spec, so that calls of one
/// stream can share one. A launch has at most as many blocks.
constexpr int kMostSplitBlocks = 4096;

/// Where the parts of a dense call's workspace lie, in bytes. arrived: at its begin, 0 before and after a call.
struct SplitLayout {
  long long partial;
  long long ends;
  long long bytes;  // of all
};

/// @param blocks    of threads
/// @param value_dim v_head_dim
constexpr SplitLayout split_layout(long long blocks, long long value_dim) {
  constexpr long long kFloat = sizeof(float);
  const long long rows = blocks * 2 * kDecodeRows;
  SplitLayout layout = {};
  layout.partial = plan_aligned(kMostSplitBlocks * static_cast<long long>(sizeof(unsigned)));
  layout.ends = layout.partial + plan_aligned(rows * value_dim * kFloat);
  layout.bytes = layout.ends + plan_aligned(rows * 2 * kFloat);
  return layout;
}

}  // namespace tilewright::abi
