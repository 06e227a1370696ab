#include "verify/sequences.hpp"

#include <algorithm>
#include <optional>

#include "runtime/call/staged_plan.hpp"

namespace tilewright::verify {
namespace {

std::int64_t value_at(const TensorView& tensor, std::int64_t i) {
  return static_cast<const std::int32_t*>(tensor.data)[i];
}

std::int64_t inside(std::int64_t value, std::int64_t least, std::int64_t greatest) {
  return std::max(least, std::min(value, greatest));
}

void take_rows_of_k(const Problem& problem, std::int64_t b, SequenceRows& rows) {
  const Sequences& given = *problem.sequences;
  const std::int64_t total_kv = problem.shape.kv_len;
  rows.kv_begin = inside(value_at(*given.kv_begin, b), 0, total_kv);
  const std::int64_t room = total_kv - rows.kv_begin;
  const std::int64_t kv_len =
      given.kv_len ? value_at(*given.kv_len, b) : value_at(*given.kv_begin, b + 1) - rows.kv_begin;
  rows.kv_len = inside(kv_len, 0, room);
}

std::int64_t page_begin_at(const TensorView& page_begin, std::int64_t i) {
  if (page_begin.dtype == DType::i32) return value_at(page_begin, i);
  return static_cast<const std::int64_t*>(page_begin.data)[i];
}

void take_pages(const Problem& problem, std::int64_t b, SequenceRows& rows) {
  const Sequences& given = *problem.sequences;
  std::int64_t begin = b, entries = 1;
  if (given.page_begin) {
    const std::int64_t all = given.page_table->numel();
    const bool ends_at_next = given.page_begin->shape[0] > problem.shape.batch;
    begin = inside(page_begin_at(*given.page_begin, b), 0, all);
    const std::int64_t end =
        ends_at_next ? inside(page_begin_at(*given.page_begin, b + 1), begin, all) : all;
    entries = end - begin;
  } else if (given.page_table) {
    begin = b * given.page_table->strides[0];
    entries = given.page_table->shape[1];
  }
  const std::int64_t of_new = problem.k_new ? rows.q_len : 0;
  const bool has_pages = problem.shape.kv_len > 0;  // else the pool has no row to read
  const std::int64_t room = has_pages ? entries * problem.page_size : 0;
  rows.kv_len = inside(value_at(*given.kv_len, b), 0, room + of_new);
  rows.pages = {.table = nullptr,
                .first_page = static_cast<int>(begin),
                .pages = static_cast<int>(problem.shape.kv_len / problem.page_size),
                .page_size = abi::make_divisor(static_cast<int>(problem.page_size)),
                .box_shift = 0};
  if (!given.page_table) return;
  rows.pages.table = static_cast<const std::int32_t*>(given.page_table->data) + begin;
  rows.pages.first_page = 0;
}

}  // namespace

bool SequenceRows::has_rows_of(const SequenceRows& other) const {
  return q_begin == other.q_begin && q_len == other.q_len && kv_begin == other.kv_begin &&
         kv_len == other.kv_len && q_offset == other.q_offset && kv_offset == other.kv_offset;
}

std::optional<std::int64_t> page_of(const SequenceRows& rows, std::int64_t index) {
  const std::int64_t page = rows.pages.table == nullptr ? rows.pages.first_page + index
                                                        : std::int64_t{rows.pages.table[index]};
  if (page < 0 || page >= rows.pages.pages) return std::nullopt;
  return page;
}

std::vector<SequenceRows> read_sequences(const Problem& problem) {
  const Sequences& given = *problem.sequences;
  const std::int64_t total_q = problem.shape.q_len;
  std::vector<SequenceRows> all;
  for (std::int64_t b = 0; b < problem.shape.batch; ++b) {
    SequenceRows rows;
    rows.q_begin = inside(value_at(given.q_begin, b), 0, total_q);
    rows.q_len = inside(value_at(given.q_begin, b + 1), rows.q_begin, total_q) - rows.q_begin;
    problem.page_size > 0 ? take_pages(problem, b, rows) : take_rows_of_k(problem, b, rows);
    rows.kv_offset = given.kv_offset ? value_at(*given.kv_offset, b) : 0;
    rows.q_offset =
        given.q_offset ? value_at(*given.q_offset, b) : rows.kv_offset + rows.kv_len - rows.q_len;
    all.push_back(rows);
  }
  return all;
}

PackedShape packed_shape(const Problem& problem) {
  PackedShape shape = {.batch = problem.shape.batch,
                       .num_q_heads = problem.shape.num_q_heads,
                       .num_kv_heads = problem.shape.num_kv_heads,
                       .total_q = problem.shape.q_len,
                       .total_kv = problem.shape.kv_len,
                       .page_size = problem.page_size};
  for (const SequenceRows& rows : read_sequences(problem)) {
    shape.max_q_len = std::max(shape.max_q_len, rows.q_len);
    shape.max_kv_len = std::max(shape.max_kv_len, rows.kv_len);
  }
  return shape;
}

PlanWishes wishes_of(const Problem& problem) {
  return {.positions = problem.positions,
          .batch_invariant = problem.batch_invariant,
          .splits = problem.splits};
}

abi::SnippetArguments arguments_of(abi::SnippetArguments call, const SequenceRows& sequence) {
  call.q_len = static_cast<int>(sequence.q_len);
  call.kv_len = static_cast<int>(sequence.kv_len);
  call.q_offset = static_cast<int>(sequence.q_offset);
  call.kv_offset = static_cast<int>(sequence.kv_offset);
  call.q_token_offset = static_cast<int>(sequence.q_begin - sequence.q_offset);
  call.kv_token_offset = static_cast<int>(sequence.kv_begin - sequence.kv_offset);
  call.pages = sequence.pages;
  return call;
}

}  // namespace tilewright::verify
