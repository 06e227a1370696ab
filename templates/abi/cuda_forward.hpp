#pragma once

// Arguments of the kernels that compute attention on a GPU.

namespace tilewright::abi::cuda {

/// q, k, v or out. Strides are in elements and may be 0; the last dimension is contiguous.
struct TensorArgument {
  void* data;
  long long batch_stride;
  long long head_stride;
  long long row_stride;
};

/// The two CSR lists of a block mask. Row of tiles r = (b * heads + h) * q_blocks + q_block, where
/// b and h are 0 if the mask's batch or heads is 1. Both may be one array, where the full tiles follow
/// the partial ones and full_row_offsets begins with their number.
struct BlockMaskArguments {
  const long long* row_offsets;       // [rows + 1], into indices
  const int* indices;                 // kv blocks of partial tiles, rising in each row
  const long long* full_row_offsets;  // [rows + 1], into full_indices
  const int* full_indices;            // kv blocks of full tiles, rising in each row
  const int* q_tile_order;  // [batch * heads][q_blocks] q blocks, those with most tiles first, or q
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
  int heads_in_group;       // >= 1: heads whose tiles run side by side, see head_groups.hpp
  int whole_groups;         // of so many heads; the remaining heads are one last group
  unsigned launch;          // its number among the module's, not 0: see hopper/schedule.hpp
};

}  // namespace tilewright::abi::cuda
