#pragma once

#include "pages.hpp"
#include "plan.hpp"

// Arguments of the kernel that stores a tensor of 16 or 32 bits as one of one byte, on both devices.

namespace tilewright::abi {

constexpr int kQuantiseThreads = 256;     // of a block of threads on a GPU
constexpr int kQuantiseRowsOfBlock = 16;  // rows that it stores at a time
constexpr int kQuantiseElements = 8;      // that a thread stores at a time; widths are multiples of it

/// What the values are read from.
enum QuantiseSource : int { kFromF32 = 0, kFromF16 = 1, kFromBF16 = 2 };

/// Which tensor of a call; says which scale divides it.
enum QuantisedOperand : int { kQuantiseQ = 0, kQuantiseK = 1, kQuantiseV = 2 };

/// [batch, rows, heads, width] whatever the layout: a packed tensor has batch 1, and the batch of a pool
/// is its pages. Strides are in elements; the last dimension is contiguous.
struct QuantisedTensor {
  void* data;
  long long batch_stride;
  long long row_stride;
  long long head_stride;
};

/// quantise: grid (blocks, 1, 1) of kQuantiseThreads
///   void tilewright_quantise(QuantiseArguments, SnippetArguments)
/// on a CPU, of what one of these blocks does:
///   void tilewright_quantise(const QuantiseArguments*, const SnippetArguments*, long long block)
/// Without a plan block i stores rows i * kQuantiseRowsOfBlock to (i + 1) * kQuantiseRowsOfBlock - 1, counted
/// over batches; with one, blocks b * parts_of_sequence to (b + 1) * parts_of_sequence - 1 share sequence b.
struct QuantiseArguments {
  QuantisedTensor from, to;
  int source;      // QuantiseSource
  int operand;     // QuantisedOperand
  int heads;       // of the tensors
  int width;
  int group;       // query heads of a head of k and v; 1 where it is not known
  int is_aligned;  // whether bases and strides of both are multiples of 16 bytes
  long long rows;      // of a batch
  long long all_rows;  // of all batches
  int is_dense;        // whether a batch is a sequence, and positions are rows + offset
  int offset;          // of a dense call: q_offset, or kv_offset
  SequencePages pages;  // of k or v in pages: of the pool, and with a plan of all sequences
  const PlannedSequence* sequences;  // of the plan; null without one
  int parts_of_sequence;
  int has_new_rows;    // whether the last q_len columns of a sequence are not in the pages
};

/// A row of the tensor, and where it stands in its sequence.
struct QuantisedRow {
  long long batch;  // below 0: it is not in the tensor
  long long row;
  int b;            // number of the sequence; 0 where it is not known
  int index;        // q_idx or kv_idx; likewise
  int token;        // its place among all rows of the tensor; 0 in dense layouts
};
constexpr QuantisedRow kNoQuantisedRow = {-1, 0, 0, 0, 0};

/// @param row counted over batches
constexpr QuantisedRow row_of_tensor(const QuantiseArguments& call, long long row) {
  const long long batch = row / call.rows, inside = row - batch * call.rows;
  if (call.is_dense == 0) return {batch, inside, 0, 0, static_cast<int>(row)};
  return {batch, inside, static_cast<int>(batch), static_cast<int>(inside) + call.offset, 0};
}

/// How many rows of q, or columns that are not new rows, a sequence has.
constexpr int rows_to_quantise(const QuantiseArguments& call, const PlannedSequence& sequence) {
  if (call.operand == kQuantiseQ) return sequence.q_len;
  return call.has_new_rows != 0 ? context_of(sequence.q_len, sequence.kv_len) : sequence.kv_len;
}

/// @param row of sequence b
constexpr QuantisedRow row_of_sequence_to_quantise(const QuantiseArguments& call, int b, int row) {
  const PlannedSequence& sequence = call.sequences[b];
  if (call.operand == kQuantiseQ) {
    const int token = sequence.q_begin + row;
    return {0, token, b, row + sequence.q_offset, token};
  }
  const int index = row + sequence.kv_offset;
  if (call.pages.page_size.value == 0) {
    const int token = sequence.kv_begin + row;
    return {0, token, b, index, token};
  }
  if (row >= sequence.page_room) return kNoQuantisedRow;
  const SequencePages pages = pages_of_sequence(call.pages, sequence.page_begin, b);
  const int place = quotient(row, pages.page_size), page = page_entry(pages, place);
  if (!is_present(page, pages.pages)) return kNoQuantisedRow;
  const int inside = row - place * pages.page_size.value;
  return {page, inside, b, index, page * pages.page_size.value + inside};
}

constexpr long long offset_of(const QuantisedTensor& tensor, const QuantisedRow& row, int h) {
  return row.batch * tensor.batch_stride + row.row * tensor.row_stride + h * tensor.head_stride;
}

}  // namespace tilewright::abi
