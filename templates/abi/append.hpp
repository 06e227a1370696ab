#pragma once

#include "pages.hpp"
#include "plan.hpp"

// Arguments of the kernel that copies new rows of k and v into a pool of pages, on both devices.

namespace tilewright::abi {

constexpr int kAppendThreads = 256;      // of a block of threads on a GPU
constexpr int kAppendRowsOfBlock = 16;   // new rows that it copies
constexpr int kAppendElements = 8;       // that a thread copies at a time; widths are multiples of it

/// New rows [rows, heads, width], or a pool [pages, page_size, heads, width], or one of paged_x. Strides are in
/// elements; the last dimension is contiguous.
struct AppendTensor {
  void* data;
  long long page_stride;  // of a pool
  long long row_stride;   // in paged_x x: 16 bytes of k, one element of v
  long long head_stride;
  int width;
  int is_aligned;  // whether base and strides are multiples of 16 bytes
};

/// append: with slots grid (ceil(rows / kAppendRowsOfBlock), 1, 1), else (work_rows * parts_of_work, 1, 1), of
/// kAppendThreads
///   void tilewright_append(AppendArguments)
///   void tilewright_append(AppendArguments, SnippetArguments)   where the spec has k_scale or v_scale
/// on a CPU, of the rows of one entry of the plan's work, or with slots of rows [first, first + count):
///   void tilewright_append(const AppendArguments*, const SnippetArguments*, long long first, long long count)
struct AppendArguments {
  AppendTensor k_new, v_new;
  AppendTensor k, v;
  const void* slots;    // [rows] int or long long: row of the pool, counted over its pages; null: the plan says
  int slot_bytes;       // of one: 4 or 8
  int heads;
  long long rows;       // new ones
  SequencePages pages;  // of the pool; without slots also of all sequences
  const PlanHeader* header;  // of the plan; null with slots
  const PlannedSequence* sequences;
  const PlannedRow* work;
  int side;           // of the plan's rows of tiles
  int work_side;      // rows of q of an entry of its work
  int parts_of_work;  // blocks of threads that share an entry
  int reserved;       // 0
};

/// Where a new row goes: nowhere where the page is not in the pool.
struct AppendPlace {
  long long new_row;
  int page;
  int row;  // of the page
};
constexpr AppendPlace kNoPlace = {0, -1, 0};

/// Which row of its sequence a new row is.
struct AppendedRow {
  int sequence;  // -1: slots do not say
  int row;       // of the sequence's rows of q
};

constexpr AppendPlace place_of_slot(const AppendArguments& call, long long new_row) {
  const long long slot = call.slot_bytes == 8 ? static_cast<const long long*>(call.slots)[new_row]
                                              : static_cast<const int*>(call.slots)[new_row];
  const int size = call.pages.page_size.value;
  if (slot < 0 || slot >= static_cast<long long>(call.pages.pages) * size) return kNoPlace;
  const int page = quotient(static_cast<int>(slot), call.pages.page_size);
  return {new_row, page, static_cast<int>(slot) - page * size};
}

/// @param row of the sequence's rows of q, of which the last is its last column
constexpr AppendPlace place_of_row(const AppendArguments& call, int b, int row) {
  const PlannedSequence& sequence = call.sequences[b];
  const int column = sequence.kv_len - sequence.q_len + row;
  if (column < 0 || column >= sequence.page_room) return kNoPlace;
  const SequencePages pages = pages_of_sequence(call.pages, sequence.page_begin, b);
  const int index = quotient(column, pages.page_size);
  const int page = page_entry(pages, index);
  if (!is_present(page, pages.pages)) return kNoPlace;
  return {sequence.q_begin + row, page, column - index * pages.page_size.value};
}

/// Rows of q of an entry of the plan's work, from the sequence's first on.
constexpr RowsOfTiles rows_of_entry(const AppendArguments& call, const PlannedRow& entry) {
  const PlannedSequence& sequence = call.sequences[entry.sequence];
  return rows_of_work(sequence.q_len, sequence.lead, entry.q_block, call.side, call.work_side).rows;
}

constexpr long long offset_of(const AppendTensor& pool, const AppendPlace& place) {
  return place.page * pool.page_stride + place.row * pool.row_stride;
}

}  // namespace tilewright::abi
