#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/backward/walk.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/sequence.hpp"

// Where a block's rows lie in a dense call, and the tiles that they meet by its block mask.

namespace tw_kernel {

using tilewright::abi::cuda::BackwardArguments;

// Heads of all batches, whose rows of facts lie one after the other.
TW_INLINE long long heads_of_call(const SnippetArguments& call) {
  return static_cast<long long>(call.batch) * call.num_q_heads;
}

// The rows of q of one head that a block owns.
struct OwnRows {
  PlacedSequence sequence;
  int b;
  int h;
  int h_kv;
  int first;
  int end;             // where the sequence's rows end
  long long fact_row;  // of the facts: the sequence's first row
  int list_row;        // of the block mask
};

TW_INLINE OwnRows find_own_rows(const BackwardArguments& arguments, const SnippetArguments& call,
                                unsigned number) {
  const int tiles = (call.q_len + kQTile - 1) / kQTile;
  const int head = static_cast<int>(number) / tiles;
  const int tile = tiles - 1 - static_cast<int>(number) % tiles;  // of causal masks, the longest first
  const int b = head / call.num_q_heads, h = head % call.num_q_heads;
  return {PlacedSequence(),
          b,
          h,
          h / (call.num_q_heads / call.num_kv_heads),
          tile * kQTile,
          call.q_len,
          static_cast<long long>(head) * arguments.facts_rows,
          kMasked ? list_row(arguments.mask, b, h, tile * kQTile / kBlockQ) : 0};
}

TW_INLINE TileWalk<kBlockKv> walk_columns(const BackwardArguments& arguments, const OwnRows& own,
                                          int kv_len) {
  return {arguments.mask, own.list_row, kv_len};
}

}  // namespace tw_kernel
