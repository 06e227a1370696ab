#pragma once

// Where rows of K and V lie that are kept in pages of a pool, [pages, page_size, num_kv_heads, head_dim].
// The runtime and kernels of both devices share this file.

namespace tilewright::abi {

/// A divisor of numbers from 0 to 2^31 - 1: their quotients take one multiplication (Granlund and
/// Montgomery, "Division by invariant integers using multiplication", theorem 4.2).
struct Divisor {
  int value;
  int shift;            // the least with 2^shift >= value
  unsigned multiplier;  // ceil(2^(31 + shift) / value), which is below 2^32
};

/// @param value at least 1
constexpr Divisor make_divisor(int value) {
  Divisor divisor = {value, 0, 0};
  while ((1ull << divisor.shift) < static_cast<unsigned long long>(value)) ++divisor.shift;
  const unsigned long long power = 1ull << (31 + divisor.shift);
  divisor.multiplier = static_cast<unsigned>((power + value - 1) / value);
  return divisor;
}

constexpr int quotient(int x, const Divisor& divisor) {
  return static_cast<int>(static_cast<unsigned long long>(x) * divisor.multiplier >>
                          (31 + divisor.shift));
}

/// The pages of one sequence; in a call's arguments, of all sequences.
struct SequencePages {
  const int* table;   // numbers of its pages in the pool, from its first one on; null: `first_page` and
                      // those after it
  int first_page;     // used if table is null
  int pages;          // of the pool
  Divisor page_size;  // rows of a page
  int box_shift;      // log2 of the rows of boxes of k and v, for kernels that take tensor maps
};

/// @param call of all sequences
/// @param begin element of the table where the sequence's pages begin
constexpr SequencePages pages_of_sequence(SequencePages call, long long begin, int b) {
  if (call.table == nullptr) {
    call.first_page = b;
  } else {
    call.table += begin;
  }
  return call;
}

/// What a table says of a page that was freed: its rows are read as zeros.
constexpr int kFreedPage = -1;

/// What the table says, whatever it is.
/// @param index of a page in its sequence
constexpr int page_entry(const SequencePages& pages, int index) {
  return pages.table == nullptr ? pages.first_page + index : pages.table[index];
}

/// Whether a pool of so many pages has this one. Rows of a page that it has not are read as zeros.
constexpr bool is_present(int page, int pages) {
  return static_cast<unsigned>(page) < static_cast<unsigned>(pages);
}

/// The row of a pool, counted over its pages, that a column of the sequence lies in: kv_token. Where
/// the page is not present, it is clamped to the pool.
/// @param column from 0; one at or after kv_len gives the last column's row
constexpr int row_of_column(const SequencePages& pages, int column, int kv_len) {
  const int inside = column < kv_len ? column : kv_len - 1;
  const int index = quotient(inside, pages.page_size);
  const int size = pages.page_size.value;
  const long long row =
      static_cast<long long>(page_entry(pages, index)) * size + (inside - index * size);
  const long long last = static_cast<long long>(pages.pages) * size - 1;
  return static_cast<int>(row < 0 ? 0 : row > last ? last : row);
}

/// kv_token of a sequence's columns by their positions.
struct TokensInPages {
  SequencePages pages;
  int kv_offset;
  int kv_len;

  constexpr int operator()(int kv_idx) const {
    return row_of_column(pages, kv_idx - kv_offset, kv_len);
  }
};

/// Columns of a sequence that pages hold where the last q_len of its columns are new rows.
constexpr int context_of(int q_len, int kv_len) { return kv_len > q_len ? kv_len - q_len : 0; }

/// The same where the columns from `context` on are new rows, which have no row of the pool: -1.
struct TokensBesideNewRows {
  TokensInPages in_pages;
  int context;

  constexpr int operator()(int kv_idx) const {
    return kv_idx - in_pages.kv_offset < context ? in_pages(kv_idx) : -1;
  }
};

}  // namespace tilewright::abi
