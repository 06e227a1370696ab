#include "fuzz/paged_calls.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/ceil_div.hpp"
#include "runtime/io/float16.hpp"
#include "verify/x_pools.hpp"

namespace tilewright::verify::fuzz {
namespace {

using Table = PageOptions::Table;

std::vector<std::int64_t> kv_lens_of(const PackedRelationCall& call) {
  std::vector<std::int64_t> lengths;
  for (const SequenceRows& one : call.rows) lengths.push_back(one.kv_len);
  return lengths;
}

// Element [page, row, head, 0] of a pool.
std::int64_t row_at(const TensorView& pool, std::int64_t slot, std::int64_t head) {
  const std::int64_t size = pool.shape[1];
  return slot / size * pool.strides[0] + slot % size * pool.strides[1] + head * pool.strides[2];
}

std::int32_t* numbers_in(const GuardedTensor& tensor) {
  return static_cast<std::int32_t*>(tensor.view().data);
}

}  // namespace

PageForm random_page_form(Random& random, std::int64_t longest) {
  constexpr std::array<std::int64_t, 6> kPageSizes = {1, 3, 16, 17, 64, 256};
  constexpr std::array kTables = {Table::rows, Table::flat, Table::none};
  PageForm form;
  form.pages.table = kTables[static_cast<std::size_t>(random.integer(0, 2))];
  form.pages.page_size = kPageSizes[static_cast<std::size_t>(random.integer(0, 5))];
  if (form.pages.table == Table::none) {
    form.pages.page_size = std::max<std::int64_t>(1, longest + random.integer(0, 3));
  }
  form.has_ends = random.integer(0, 1) == 1;
  form.heads_first = random.integer(0, 1) == 1;
  form.pool = {.row_padding = 8 * random.integer(0, 1), .offset = random.integer(0, 2)};
  form.table_padding = random.integer(0, 3);
  return form;
}

bool suits_paged_x(const Spec& spec) {
  return !spec.kv_new && !spec.pads_rows() && spec.head_dim % x_of(spec.key_value_dtype()) == 0;
}

PagedCall::PagedCall(const PackedRelationCall& call, const PageForm& form, std::uint64_t seed)
    : call_(call),
      form_(form),
      spec_(call.spec),
      made_(random_pages(kv_lens_of(call), form.pages, seed)),
      memory_(numbers_of(call.q_begin, call.rows)) {
  spec_.kv_layout = form.is_x ? Layout::paged_x : Layout::paged;
  spec_.tactic.reset();  // of a kernel that need not serve pages
  if (made_.page_table) place_table(call.batch());
  if (knows_rows_of_k(spec_)) remember_rows();
  k_.emplace(pool_of(call.inputs.k));
  v_.emplace(pool_of(call.inputs.v));
  if (!form.is_x) return;
  // What a page has of a head is contiguous.
  x_k_.emplace(GuardedTensor::copy_of(x_pool(pages_of(*k_), true), {}));
  x_v_.emplace(GuardedTensor::copy_of(x_pool(pages_of(*v_), false), {}));
}

void PagedCall::place_table(std::int64_t batch) {
  const bool is_flat = made_.page_begin.has_value();
  const Placement placement = {.row_padding = is_flat ? 0 : form_.table_padding};
  table_.emplace(GuardedTensor::copy_of(made_.page_table->view(), placement));
  for (std::int64_t b = 0; b < batch; ++b) {
    first_entries_.push_back(is_flat ? static_cast<const std::int32_t*>(made_.page_begin->data())[b]
                                     : b * table_->view().strides[0]);
  }
  if (!is_flat) return;
  const std::array shape = {batch + (form_.has_ends ? 1 : 0)};
  begins_.emplace(form_.has_ends ? DType::i64 : DType::i32, shape);
  if (!form_.has_ends) {
    std::copy(first_entries_.begin(), first_entries_.end(), numbers_in(*begins_));
    return;
  }
  auto* const begins = static_cast<std::int64_t*>(begins_->view().data);
  *std::copy(first_entries_.begin(), first_entries_.end(), begins) = made_.page_table->numel();
}

TensorView PagedCall::pages_of(const GuardedTensor& pool) const {
  TensorView view = pool.view();
  if (!form_.heads_first) return view;
  std::swap(view.shape[1], view.shape[2]);
  std::swap(view.strides[1], view.strides[2]);
  return view;
}

std::int64_t PagedCall::slot_of(std::size_t sequence, std::int64_t column) const {
  std::int64_t page = static_cast<std::int64_t>(sequence);
  if (table_) page = numbers_in(*table_)[first_entries_[sequence] + column / page_size()];
  return page * page_size() + column % page_size();
}

GuardedTensor PagedCall::pool_of(const Tensor& rows) const {
  const std::int64_t heads = rows.shape()[1], width = rows.shape()[2];
  std::array shape = {made_.pages, page_size(), heads, width};
  if (form_.heads_first) std::swap(shape[1], shape[2]);
  GuardedTensor pool(rows.dtype(), shape, form_.pool);
  const TensorView pages = pages_of(pool);
  const auto bytes = static_cast<std::int64_t>(size_of(rows.dtype()));
  for (std::size_t b = 0; b < call_.rows.size(); ++b) {
    for (std::int64_t column = 0; column < call_.rows[b].kv_len; ++column) {
      const std::int64_t slot = slot_of(b, column);
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::int64_t from = ((call_.rows[b].kv_begin + column) * heads + head) * width;
        std::memcpy(static_cast<std::byte*>(pages.data) + row_at(pages, slot, head) * bytes,
                    static_cast<const std::byte*>(rows.data()) + from * bytes,
                    static_cast<std::size_t>(width * bytes));
      }
    }
  }
  return pool;
}

void PagedCall::remember_rows() {
  old_rows_name_ = remember_rows_of_k(spec_);
  old_rows_.emplace(DType::i32, std::array{made_.pages * page_size()});
  std::fill_n(numbers_in(*old_rows_), old_rows_->view().numel(), 0);
  for (std::size_t b = 0; b < call_.rows.size(); ++b) {
    for (std::int64_t column = 0; column < call_.rows[b].kv_len; ++column) {
      numbers_in(*old_rows_)[slot_of(b, column)] =
          static_cast<std::int32_t>(call_.rows[b].kv_begin + column);
    }
  }
}

Problem PagedCall::problem() const {
  Problem problem = call_.inputs.problem();
  problem.k = x_k_ ? x_k_->view() : pages_of(*k_);
  problem.v = x_v_ ? x_v_->view() : pages_of(*v_);
  problem.shape.kv_len = made_.pages * page_size();
  problem.page_size = page_size();
  Sequences sequences = memory_.sequences();
  sequences.kv_begin.reset();
  if (table_) sequences.page_table = table_->view();
  if (begins_) sequences.page_begin = begins_->view();
  problem.sequences = sequences;
  if (old_rows_) problem.snippet.buffers.emplace(old_rows_name_, old_rows_->view());
  return problem;
}

std::vector<PagedCall::Entry> PagedCall::entries() const {
  std::vector<Entry> all;
  for (std::size_t b = 0; b < call_.rows.size() && table_; ++b) {
    const std::int64_t pages = ceil_div(call_.rows[b].kv_len, page_size());
    for (std::int64_t i = 0; i < pages; ++i) all.push_back({.sequence = b, .index = i});
  }
  return all;
}

void PagedCall::set_entry(const Entry& entry, std::int32_t page) {
  numbers_in(*table_)[first_entries_[entry.sequence] + entry.index] = page;
}

std::int64_t PagedCall::context_of(std::size_t sequence) const {
  const SequenceRows& one = call_.rows[sequence];
  return std::max<std::int64_t>(0, one.kv_len - one.q_len);
}

GuardedTensor PagedCall::moved_out_of(const GuardedTensor& pool) const {
  const TensorView pages = pages_of(pool);
  const std::int64_t heads = pages.shape[2], width = pages.shape[3];
  GuardedTensor moved(spec_.dtype, std::array{call_.inputs.shape.q_len, heads, width});
  for (std::size_t b = 0; b < call_.rows.size(); ++b) {
    const SequenceRows& one = call_.rows[b];
    for (std::int64_t column = context_of(b); column < one.kv_len; ++column) {
      const std::int64_t row = one.q_begin + one.q_len - one.kv_len + column;
      const std::int64_t slot = slot_of(b, column);
      for (std::int64_t i = 0; i < heads * width; ++i) {
        const std::int64_t from = row_at(pages, slot, i / width) + i % width;
        write_element(moved.view().data, spec_.dtype, row * heads * width + i,
                      read_element(pages.data, pages.dtype, from));
        write_element(pages.data, pages.dtype, from, std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
  return moved;
}

void PagedCall::take_new_rows() {
  k_new_.emplace(moved_out_of(*k_));
  v_new_.emplace(moved_out_of(*v_));
}

void PagedCall::forget_new_pages() {
  for (const Entry& entry : entries()) {
    if (entry.index >= ceil_div(context_of(entry.sequence), page_size())) {
      set_entry(entry, std::int32_t{1} << 30);
    }
  }
}

}  // namespace tilewright::verify::fuzz
