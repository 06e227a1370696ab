#pragma once

#include "cuda_forward.hpp"
#include "cuda_tensor_maps.hpp"

// Arguments of the kernels of the backward pass that take tensor maps (sm_90a).

namespace tilewright::abi::cuda {

/// Dimensions as TensorMaps has them. Boxes are 64 columns wide; as many rows high as a tile of rows of q
/// for q and dout, as a block of columns for k and v, and 64 rows for dk and dv.
struct BackwardMaps {
  TensorMap q, dout, k, v;
  TensorMap dk, dv;
};

/// Which dimensions of a tensor are broadcast: their maps have one batch, one head.
enum Broadcast : unsigned { kOneBatch = 1, kOneHead = 2 };
constexpr int kBroadcastBits = 2;  // of each of q, dout, k and v, in this order

/// Facts of a tile of `rows` rows of q: lse of each row, as RowFacts has it, then delta of each. Rows past
/// q_len have the greatest float for their lse, which makes their weights 0.
/// In each group of 16 a row stands where a thread of the products reads its four at once.
constexpr int fact_place(int row) { return row / 16 * 16 + row % 8 / 2 * 4 + row / 8 % 2 * 2 + row % 2; }
constexpr long long facts_of_tiles(long long tiles, long long rows) { return tiles * rows * 2; }

/// What the kernels below share.
struct HopperBackwardArguments {
  float* facts;       // [batch][num_q_heads][q_tiles][2][rows of a tile]
  float* dq_sums;     // [batch][num_q_heads][q_tiles][rows of a tile * head_dim], see hopper/backward/layout.hpp
  BlockMaskArguments columns;  // read by masked kernels only: lists of q blocks by kv block
  int q_tiles;        // of one head
  int kv_tiles;       // likewise
  int heads_in_group; // kv heads of all batches whose blocks of columns run side by side
  int whole_groups;   // of so many; the remaining heads are one last group
  unsigned broadcast; // Broadcast of each tensor
  float scale;
};

constexpr int kDqParts = 2;  // of a tile: of each warpgroup that computes

/// What these kernels share in deterministic calls, in which blocks of threads add to sums of dq by turns.
struct OrderedHopperBackwardArguments : HopperBackwardArguments {
  BlockMaskArguments rows;  // read by masked kernels only: lists of kv blocks by q block
  int* turns;         // [batch][num_q_heads][q_tiles][kDqParts], zeros: blocks that have added to that part of the sums
  unsigned* started;  // blocks of the main kernel; zero
};

// Entry points of backward* that take tensor maps; of deterministic ones with OrderedHopperBackwardArguments:
//   void tilewright_backward_prepare(BackwardArguments, HopperBackwardArguments, SnippetArguments)
//        grid: groups of kPlainThreads / lanes_of_row rows of facts; kPlainThreads, no shared memory
//   void tilewright_backward_main(HopperBackwardArguments, BackwardMaps, SnippetArguments)
//        grid: kv_tiles * num_kv_heads * batch; threads and shared memory as the tactic says
//   void tilewright_backward_store_dq(BackwardArguments, HopperBackwardArguments, SnippetArguments)
//        grid: q_tiles * num_q_heads * batch; kPlainThreads, no dynamic shared memory

}  // namespace tilewright::abi::cuda
