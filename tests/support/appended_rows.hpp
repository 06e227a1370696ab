#pragma once

#include <cstring>

#include "paged_batch.hpp"

// Appends of a batch's last rows to its pools, for tests on any device whose memory is the host's.

namespace tilewright::appended_rows {

using namespace packed_calls;

/// Row of the pool that a sequence's column lies in.
inline std::int64_t slot_of(const PagedBatch& paged, std::int64_t b, std::int64_t column) {
  std::int64_t page = b;
  if (paged.page_table) {
    std::int64_t at = b * paged.page_table->shape().back();
    if (paged.page_begin) {
      at = paged.page_begin->dtype() == i32
               ? static_cast<const int*>(paged.page_begin->data())[b]
               : static_cast<const std::int64_t*>(paged.page_begin->data())[b];
    }
    page = static_cast<const int*>(paged.page_table->data())[at + column / paged.page_size];
  }
  return page * paged.page_size + column % paged.page_size;
}

/// The new rows of a step, cut out of a batch whose pools have them already.
struct Step {
  Tensor k_new, v_new;              // [total_q, kv_heads, dim], poison where a row has no column
  std::vector<std::int64_t> slots;  // -1 there
  Tensor k, v;                      // pools without the new rows: -3 in their place

  Step(const Batch& batch, const PagedBatch& paged)
      : k_new(Tensor::zeros(f32, {batch.q.shape()[0], batch.kv_heads, batch.dim})),
        v_new(Tensor::zeros(f32, k_new.shape())),
        slots(static_cast<std::size_t>(batch.q.shape()[0]), -1),
        k(Tensor::copy_of(paged.k)),
        v(Tensor::copy_of(paged.v)) {
    fill(k_new, kPoison);
    fill(v_new, kPoison);
    const std::int64_t width = std::int64_t{batch.kv_heads} * batch.dim;
    for (std::size_t b = 0; b < batch.lengths.size(); ++b) {
      const auto [q_len, kv_len] = batch.lengths[b];
      for (std::int64_t row = std::max(0, q_len - kv_len); row < q_len; ++row) {
        const std::int64_t column = kv_len - q_len + row, to = batch.q_begins[b] + row;
        const std::int64_t slot = slot_of(paged, static_cast<std::int64_t>(b), column);
        slots[static_cast<std::size_t>(to)] = slot;
        move_row(k, slot * width, k_new, to * width, width);
        move_row(v, slot * width, v_new, to * width, width);
      }
    }
  }

 private:
  static void move_row(Tensor& pool, std::int64_t from, Tensor& fresh, std::int64_t to,
                       std::int64_t width) {
    std::copy_n(floats(pool) + from, width, floats(fresh) + to);
    std::fill_n(floats(pool) + from, width, -3.0f);
  }
};

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.bytes())) == 0;
}

inline Batch mixed_batch(int dim = 24) {
  Batch batch = {.lengths = {{1, 132}, {5, 18}, {70, 103}, {0, 9}, {7, 0}, {9, 4}, {3, 64}},
                 .heads = 4,
                 .kv_heads = 2,
                 .dim = dim};
  batch.make();
  return batch;
}

inline Spec append_spec(DType dtype, DType kv_dtype, int dim = 24) {
  Spec spec = paged_spec(dtype, dim, "q_idx >= kv_idx");
  if (kv_dtype != dtype) spec.kv_dtype = kv_dtype;
  return spec;
}

/// Appends by the plan, by i64 and by i32 slots: the pools then hold all rows, and nothing else
/// changes.
inline void check_append(const Attention& attention, std::int64_t page_size, TableForm form) {
  const Spec& spec = attention.spec();
  CAPTURE(to_string(spec.dtype), to_string(spec.key_value_dtype()), page_size,
          static_cast<int>(form));
  const Batch batch = mixed_batch(static_cast<int>(spec.head_dim));
  const PagedBatch paged(batch, page_size, form);
  const Step step(batch, paged);
  const Tensor k_new = in_dtype(step.k_new, spec.dtype), v_new = in_dtype(step.v_new, spec.dtype);
  const Tensor wanted_k = in_dtype(paged.k, spec.key_value_dtype());
  const Tensor wanted_v = in_dtype(paged.v, spec.key_value_dtype());
  const auto require_appended = [&](const NewRows& rows, const Plan* plan) {
    Tensor k = in_dtype(step.k, spec.key_value_dtype()),
           v = in_dtype(step.v, spec.key_value_dtype());
    attention.append(rows, k, v, plan);
    REQUIRE(same_bits(k, wanted_k));
    REQUIRE(same_bits(v, wanted_v));
  };
  const PackedShape shape = paged.shape(batch);
  Workspace workspace(attention.workspace_size(shape));
  const Tensor q_begin = int_tensor(batch.q_begins);
  const Plan plan =
      attention.plan(shape, paged.sequences(q_begin), {}, {.workspace = workspace.view()});
  NewRows rows = {.k_new = k_new, .v_new = v_new};
  require_appended(rows, &plan);

  Tensor wide = Tensor::zeros(i64, {static_cast<std::int64_t>(step.slots.size())});
  Tensor narrow = Tensor::zeros(i32, wide.shape());
  for (std::size_t i = 0; i < step.slots.size(); ++i) {
    const bool is_past_the_end = step.slots[i] < 0 && i % 2 == 0;
    const std::int64_t slot =
        is_past_the_end ? shape.total_kv + static_cast<std::int64_t>(i) : step.slots[i];
    static_cast<std::int64_t*>(wide.data())[i] = is_past_the_end ? std::int64_t{1} << 40 : slot;
    static_cast<int*>(narrow.data())[i] = static_cast<int>(slot);
  }
  rows.slots = wide.view();
  require_appended(rows, nullptr);
  rows.slots = narrow.view();
  require_appended(rows, &plan);
}

/// Rows whose page the pool has not are skipped.
inline void check_absent_pages(const Attention& attention) {
  Batch batch = {.lengths = {{20, 40}}, .heads = 1, .kv_heads = 1, .dim = 24};
  batch.make();
  PagedBatch paged(batch, 16, TableForm::rows);
  const Step step(batch, paged);
  const Tensor q_begin = int_tensor(batch.q_begins);
  int* const table = static_cast<int*>(paged.page_table->data());
  const int page = table[1];
  const DType dtype = attention.spec().dtype;
  for (const int entry : {-1, 1 << 30, -7}) {
    table[1] = entry;
    const PackedShape shape = paged.shape(batch);
    Workspace workspace(attention.workspace_size(shape));
    const Plan plan =
        attention.plan(shape, paged.sequences(q_begin), {}, {.workspace = workspace.view()});
    Tensor k = in_dtype(step.k, dtype), v = in_dtype(step.v, dtype);
    attention.append({.k_new = step.k_new, .v_new = step.v_new}, k, v, &plan);
    Tensor wanted = Tensor::copy_of(paged.k);  // but for columns 20 to 31, in the page
    std::fill_n(floats(wanted) + (page * 16 + 4) * 24, 12 * 24, -3.0f);
    CHECK(same_bits(k, wanted));
  }
}

}  // namespace tilewright::appended_rows
