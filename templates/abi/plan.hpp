#pragma once

#include "pages.hpp"
#include "tile_map.hpp"

// The plan of a step of packed sequences: what forward reads in place of the caller's lengths. It lies
// in the caller's workspace; plan_exact or plan_proved writes it.

namespace tilewright::abi {

/// What a value of the caller's tensors was clamped for; in the order of reports.
enum PlanFaultKind : int {
  kNoFault = 0,
  kFaultOfQBegin = 1,    // q_begin[place] is `value`, and the rows before end at, or q has, `limit`
  kFaultOfKvBegin = 2,   // likewise, of k
  kFaultOfPageBegin = 3, // likewise, of the page table
  kFaultOfKvLen = 4,     // kv_len[place] is `value`, with room for `limit`
  kFaultOfPageTable = 5, // page `place` of the sequence is `value`, and the pool has `limit`
  kFaultOfQOffset = 6,   // leaves an int's range with the rows
  kFaultOfKvOffset = 7,
  kFaultOfRows = 8,     // rows end at position `value`, and lists of positions have `limit` rows
  kFaultOfColumns = 9,  // likewise
  kFaultOfQLen = 11,    // sequence `place` has `value` rows of q, and may have `limit`. 10 is a report's unsorted element
};

/// The first value of a sequence that was clamped.
struct PlanFault {
  int kind;  // PlanFaultKind
  int place;
  long long value;
  long long limit;
};

/// One sequence's rows: q_begin + q_len <= total_q, kv_begin + kv_len <= total_kv. kv_begin is 0 where
/// k and v are in pages.
struct SequenceRows {
  int q_begin;
  int q_len;
  int kv_begin;
  int kv_len;
  int q_offset;   // q_idx = row + q_offset
  int kv_offset;  // kv_idx = column + kv_offset
};

/// What is added to a row's or a column's position for its place in the packed tensors.
constexpr int q_token_offset(const SequenceRows& rows) { return rows.q_begin - rows.q_offset; }
constexpr int kv_token_offset(const SequenceRows& rows) { return rows.kv_begin - rows.kv_offset; }

/// And where its tiles are.
struct TiledSequence : SequenceRows {
  int tile_row;  // of the tile map: its first
  int lead;      // rows that its first row of tiles would have before its first row; 0 but for lists of
                 // positions, whose rows of tiles begin at multiples of block[0] in q_idx
  long long page_begin;  // element of the page table where its pages begin; 0 without one
};

/// A sequence as it was clamped.
struct PlannedSequence : TiledSequence {
  int faults;      // values that were clamped
  int page_room;   // columns that its pages have entries for; 0 where k and v are packed
  PlanFault fault;  // the first of them
};

/// Rows of tiles of a sequence.
/// @param side block[0]
constexpr int count_q_blocks(int q_len, int lead, int side) {
  return (q_len + lead + side - 1) / side;
}

/// Rows of q of one row of tiles, from the sequence's first on.
struct RowsOfTiles {
  int begin;
  int end;
};
constexpr RowsOfTiles rows_of_tiles(int q_len, int lead, int q_block, int side) {
  const int begin = q_block * side - lead, end = begin + side;
  return {begin < 0 ? 0 : begin, end < q_len ? end : q_len};
}

/// Rows of q that one entry of a GPU's list of work stands for: those of a row of tiles, or `work_side`
/// rows that lie in two of them. A first row of tiles with rows missing is an entry alone.
struct RowsOfWork {
  RowsOfTiles rows;
  int q_block;       // the row of tiles that they begin in
  int row_in_block;  // how many of its rows come before
};
constexpr RowsOfWork rows_of_work(int q_len, int lead, int entry, int side, int work_side) {
  if (lead > 0 && entry == 0) return {rows_of_tiles(q_len, lead, 0, side), 0, 0};
  const int alone = lead > 0 ? 1 : 0;
  const int before = (entry - alone) * work_side;  // rows of the entries before, but for the first
  const int begin = before + (lead > 0 ? side - lead : 0), end = begin + work_side;
  const RowsOfTiles rows = {begin, end < q_len ? end : q_len};
  return {rows, alone + before / side, before % side};
}
constexpr bool spans_two_rows(const RowsOfWork& work, int side) {
  return work.row_in_block + work.rows.end - work.rows.begin > side;
}

/// Entries of a sequence.
constexpr int count_work(int q_len, int lead, int side, int work_side) {
  if (q_len == 0) return 0;
  const int alone = lead > 0 ? 1 : 0, others = q_len - (lead > 0 ? side - lead : 0);
  return alone + (others > 0 ? (others + work_side - 1) / work_side : 0);
}

/// An entry of the list of work: a row of tiles that has rows of q; on a GPU, rows of work.
struct PlannedRow {
  int sequence;
  int q_block;  // of the sequence
};

/// Elements of buffers that the spec promises to be sorted and that are less than the one before.
struct UnsortedElements {
  unsigned long long count;
  // The first: its buffer in the order of the spec's names, and its place row by row. A dimension of
  // stride 0 counts as one of extent 1.
  unsigned long long first;
  long long value;
  long long before;
};

constexpr int kUnsortedPlaceBits = 48;
constexpr unsigned long long unsorted_element(int buffer, long long place) {
  return static_cast<unsigned long long>(buffer) << kUnsortedPlaceBits |
         static_cast<unsigned long long>(place);
}
constexpr int buffer_of_unsorted(unsigned long long element) {
  return static_cast<int>(element >> kUnsortedPlaceBits);
}
constexpr long long place_of_unsorted(unsigned long long element) {
  return static_cast<long long>(element & ((1ull << kUnsortedPlaceBits) - 1));
}

constexpr int kMostPlanGroups = 8;

struct PlanHeader {
  unsigned long long faults;  // values that were clamped
  int first_faulty;           // the first sequence with one; batch where there is none
  int rows;                   // entries of `work` of each list, but for those of sequences that are decoded
  int end_of_q;               // where the last sequence's rows end
  int all_rows;               // entries of `work` with those of decoded sequences, which come last
  // Entries of each list from group_begin[g] on are of sequences whose K and V a GPU's L2 cache holds
  // together; the last number is `rows`.
  int group_begin[kMostPlanGroups + 1];
  unsigned arrived;  // blocks of threads that have decided their tiles of all lists; 0 between launches
  // All zero but for plans whose spec promises sorted buffers.
  unsigned unsorted_arrived;          // blocks of threads that have looked; 0 between launches
  unsigned long long unsorted_found;  // unsorted.count while blocks of threads look; 0 between launches
  unsigned long long unsorted_first;  // ~unsorted.first likewise
  UnsortedElements unsorted;
};

/// Where the parts of a plan lie, in bytes from its begin. Every part begins at a multiple of 256.
struct PlanLayout {
  long long arrivals;   // unsigned[heads]: blocks of threads that have decided their tiles of a list;
                        // 0 between launches
  long long decode_arrived;  // unsigned[decode_blocks]: DecodeWork::arrived
  long long split_arrived;   // unsigned[split_counters]: SplitWork::arrived
  long long sequences;  // PlannedSequence[batch]
  long long spans;      // TileSpan[heads][rows][spans_of_row]; none without mask_mod
  long long work;       // PlannedRow[heads][rows], of each group those that keep most tiles first
  long long bytes;      // of all
};

constexpr long long plan_aligned(long long bytes) { return (bytes + 255) / 256 * 256; }

/// @param heads lists of the mask, or of positions: 1, or num_q_heads
/// @param rows  tile_map_rows
/// @param spans_of_row 0 without mask_mod
/// @param split_counters q tiles and warpgroups of a prefill that is split; 0: it is not
/// @param decode_blocks blocks of threads that decode; 0: the spec has no decode kernel
constexpr PlanLayout plan_layout(long long batch, long long heads, long long rows,
                                 long long spans_of_row, long long decode_blocks = 0,
                                 long long split_counters = 0) {
  PlanLayout layout = {};
  layout.arrivals = plan_aligned(sizeof(PlanHeader));
  layout.decode_arrived =
      layout.arrivals + plan_aligned(heads * static_cast<long long>(sizeof(unsigned)));
  layout.split_arrived = layout.decode_arrived +
                         plan_aligned(decode_blocks * static_cast<long long>(sizeof(unsigned)));
  layout.sequences = layout.split_arrived +
                     plan_aligned(split_counters * static_cast<long long>(sizeof(unsigned)));
  layout.spans = layout.sequences +
                 plan_aligned(batch * static_cast<long long>(sizeof(PlannedSequence)));
  layout.work = layout.spans +
                plan_aligned(heads * rows * spans_of_row * static_cast<long long>(sizeof(TileSpan)));
  layout.bytes =
      layout.work + plan_aligned(heads * rows * static_cast<long long>(sizeof(PlannedRow)));
  return layout;
}

/// What the caller said of one sequence; absent tensors are null.
struct SequenceTensors {
  const int* q_begin;    // [batch + 1]
  const int* kv_begin;   // [batch + 1], or [batch] if kv_len is given
  const int* kv_len;     // [batch]
  const int* q_offset;   // [batch]
  const int* kv_offset;  // [batch]
  const int* page_table;   // [batch][table_stride], or [table_entries]
  const void* page_begin;  // [batch] or [batch + 1], int or long long; null: of a two-dimensional table
};

/// Sizes of what says where pages are; all 0 where k and v are packed.
struct PageBounds {
  long long table_entries;  // of the whole table
  long long table_stride;   // of a two-dimensional table whose rows are the sequences': from one to the next
  int table_columns;        // of it; without a table 1, as page b is sequence b's
  int ends_at_next;         // whether page_begin has batch + 1, and a sequence's pages end where the next one's begin
  int page_begin_bytes;     // of one: 4 or 8
  int page_size;
  int pages;          // of the pool
  int has_new_rows;   // whether the last q_len columns of a sequence are not in pages
  int counts_absent;  // whether entries are looked at that no page has
};

struct PlanBounds {
  int total_q;
  int total_kv;
  int max_q_len;
  int max_kv_len;        // 0 where total_kv is, but for new rows: a pool without pages has no row to read
  int side;              // block[0]
  int position_rows;     // of lists of positions; 0: there are none
  int position_columns;  // likewise
  int decode_q_len;      // sequences with at most so many rows of q are decoded; 0: none is
  PageBounds pages;
};

constexpr bool has_pages(const PlanBounds& bounds) { return bounds.pages.page_size > 0; }

constexpr bool has_positions(const PlanBounds& bounds) { return bounds.position_rows > 0; }

/// A row of tiles of lists of positions; negative where its rows have negative positions.
constexpr int position_block(const SequenceRows& rows, int lead, int q_block, int side) {
  return (rows.q_offset - lead) / side + q_block;
}

/// Whether a sequence is a decode kernel's, which takes rows of one row of tiles.
/// @param decode_q_len, side of PlanBounds
constexpr bool is_decoded(int decode_q_len, int side, int q_len, int lead) {
  return q_len > 0 && q_len <= decode_q_len && lead + q_len <= side;
}
constexpr bool is_decoded(const PlanBounds& bounds, int q_len, int lead) {
  return is_decoded(bounds.decode_q_len, bounds.side, q_len, lead);
}

/// Indices that kernels compute with beyond a row or column stay ints.
constexpr int kGreatestIndex = 2147483647 - 1024;

/// Keeps the first fault of a sequence and counts all of them.
struct FaultCounter {
  PlanFault first = {};
  int count = 0;
  bool is_reported = true;  // false: only lengths are wanted, so no table is read to count faults

  constexpr int clamped(int value, long long least, long long greatest, PlanFaultKind kind,
                        int place, long long limit) {
    return static_cast<int>(clamped_wide(value, least, greatest, kind, place, limit));
  }
  constexpr long long clamped_wide(long long value, long long least, long long greatest,
                                   PlanFaultKind kind, int place, long long limit) {
    const long long inside = value < least ? least : value > greatest ? greatest : value;
    if (inside != value && count++ == 0) first = {kind, place, value, limit};
    return inside;
  }
};

constexpr long long page_begin_at(const SequenceTensors& tensors, const PageBounds& bounds, int i) {
  return bounds.page_begin_bytes == 8 ? static_cast<const long long*>(tensors.page_begin)[i]
                                      : static_cast<const int*>(tensors.page_begin)[i];
}

/// Where a sequence's pages are, and how many rows they have room for.
struct PlacedPages {
  long long begin;
  long long room;
};

constexpr PlacedPages place_pages(const SequenceTensors& tensors, const PageBounds& bounds, int b,
                                  FaultCounter& faults) {
  if (tensors.page_begin == nullptr) {
    return {b * bounds.table_stride,
            static_cast<long long>(bounds.table_columns) * bounds.page_size};
  }
  const long long entries = bounds.table_entries;
  // A begin that is also the end of the sequence before counts there.
  FaultCounter counted_before;
  FaultCounter& of_begin = b == 0 || bounds.ends_at_next == 0 ? faults : counted_before;
  const long long begin = of_begin.clamped_wide(page_begin_at(tensors, bounds, b), 0, entries,
                                                kFaultOfPageBegin, b, entries);
  if (bounds.ends_at_next == 0) return {begin, (entries - begin) * bounds.page_size};
  const long long next = page_begin_at(tensors, bounds, b + 1);
  const long long end = faults.clamped_wide(next, begin, entries, kFaultOfPageBegin, b + 1,
                                            next < begin ? begin : entries);
  return {begin, (end - begin) * bounds.page_size};
}

/// Counts entries of a sequence's pages that are neither a page nor kFreedPage.
constexpr void count_absent_pages(const SequenceTensors& tensors, const PageBounds& bounds,
                                  const PlannedSequence& sequence, FaultCounter& faults) {
  const int columns = bounds.has_new_rows != 0 ? context_of(sequence.q_len, sequence.kv_len)
                                               : sequence.kv_len;
  const int entries = (columns + bounds.page_size - 1) / bounds.page_size;
  for (int i = 0; i < entries; ++i) {
    const int page = tensors.page_table[sequence.page_begin + i];
    if (page == kFreedPage) continue;
    faults.clamped(page, 0, bounds.pages - 1, kFaultOfPageTable, i, bounds.pages);
  }
}

/// Has a sequence's rows of tiles begin at multiples of their side in q_idx.
constexpr void place_in_positions(const PlanBounds& bounds, int b, PlannedSequence& sequence,
                                  FaultCounter& faults) {
  sequence.tile_row += b;  // a sequence may have one more
  if (sequence.q_len == 0) return;
  const int remainder = sequence.q_offset % bounds.side;
  sequence.lead = remainder < 0 ? remainder + bounds.side : remainder;
  const int least = -kGreatestIndex - 1024;
  faults.clamped(sequence.q_offset + sequence.q_len, least, bounds.position_rows, kFaultOfRows, b,
                 bounds.position_rows);
  faults.clamped(sequence.kv_len, 0, bounds.position_columns, kFaultOfColumns, b,
                 bounds.position_columns);
}

/// Reads and clamps what is said of sequence b. Whatever the tensors hold, all rows are inside.
constexpr PlannedSequence plan_sequence(const SequenceTensors& tensors, const PlanBounds& bounds,
                                        int b, FaultCounter& faults) {
  // All reads come first, so that none waits for another.
  const int q_first = tensors.q_begin[b], q_next = tensors.q_begin[b + 1];
  const int kv_first = has_pages(bounds) ? 0 : tensors.kv_begin[b];
  const bool has_kv_len = tensors.kv_len != nullptr;
  const int kv_next = has_kv_len ? 0 : tensors.kv_begin[b + 1];
  const int kv_len = has_kv_len ? tensors.kv_len[b] : 0;
  const int kv_offset = tensors.kv_offset != nullptr ? tensors.kv_offset[b] : 0;
  const int q_offset = tensors.q_offset != nullptr ? tensors.q_offset[b] : 0;

  PlannedSequence sequence = {};
  // Only the first begin counts: every other one is the end of the sequence before.
  FaultCounter begins;
  FaultCounter& of_begin = b == 0 ? faults : begins;
  sequence.q_begin =
      of_begin.clamped(q_first, 0, bounds.total_q, kFaultOfQBegin, b, bounds.total_q);
  const int q_end = faults.clamped(q_next, sequence.q_begin, bounds.total_q, kFaultOfQBegin, b + 1,
                                   q_next < sequence.q_begin ? sequence.q_begin : bounds.total_q);
  sequence.q_len = faults.clamped(q_end - sequence.q_begin, 0, bounds.max_q_len, kFaultOfQLen, b,
                                  bounds.max_q_len);

  long long rows_left = 0;
  if (has_pages(bounds)) {
    const PlacedPages pages = place_pages(tensors, bounds.pages, b, faults);
    sequence.page_begin = pages.begin;
    rows_left = pages.room;
    if (bounds.pages.has_new_rows != 0 && bounds.pages.pages == 0) rows_left = 0;
    sequence.page_room = static_cast<int>(rows_left < kGreatestIndex ? rows_left : kGreatestIndex);
    if (bounds.pages.has_new_rows != 0) rows_left += sequence.q_len;
  } else {
    FaultCounter& of_kv_begin = b == 0 || has_kv_len ? faults : begins;
    sequence.kv_begin =
        of_kv_begin.clamped(kv_first, 0, bounds.total_kv, kFaultOfKvBegin, b, bounds.total_kv);
    rows_left = bounds.total_kv - sequence.kv_begin;
  }
  const long long room = rows_left < bounds.max_kv_len ? rows_left : bounds.max_kv_len;
  if (has_kv_len) {
    sequence.kv_len = faults.clamped(kv_len, 0, room, kFaultOfKvLen, b, room);
  } else {
    const int end =
        faults.clamped(kv_next, sequence.kv_begin, bounds.total_kv, kFaultOfKvBegin, b + 1,
                       kv_next < sequence.kv_begin ? sequence.kv_begin : bounds.total_kv);
    sequence.kv_len = faults.clamped(end - sequence.kv_begin, 0, room, kFaultOfKvLen, b, room);
  }

  if (bounds.pages.counts_absent != 0 && faults.is_reported && tensors.page_table != nullptr) {
    count_absent_pages(tensors, bounds.pages, sequence, faults);
  }
  if (tensors.kv_offset != nullptr) {
    sequence.kv_offset =
        faults.clamped(kv_offset, sequence.kv_begin - kGreatestIndex,
                       kGreatestIndex - sequence.kv_len, kFaultOfKvOffset, b,
                       kGreatestIndex - sequence.kv_len);
  }
  const int least = sequence.q_begin - kGreatestIndex;  // so that q_token_offset is an int
  if (tensors.q_offset != nullptr) {
    const long long greatest = kGreatestIndex - sequence.q_len;
    sequence.q_offset =
        faults.clamped(q_offset, least, greatest, kFaultOfQOffset, b, greatest);
  } else {
    const long long end_of_kv = static_cast<long long>(sequence.kv_offset) + sequence.kv_len;
    const long long by_ends = end_of_kv - sequence.q_len;
    sequence.q_offset = static_cast<int>(by_ends < least ? least : by_ends);
  }
  sequence.tile_row = row_of_sequence(sequence.q_begin, b, bounds.side);
  if (has_positions(bounds)) place_in_positions(bounds, b, sequence, faults);
  sequence.faults = faults.count;
  sequence.fault = faults.first;
  return sequence;
}

}  // namespace tilewright::abi
