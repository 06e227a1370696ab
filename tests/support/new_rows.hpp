#pragma once

#include "appended_rows.hpp"

// Calls with new rows outside of pages, for tests on any device whose memory is the host's.

namespace tilewright::new_rows {

using namespace appended_rows;

inline Spec with_mask(Spec spec, const std::string& mask_mod) {
  spec.mask_mod = mask_mod;
  return spec;
}

/// out and lse of one call, first poison and -9.
struct Results {
  Tensor out, lse;

  Results(const Batch& batch, DType dtype)
      : out(Tensor::zeros(f32, batch.out.shape())), lse(Tensor::zeros(f32, batch.lse.shape())) {
    fill(out, -7.0f);
    fill(lse, -9.0f);
    out = in_dtype(out, dtype);
  }
};

/// Table entries that only new columns need become pages that do not exist, as they need not be
/// there.
inline void forget_new_pages(const Batch& batch, PagedBatch& paged) {
  if (!paged.page_table || paged.page_begin) return;
  const std::int64_t columns = paged.page_table->shape()[1];
  for (std::size_t b = 0; b < batch.lengths.size(); ++b) {
    const auto [q_len, kv_len] = batch.lengths[b];
    const std::int64_t context = std::max(0, kv_len - q_len);
    for (std::int64_t i = (context + paged.page_size - 1) / paged.page_size; i < columns; ++i) {
      static_cast<int*>(paged.page_table->data())[static_cast<std::int64_t>(b) * columns + i] =
          1 << 30;
    }
  }
}

/// A call with kv_new, whose pools hold NaN where the new rows would be, and the same call after
/// append, which the same kernel serves: the bits are equal.
inline void check_against_append(Spec spec, const Device& device, std::int64_t page_size,
                                 TableForm form, const Batch& batch = mixed_batch()) {
  CAPTURE(to_string(spec.dtype), spec.head_dim, page_size, static_cast<int>(form), spec.mask_mod);
  PagedBatch paged(batch, page_size, form);
  Step step(batch, paged);
  const PackedShape shape = paged.shape(batch);
  const DType dtype = spec.dtype, kv_dtype = spec.key_value_dtype();
  const Tensor q_begin = int_tensor(batch.q_begins), q = in_dtype(batch.q, dtype);
  const Tensor k_new = in_dtype(step.k_new, dtype), v_new = in_dtype(step.v_new, dtype);
  Results wanted(batch, dtype), found(batch, dtype);
  {
    const Attention attention(spec, {.device = device, .append = true});
    Workspace workspace(attention.workspace_size(shape));
    const Plan plan =
        attention.plan(shape, paged.sequences(q_begin), {}, {.workspace = workspace.view()});
    Tensor k = in_dtype(step.k, kv_dtype), v = in_dtype(step.v, kv_dtype);
    attention.append({.k_new = k_new, .v_new = v_new}, k, v, &plan);
    attention.forward({.q = q, .k = k, .v = v, .out = wanted.out, .lse = wanted.lse.view()}, plan);
  }
  spec.kv_new = true;
  for (std::size_t i = 0; i < step.slots.size(); ++i) {
    if (step.slots[i] < 0) continue;
    const std::int64_t width = std::int64_t{batch.kv_heads} * batch.dim;
    std::fill_n(floats(step.k) + step.slots[i] * width, width, kPoison);
    std::fill_n(floats(step.v) + step.slots[i] * width, width, kPoison);
  }
  forget_new_pages(batch, paged);
  const Attention attention(spec, {.device = device});
  Workspace workspace(attention.workspace_size(shape));
  const Plan plan = attention.plan(shape, paged.sequences(q_begin), {},
                                   {.workspace = workspace.view(), .count_absent = true});
  CHECK(plan.report().text().empty());
  const Tensor k = in_dtype(step.k, kv_dtype), v = in_dtype(step.v, kv_dtype);
  attention.forward({.q = q,
                     .k = k,
                     .v = v,
                     .out = found.out,
                     .lse = found.lse.view(),
                     .k_new = k_new.view(),
                     .v_new = v_new.view()},
                    plan);
  REQUIRE(same_bits(found.out, wanted.out));
  REQUIRE(same_bits(found.lse, wanted.lse));
}

}  // namespace tilewright::new_rows
