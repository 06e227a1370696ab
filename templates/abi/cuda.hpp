#pragma once

// Arguments of CUDA kernels. The runtime includes this file and every rendered CUDA kernel contains
// it, so the two cannot drift apart. It includes nothing: compile time is a feature. All pointers
// are device pointers.

namespace tilewright::abi::cuda {

constexpr int kMaxBufferRank = 5;
constexpr int kUsualBufferRank = 4;

/// A tensor that a snippet reads. A dimension of size 1 that is broadcast has stride 0. Smaller
/// than the CPU's, as arguments travel with every launch.
template <int kRank>
struct BufferArgument {
  const void* data;
  long long stride[kRank];      // in elements; the last dimension's is below 2^31
  int size[kRank + kRank % 2];  // extent of each dimension
};

/// A run-time number that a snippet reads; the spec says which member is meant.
union ScalarArgument {
  float as_f32;
  int as_i32;
};

/// q, k, v or out. Strides are in elements and may be 0; the last dimension is contiguous.
struct TensorArgument {
  void* data;
  long long batch_stride;
  long long head_stride;
  long long row_stride;
};

/// What every kernel that evaluates a snippet needs; a kernel parameter of its own. It carries the
/// buffers and scalars by value, so a launch copies nothing else to the device. A spec without
/// buffers (scalars) has one unused entry, as C++ has no empty arrays.
/// kRank: kMaxBufferRank where a buffer of the spec has as many dimensions, else kUsualBufferRank.
template <int kBuffers, int kScalars, int kRank = kUsualBufferRank>
struct SnippetArguments {
  int batch;
  int num_q_heads;
  int num_kv_heads;
  int q_len;
  int kv_len;
  int q_offset;                                         // q_idx = row + q_offset
  int kv_offset;                                        // kv_idx = column + kv_offset
  int reserved;                                         // 0
  BufferArgument<kRank> buffers[kBuffers > 0 ? kBuffers : 1];  // in the order of their names
  ScalarArgument scalars[kScalars > 0 ? kScalars : 1];  // in the order of their names
};

// The runtime knows the numbers of buffers and scalars only at run time and lays SnippetArguments
// out by these.
constexpr long long kSnippetHeaderBytes = 32;
constexpr long long buffer_argument_bytes(int rank) {
  return static_cast<long long>(rank == kUsualBufferRank ? sizeof(BufferArgument<kUsualBufferRank>)
                                                         : sizeof(BufferArgument<kMaxBufferRank>));
}
constexpr long long scalar_offset(int buffers, int rank = kUsualBufferRank) {
  return kSnippetHeaderBytes + (buffers > 0 ? buffers : 1) * buffer_argument_bytes(rank);
}
constexpr long long snippet_argument_bytes(int buffers, int scalars,
                                           int rank = kUsualBufferRank) {
  const long long end = scalar_offset(buffers, rank) + (scalars > 0 ? scalars : 1) *
                                                     static_cast<long long>(sizeof(ScalarArgument));
  return (end + 7) / 8 * 8;
}
static_assert(sizeof(SnippetArguments<0, 0>) == snippet_argument_bytes(0, 0));
static_assert(sizeof(SnippetArguments<1, 2>) == snippet_argument_bytes(1, 2));
static_assert(sizeof(SnippetArguments<3, 1>) == snippet_argument_bytes(3, 1));
static_assert(sizeof(SnippetArguments<3, 1, 5>) == snippet_argument_bytes(3, 1, 5));

/// The two CSR lists of a block mask. Row of tiles r = (b * heads + h) * q_blocks + q_block, where
/// b and h are 0 if the mask's batch or heads is 1. Both may be one array, where the full tiles stand
/// behind the partial ones and full_row_offsets begins with their number.
struct BlockMaskArguments {
  const long long* row_offsets;       // [rows + 1], into indices
  const int* indices;                 // kv blocks of partial tiles, rising in each row
  const long long* full_row_offsets;  // [rows + 1], into full_indices
  const int* full_indices;            // kv blocks of full tiles, rising in each row
  const int* rows_by_cost;  // [batch * heads][q_blocks] q blocks, those with most tiles first, or q
                            // tiles where these cover rows of two blocks; or null, and the last is
                            // taken to cost most
  int batch;     // 1 or the call's
  int heads;     // 1 or num_q_heads
  int q_blocks;  // ceil(q_len / block[0])
  int reserved;  // 0
};

/// How a kernel scales scores: s = q.k * factor, then score_mod, and p = 2^((s - max) * to_log2).
struct Scaling {
  float factor;
  float to_log2;  // > 0
};

/// Without score_mod the scale waits for the exponent, where it costs nothing. That needs a
/// positive one, as the greatest score is then that of the greatest q.k.
constexpr Scaling scaling(float scale, bool has_score_mod) {
  constexpr float kLog2E = 1.44269504088896341f;
  if (has_score_mod) return {scale, kLog2E};
  if (scale * kLog2E > 0.0f) return {1.0f, scale * kLog2E};
  return {scale * kLog2E, 1.0f};
}

/// forward*: grid (q_tiles * batch * num_q_heads, 1, 1), or fewer with the tactic "hopper"; threads
/// and dynamic shared memory as the tactic says.
///   void tilewright_forward(ForwardArguments, SnippetArguments<buffers, scalars>)
struct ForwardArguments {
  TensorArgument q;    // [batch, num_q_heads, q_len, head_dim]
  TensorArgument k;    // [batch, num_kv_heads, kv_len, head_dim]
  TensorArgument v;    // [batch, num_kv_heads, kv_len, v_head_dim]
  TensorArgument out;  // [batch, num_q_heads, q_len, v_head_dim]
  float* lse;          // [batch, num_q_heads, q_len], contiguous; null where the kernel writes none
  BlockMaskArguments mask;  // read by masked kernels only
  Scaling scaling;          // of the call's scale
  int q_tiles;              // of one head: ceil(q_len / q_tile), or q_blocks * (block[0] / q_tile) where
                            // that is whole
  int heads_in_group;       // >= 1: heads whose tiles run side by side, see forward/place.hpp
  int whole_groups;         // of so many heads; those behind them are one last group
  unsigned launch;          // its number among the module's, not 0: see hopper/schedule.hpp
};

/// A CUtensorMap of cuda.h: where the copy engine finds a tensor, and what boxes it brings of it.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

/// Dimensions, fastest first: columns, rows, heads, batch; a dimension of stride 0 has extent 1.
/// Boxes are 64 columns wide, and 64 rows high for q, a kv tile for k and v, 16 rows for out.
///   void tilewright_forward(ForwardArguments, TensorMaps, SnippetArguments<buffers, scalars>)
struct TensorMaps {
  TensorMap q, k, v;
  TensorMap out;  // not read where out is float32
};

}  // namespace tilewright::abi::cuda
