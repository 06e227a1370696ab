#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "packed_batch.hpp"

// Packed batches with their k and v in pages instead, for tests on any device whose memory is the
// host's.

namespace tilewright::packed_calls {

inline Spec paged_spec(DType dtype, int dim, const std::string& mask_mod, bool lse = true) {
  return {.dtype = dtype,
          .head_dim = dim,
          .layout = Layout::packed,
          .kv_layout = Layout::paged,
          .mask_mod = mask_mod,
          .outputs = {.lse = lse}};
}

/// Fills out and lse of a batch by the packed call on the CPU in f32.
inline void run_packed(Spec spec, Batch& batch) {
  spec.kv_layout.reset();
  spec.dtype = f32;
  const Attention attention(spec, {.device = Device::cpu()});
  Workspace workspace(attention.workspace_size(batch.shape()));
  const BatchTensors staged(batch, f32);
  const Plan plan =
      attention.plan(batch.shape(), staged.sequences(), {}, {.workspace = workspace.view()});
  fill(batch.out, -7.0f);
  fill(batch.lse, -9.0f);
  attention.forward(
      {.q = batch.q, .k = batch.k, .v = batch.v, .out = batch.out, .lse = batch.lse.view()}, plan);
}

/// Which tensors say where pages are.
enum class TableForm { rows, flat, flat_with_ends, none };

/// Pools with the rows of a batch, in pages in a mixed-up order; all else is poison.
struct PagedBatch {
  std::int64_t page_size, pages = 0;
  Tensor k, v;  // [pages, page_size, kv_heads, dim]
  Tensor kv_len;
  std::optional<Tensor> page_table, page_begin;

  PagedBatch(const Batch& batch, std::int64_t rows_of_page, TableForm form)
      : page_size(rows_of_page), kv_len(int_tensor(batch.kv_lens)) {
    const std::vector<std::vector<int>> of_sequences = deal(batch, form);
    for (const auto& [from, to] : {std::pair{&batch.k, &k}, std::pair{&batch.v, &v}}) {
      *to = Tensor::zeros(f32, {pages, page_size, batch.kv_heads, batch.dim});
      fill(*to, kPoison);
      copy_rows(batch, of_sequences, *from, *to);
    }
    if (form != TableForm::none) make_tables(of_sequences, form);
  }

  Sequences sequences(const TensorView& q_begin) const {
    Sequences sequences = {.q_begin = q_begin, .kv_len = kv_len.view()};
    if (page_table) sequences.page_table = page_table->view();
    if (page_begin) sequences.page_begin = page_begin->view();
    return sequences;
  }

  PackedShape shape(const Batch& batch) const {
    PackedShape shape = batch.shape();
    shape.page_size = page_size;
    shape.total_kv = pages * page_size;
    return shape;
  }

 private:
  // Numbers of each sequence's pages; without a table page b is sequence b's.
  std::vector<std::vector<int>> deal(const Batch& batch, TableForm form) {
    std::vector<std::vector<int>> of_sequences;
    for (const Lengths& length : batch.lengths) {
      of_sequences.emplace_back(
          form == TableForm::none
              ? 1
              : static_cast<std::size_t>((length.kv + page_size - 1) / page_size));
      pages += static_cast<std::int64_t>(of_sequences.back().size());
    }
    pages += 3;
    int next = 0;
    for (auto& numbers : of_sequences) {
      for (int& page : numbers) {
        // 7 and the number of pages share no divisor, or 1 stands for it: each page once.
        const int step = pages % 7 == 0 ? 1 : 7;
        page = form == TableForm::none ? next : static_cast<int>((next * step + 2) % pages);
        ++next;
      }
    }
    return of_sequences;
  }

  void copy_rows(const Batch& batch, const std::vector<std::vector<int>>& of_sequences,
                 const Tensor& from, Tensor& to) const {
    const std::int64_t width = std::int64_t{batch.kv_heads} * batch.dim;
    for (std::size_t b = 0; b < of_sequences.size(); ++b) {
      for (std::int64_t row = 0; row < batch.kv_lens[b]; ++row) {
        const std::int64_t page = of_sequences[b][static_cast<std::size_t>(row / page_size)];
        const float* const begin =
            static_cast<const float*>(from.data()) + (batch.kv_begins[b] + row) * width;
        std::copy(begin, begin + width, floats(to) + (page * page_size + row % page_size) * width);
      }
    }
  }

  // Entries that no sequence needs are pages that do not exist.
  void make_tables(const std::vector<std::vector<int>>& of_sequences, TableForm form) {
    constexpr int kUnused = 1 << 30;
    std::size_t longest = 0;
    for (const auto& numbers : of_sequences) longest = std::max(longest, numbers.size());
    std::vector<int> entries, begins;
    for (const auto& numbers : of_sequences) {
      begins.push_back(static_cast<int>(entries.size()));
      entries.insert(entries.end(), numbers.begin(), numbers.end());
      const std::size_t unused = form == TableForm::rows ? longest + 2 - numbers.size() : 1;
      entries.insert(entries.end(), unused, kUnused);
    }
    page_table = int_tensor(entries);
    if (form == TableForm::rows) {
      page_table = Tensor::zeros(i32, {static_cast<std::int64_t>(of_sequences.size()),
                                       static_cast<std::int64_t>(longest) + 2});
      std::copy(entries.begin(), entries.end(), static_cast<int*>(page_table->data()));
      return;
    }
    if (form == TableForm::flat) {
      page_begin = int_tensor(begins);
      return;
    }
    begins.push_back(static_cast<int>(entries.size()));
    page_begin = Tensor::zeros(i64, {static_cast<std::int64_t>(begins.size())});
    std::copy(begins.begin(), begins.end(), static_cast<std::int64_t*>(page_begin->data()));
  }
};

}  // namespace tilewright::packed_calls
