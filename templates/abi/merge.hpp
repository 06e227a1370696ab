#pragma once

// Arguments of the kernel that merges attention over several parts of the columns, on both devices.

namespace tilewright::abi {

constexpr int kFewestMergedParts = 2;
constexpr int kMostMergedParts = 16;
constexpr int kMergeThreads = 256;  // of a block of threads on a GPU

/// [batch, heads, rows, width]; the last dimension is contiguous.
struct MergeTensor {
  void* data;
  long long batch_stride;  // in elements
  long long head_stride;
  long long row_stride;
};

struct MergePart {
  MergeTensor out;
  const float* lse;  // [batch, heads, rows]
};

/// merge: grid (ceil(batch * heads * rows / rows of a block), 1, 1) of kMergeThreads
///   void tilewright_merge(MergeArguments)
/// on a CPU, of rows [first, first + count) of batch * heads * rows:
///   void tilewright_merge(const MergeArguments*, long long first, long long count)
struct MergeArguments {
  MergePart parts[kMostMergedParts];
  MergeTensor out;  // may be a part's out, element by element; else apart from all
  float* lse;       // [batch, heads, rows]; null: not wanted. May be a part's lse.
  int count;        // of parts
  int heads;
  int rows;
  int width;        // v_head_dim
  long long all_rows;  // batch * heads * rows
  int lane_bits;    // on a GPU 2^lane_bits lanes of a warp share a row
  int is_aligned;   // whether bases and strides are multiples of 16 bytes
};

/// One row of one head.
struct MergedPlace {
  long long b, h, row;
};
constexpr MergedPlace merged_place(const MergeArguments& call, unsigned index) {
  const unsigned of_head = index / static_cast<unsigned>(call.rows);
  const unsigned b = of_head / static_cast<unsigned>(call.heads);
  return {b, of_head - b * call.heads, index - of_head * call.rows};
}

/// Elements from a tensor's first to the row's first.
constexpr long long offset_of(const MergeTensor& tensor, const MergedPlace& place) {
  return place.b * tensor.batch_stride + place.h * tensor.head_stride +
         place.row * tensor.row_stride;
}

}  // namespace tilewright::abi
