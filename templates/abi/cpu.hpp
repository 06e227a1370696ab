#pragma once

#include "pages.hpp"
#include "tile_map.hpp"

// Arguments of CPU kernels. The runtime includes this file and every rendered CPU kernel contains it,
// so the two cannot drift apart. The files of abi/ include nothing else: compile time is a feature.

namespace tilewright::abi {

constexpr int kMaxBufferRank = 5;

/// A tensor that a snippet reads. A dimension of size 1 that is broadcast has stride 0.
struct BufferArgument {
  const void* data;
  long long size[kMaxBufferRank];    // extent of each dimension, below 2^31
  long long stride[kMaxBufferRank];  // in elements
};

/// A run-time number that a snippet reads; the spec says which member is meant.
union ScalarArgument {
  float as_f32;
  int as_i32;
};

/// What every kernel that evaluates a snippet needs.
struct SnippetArguments {
  const BufferArgument* buffers;  // [number of buffers], in the order of their names
  const ScalarArgument* scalars;  // [number of scalars], in the order of their names
  int batch;
  int num_q_heads;
  int num_kv_heads;
  int q_len;
  int kv_len;
  int q_offset;   // q_idx = row + q_offset
  int kv_offset;  // kv_idx = column + kv_offset
  int q_token_offset;   // of a packed call: q_token = q_idx + q_token_offset
  int kv_token_offset;  // likewise; not read where k and v are in pages
  SequencePages pages;  // of a sequence whose k and v are in pages
};

/// q, k, v or out. Strides are in elements and may be 0; the last dimension is contiguous.
struct TensorArgument {
  void* data;
  long long batch_stride;  // of pools of k and v: from one page to the next
  long long head_stride;
  long long row_stride;
};

/// The two CSR lists of a block mask. Row of tiles r = (b * heads + h) * q_blocks + q_block, where b
/// and h are 0 if the mask's batch or heads is 1.
struct BlockMaskArgument {
  const long long* row_offsets;       // [rows + 1], into indices
  const int* indices;                 // kv blocks of partial tiles, rising in each row
  const long long* full_row_offsets;  // [rows + 1], into full_indices
  const int* full_indices;            // kv blocks of full tiles, rising in each row
  int batch;                          // 1 or the call's
  int heads;                          // 1 or num_q_heads
  int q_blocks;                       // ceil(q_len / block[0])
};

/// A call, or one row of tiles of a sequence of a packed call: then batch strides are 0, q, out and lse
/// begin at the first row of q, k and v at the sequence's, and snippet has the sequence's lengths and
/// the first row's q_offset.
struct ForwardArguments {
  SnippetArguments snippet;
  TensorArgument q;    // [batch, num_q_heads, q_len, head_dim]
  TensorArgument k;    // [batch, num_kv_heads, kv_len, head_dim], or a pool [pages, num_kv_heads, page_size, head_dim]
  TensorArgument v;    // likewise, of v_head_dim
  TensorArgument k_new;  // new rows of the sequence, from its first new column on, where it has some
  TensorArgument v_new;  // likewise
  TensorArgument out;  // [batch, num_q_heads, q_len, v_head_dim]
  float* lse;          // [batch, num_q_heads, q_len]; null where the kernel writes none
  long long lse_head_stride;  // elements from one head to the next: q_len, or total_q
  float scale;         // multiplies q.k before score_mod
  BlockMaskArgument mask;  // read by masked kernels only
  TileMapRow map;          // kernels of packed layouts read it instead of mask
  int rows;                // likewise instead of q_len: the rows of the row of tiles
  float* max_scores;       // as lse: greatest kept scores; null where the kernel writes none
  void* weights;           // [batch, num_q_heads, q_len, kv_len] in out's dtype; read by weights kernels only
};

/// Where gradients of one buffer or scalar are summed: a dense array of the given tensor's extents, or
/// one number. A dimension of extent 1 has stride 0.
struct GradientArgument {
  long long first;                   // of the array, in the sums of a call
  long long size[kMaxBufferRank];    // as BufferArgument has it
  long long stride[kMaxBufferRank];  // in elements of the sums
};

/// A call of the backward pass in a dense layout.
struct BackwardArguments {
  SnippetArguments snippet;
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
  float scale;
  BlockMaskArgument mask;     // read by masked kernels only: lists of kv blocks
  BlockMaskArgument columns;  // likewise: lists of q blocks, where q_blocks is the number of kv blocks
  const GradientArgument* gradients;  // in the order of the names that have one: buffers, then scalars
};

/// State of one tile of a block mask over its elements inside q_len x kv_len.
enum TileState : unsigned char { kTileEmpty = 0, kTilePartial = 1, kTileFull = 2 };

// Entry points (extern "C") of the kernels, by the kernel's name:
//
// forward*:  const int tilewright_q_tile;              rows of q that one call of the kernel handles
//            const long long tilewright_scratch_bytes; private memory that a call needs, aligned to 64
//            void tilewright_forward(const ForwardArguments*, int b, int h, int q_tile, void* scratch);
//
// weights*:  the same with tilewright_weights, after the forward kernel has written lse
//
// backward*: const int tilewright_q_tile;              rows of q that one call of backward_rows handles
//            const int tilewright_kv_tile;             columns that one call of backward_columns handles
//            const long long tilewright_scratch_bytes; private memory of both, aligned to 64
//            void tilewright_backward_rows(const BackwardArguments*, int b, int h, int q_tile,
//                 double* sums,  to which the gradients of buffers and scalars are added
//                 void* scratch);
//            void tilewright_backward_columns(const BackwardArguments*, int first_b, int count_b,
//                 int h_kv, int kv_tile, void* scratch);
//
// mask_exact, mask_proved: one row of tiles of the block mask, as runs of tiles in the same state
//            int tilewright_mask_row(const SnippetArguments*, const ExtremaTables*, int b, int h,
//                 int q_block,
//                 unsigned* runs,         [kv_blocks] in order: first tile after the run << 2 | TileState
//                 long long* evaluated);  to which the number of evaluated tiles is added
//            returns the number of runs
// mask_proved: also, for a buffer that it has a table of (extrema.hpp), one row of the table
//            void tilewright_mask_extrema(const SnippetArguments*, const ExtremaTables*, int table,
//                 long long row);
//
// evaluate_float, evaluate_double, evaluate_checked: one row of scores through the snippets, Score
//            being float, double, float:
//            void tilewright_evaluate_row(const SnippetArguments*, int b, int h, int row,
//                 const Score* scores,                 [kv_len] (q.k) * scale
//                 Score* modified,                     [kv_len] after score_mod
//                 unsigned char* keep);                [kv_len] mask_mod, 1 where there is none
//            Of a spec with other snippets also one of these, for rows or columns from `first` on:
//            void tilewright_evaluate_scale(const SnippetArguments*, int which, a SnippetNumber
//                 int b, int h, int first, int count,
//                 Score* values);                      [count]
// evaluate_checked: also int tilewright_take_findings(Finding* findings, int capacity), which hands
//            over what has been found since the last call and returns how many there were.

// evaluate_slopes_float, evaluate_slopes_double: score_mod's derivatives over one row of scores
//            void tilewright_evaluate_slopes(const SnippetArguments*, int b, int h, int row,
//                 const Score* scores,                 [kv_len] (q.k) * scale
//                 Score* slopes);                      [kv_len] the derivative by the score
//            void tilewright_add_gradients(const SnippetArguments*, int b, int h, int row,
//                 const Score* scores,
//                 const Score* dy,                     [kv_len] gradient of the modified score
//                 const GradientArgument*,             as BackwardArguments has them
//                 double* sums);

/// Snippets, in the order of the generator's SnippetKind.
enum SnippetNumber : int { kScoreMod, kMaskMod, kQScale, kKScale, kVScale, kOutScale, kSink, kDropout };

/// Undefined behaviour that the checked interpretation met.
struct Finding {
  enum Kind : int {
    index_out_of_bounds,  // operand[0] = index, operand[1] = extent
    division_by_zero,
    shift_out_of_range,   // operand[0] = distance
    signed_overflow,
    float_to_int_overflow,
    missing_return,
    division_overflow,    // the least integer divided by -1, which traps
    index_not_a_number,        // a float; operand[1] = extent
    real_index_out_of_bounds,  // operand[0] = bits of the index as a double, operand[1] = extent
    dimension_out_of_range,    // of size(); operand[0] = dimension, operand[1] = rank
    endless_loop,              // operand[0] = rounds of all loops of an element
  };
  int kind;
  int line;    // in the rendered source
  int column;  // 0 where unknown
  int offset;  // of the name of the buffer that was read, in the snippet; -1 where unknown
  int b, h, q_idx, kv_idx;  // those that the snippet sees; h is h_kv where it sees that alone
  int kept;     // 0 where mask_mod drops the element
  int snippet;  // a SnippetNumber
  int trusted;  // of an index: the buffer's bounds are trusted
  int dimension;  // of an index: which of the buffer's
  long long operand[2];
  long long least, greatest;  // of the indices outside of the dimension at the place, in any element
};

}  // namespace tilewright::abi
