#pragma once

#include "extrema.hpp"

// Arguments of the CUDA kernels that make a block mask.

namespace tilewright::abi::cuda {

/// What is known of a block mask's tiles when they are counted.
struct MaskTotals {
  long long partial;             // tiles
  long long full;                // tiles
  unsigned long long evaluated;  // tiles that were decided element by element
  unsigned long long saved;  // spans in MaskArguments::saved, or that would be if there were room
};

/// Three launches on one stream, with no dynamic shared memory: mask_rows counts, mask_scan sums,
/// mask_rows lists. totals must be 0 before the first. None of them depends on what the host knows
/// of the result, so the host need not wait where it knows how many tiles there can be; or it runs
/// mask_scan with an unlimited capacity, reads the totals, and makes room for the indices before
/// the last. Of mask_exact and of mask_proved:
///   void tilewright_mask_rows(MaskArguments, SnippetArguments<buffers, scalars>)
///       grid rows, and where it lists batch * heads more if there is q_tile_order; kMaskThreads
///       threads
/// Of mask_lists:
///   void tilewright_mask_scan(MaskArguments)
///       grid 1, kMaskScanThreads threads
///   void tilewright_mask_extrema(MaskArguments, SnippetArguments<buffers, scalars>, int table)
///       for each of the tables that mask_proved reads, before mask_rows:
///       grid rows of the table * ceil(runs of a row / kExtremaFan^2), kMaskThreads threads
/// A row of tiles is cut into chunks of kMaskSpans spans of 32 tiles each.
struct MaskArguments {
  MaskTotals* totals;
  long long* row_offsets;       // [rows + 1] into indices; mask_rows leaves counts in [1, rows]
  long long* full_row_offsets;  // [rows + 1] into indices, where the full tiles follow all
                                // partial ones
  int* indices;                 // [capacity]
  int* q_tile_order;            // [batch * heads][rows_of_head] of which the first ceil(q_len /
                                // ordered_rows) are used, or null
  int* saved_begin;             // [rows][chunks] into saved; -1 where there was no room
  unsigned long long* saved;    // [saved_capacity] partial tiles of a span in the low half, a bit
                                // each, full ones in the high half
  long long capacity;
  int saved_capacity;
  int batch;         // of the mask: 1 or the call's
  int heads;         // of the mask: 1 or num_q_heads
  int rows_of_head;  // q blocks; where transposed, kv blocks
  int columns;       // kv blocks; where transposed, q blocks
  int chunks;        // of a row: ceil(columns / (32 * kMaskSpans))
  int ordered_rows;  // of q, of what q_tile_order orders: block[0], or a greater q tile
  int transposed;    // 0 or 1
  int fills;         // 1 to list tiles, 0 to count them
  ExtremaTables tables;
};

constexpr int kMaskThreads = 256;
constexpr int kMostProvers = 512;  // threads of a block that prove tiles, at most
constexpr int kMaskScanThreads = 1024;
constexpr int kMaskSpans = 256;
constexpr int kMaskChunk = 32 * kMaskSpans;  // tiles

}  // namespace tilewright::abi::cuda
