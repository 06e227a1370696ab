#pragma once

#include "cuda_forward.hpp"

// Arguments of the kernels that compute gradients on a GPU.

namespace tilewright::abi::cuda {

/// What a row of q brings to each of its elements.
struct RowFacts {
  float lse;    // +inf of a row with nothing kept, or past q_len: all of its weights are 0
  float delta;  // rowsum(dout * out) - dlse
};

/// Rows of facts of one head: even, and so many that every row of a tile of at most kMostTileRows has some.
constexpr int kMostTileRows = 128;
constexpr long long facts_rows(long long q_len) { return (q_len + 1) / 2 * 2 + kMostTileRows; }

/// Lanes of prepare that share a row of out, 16 bytes each at a time.
constexpr int lanes_of_row(int v_head_dim, int element_bytes) {
  int lanes = 1;
  while (lanes < 32 && lanes * 16 < v_head_dim * element_bytes) lanes *= 2;
  return lanes;
}

/// Sums of gradients of one buffer or scalar: a dense array of the bound tensor's extents.
struct SumsArgument {
  float* sums;        // [cells]; null where `bins` are used
  long long* bins;    // [cells][kSumBins]: sums whose bits do not depend on their order; or null
};

/// Bins of one exact sum. A float's bits stand in one of the first ones, by its exponent; what is not
/// finite is counted in the last three: infinity, -infinity and NaN. A term has at most 31 bits, so a bin
/// has room for 2^32 terms.
constexpr int kExponentsOfBin = 8;
constexpr int kFiniteBins = 256 / kExponentsOfBin;
constexpr int kSumBins = kFiniteBins + 3;

/// A call of the backward pass in a dense layout.
struct BackwardArguments {
  TensorArgument q;     // as ForwardArguments has them
  TensorArgument k;
  TensorArgument v;
  TensorArgument out;
  TensorArgument dout;  // in out's shape
  const float* lse;     // [batch, num_q_heads, q_len]
  const float* dlse;    // likewise; null: zeros
  TensorArgument dq;    // in the shapes of q, k and v; data is null where it is not wanted
  TensorArgument dk;    // of a broadcast k: batch_stride is 0, and the sum over the batch is written
  TensorArgument dv;
  RowFacts* facts;      // [batch, num_q_heads, facts_rows], which prepare fills
  int facts_rows;       // facts_rows(q_len)
  int batches_of_block; // of a block of backward_columns: 1, or all where what it writes is a sum over them
  float scale;
  int gathers_columns;  // whether backward_columns adds to the sums of buffers by column
  BlockMaskArguments mask;     // read by masked kernels only: lists of kv blocks
  BlockMaskArguments columns;  // likewise: lists of q blocks, where q_blocks is the number of kv blocks
};

/// The same where one sweep computes all gradients.
struct OneSweepArguments : BackwardArguments {
  float* dq_sums;  // [batch, num_q_heads, tiles of rows][rows of a tile, in fragments: dq_place.hpp], zeros at first
};

/// Sums in the order of the names that have a gradient: buffers, then scalars.
template <int kCount>
struct SumsArguments {
  SumsArgument of[kCount > 0 ? kCount : 1];
};

/// Which dtype a gradient is written in.
enum SumsType : int { kSumsF32 = 0, kSumsF16 = 1, kSumsBF16 = 2 };

/// One gradient of a buffer or a scalar, from its sums to the caller's tensor.
struct FinishArguments {
  SumsArgument sums;
  void* data;
  long long cells;
  long long stride[5];  // in elements
  int size[5];          // 1 past the tensor's rank
  int type;             // SumsType
};

// Entry points of backward*: threads and dynamic shared memory as the tactic says, but for prepare and
// finish, which take kPlainThreads and no shared memory.
//   void tilewright_backward_prepare(BackwardArguments, SnippetArguments)   grid: groups of
//        kPlainThreads / lanes_of_row rows of facts
//   void tilewright_backward_columns(BackwardArguments, SnippetArguments, SumsArguments)
//        grid: parts (1, or 2 where dk and dv have separate blocks) * kv tiles * num_kv_heads * batch / batches_of_block
//   void tilewright_backward_rows(BackwardArguments, SnippetArguments, SumsArguments)
//        grid: q tiles * num_q_heads * batch
//   void tilewright_backward_finish(FinishArguments)                        grid: any
// In place of backward_columns and backward_rows, where one sweep computes all gradients:
//   void tilewright_backward_one_sweep(OneSweepArguments, SnippetArguments, SumsArguments)
//        grid: kv tiles * num_kv_heads * batch; batches_of_block is 1
//   void tilewright_backward_store_dq(OneSweepArguments, SnippetArguments)  grid: q tiles * num_q_heads * batch
constexpr int kPlainThreads = 256;

}  // namespace tilewright::abi::cuda
