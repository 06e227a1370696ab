#pragma once

// Arguments of the kernel of context parallel that adds up rows of gradients in f32, or converts them; GPUs only.

namespace tilewright::abi {

constexpr int kRowSumThreads = 256;  // of a block of threads

enum class RowType : int { f32, f16, bf16 };

/// Rows of [outer, middle, rows, width]; the last dimension is contiguous.
struct SummedRows {
  void* data;
  long long outer_stride;  // in elements
  long long middle_stride;
  long long row_stride;
  RowType type;
};

/// add_rows: to = from, or to + from, in float. Grid (ceil(all_rows / rows of a block), 1, 1) of kRowSumThreads
///   void tilewright_add_rows(RowSumArguments)
struct RowSumArguments {
  SummedRows to;
  SummedRows from;     // apart from `to`; null data: zeros
  int adds;
  int middle;
  int rows;
  int width;
  long long all_rows;  // outer * middle * rows, at most 2^31 - 1
  int lane_bits;       // 2^lane_bits lanes of a warp share a row
};

/// Elements from a tensor's first to the first of a row.
constexpr long long summed_row_offset(const SummedRows& tensor, const RowSumArguments& call, unsigned index) {
  const unsigned of_rows = index / static_cast<unsigned>(call.rows);
  const unsigned outer = of_rows / static_cast<unsigned>(call.middle);
  return outer * tensor.outer_stride + (of_rows - outer * call.middle) * tensor.middle_stride +
         (index - of_rows * call.rows) * tensor.row_stride;
}

}  // namespace tilewright::abi
