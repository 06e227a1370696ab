#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../../runtime/api/attention.hpp"
#include "../../runtime/io/float16.hpp"
#include "catch.hpp"

// Packed batches with poison around their sequences, for tests on any device whose memory is the
// host's.

namespace tilewright::packed_calls {

struct Lengths {
  int q, kv;
};

inline constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

// Numbers that look random and are the same in each run.
inline float number(std::int64_t i) {
  return std::sin(static_cast<float>(i) * 12.9898f + 4.1414f) * 1.5f;
}

inline Tensor random_tensor(std::span<const std::int64_t> shape, int seed) {
  Tensor tensor = Tensor::zeros(f32, shape);
  auto* values = static_cast<float*>(tensor.data());
  for (std::int64_t i = 0; i < tensor.numel(); ++i) values[i] = number(i * 7 + seed);
  return tensor;
}

inline Tensor random_tensor(std::initializer_list<std::int64_t> shape, int seed) {
  return random_tensor(std::span(shape.begin(), shape.size()), seed);
}

inline Tensor int_tensor(const std::vector<int>& values) {
  Tensor tensor = Tensor::zeros(i32, {static_cast<std::int64_t>(values.size())});
  if (!values.empty()) std::memcpy(tensor.data(), values.data(), values.size() * sizeof(int));
  return tensor;
}

inline void fill(Tensor& tensor, float value) {
  auto* values = static_cast<float*>(tensor.data());
  for (std::int64_t i = 0; i < tensor.numel(); ++i) values[i] = value;
}

inline float* floats(Tensor& tensor) {
  return static_cast<float*>(tensor.data());
}

// Memory at a multiple of 256 bytes, full of garbage.
class Workspace {
 public:
  explicit Workspace(std::int64_t bytes)
      : memory_(static_cast<std::size_t>(bytes) + 256, std::byte{0xAB}), bytes_(bytes) {}

  TensorView view() {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return TensorView::contiguous(memory_.data() + (256 - address % 256) % 256, u8, {bytes_});
  }

 private:
  std::vector<std::byte> memory_;
  std::int64_t bytes_;
};

// A packed batch with rows that belong to no sequence in front, between and at the end.
struct Batch {
  std::vector<Lengths> lengths;
  int heads, kv_heads, dim;
  int gap = 3;  // rows of q before the first sequence and past the last, and of k between all
  int max_kv_len = 0;  // of PackedShape
  std::vector<int> q_begins = {}, kv_begins = {}, kv_lens = {};
  Tensor q = {}, k = {}, v = {}, out = {}, lse = {};

  void make() {
    int q_end = gap, kv_end = gap;
    for (const Lengths& length : lengths) {
      q_begins.push_back(q_end);
      kv_begins.push_back(kv_end);
      kv_lens.push_back(length.kv);
      q_end += length.q;
      kv_end += length.kv + gap;
    }
    q_begins.push_back(q_end);
    q = random_tensor({q_end + gap, heads, dim}, 1);
    k = random_tensor({kv_end, kv_heads, dim}, 2);
    v = random_tensor({kv_end, kv_heads, dim}, 3);
    out = Tensor::zeros(f32, {q_end + gap, heads, dim});
    lse = Tensor::zeros(f32, {heads, q_end + gap});
    poison_gaps();
  }

  PackedShape shape() const {
    return {.batch = static_cast<std::int64_t>(lengths.size()),
            .num_q_heads = heads,
            .num_kv_heads = kv_heads,
            .total_q = q.shape()[0],
            .total_kv = k.shape()[0],
            .max_kv_len = max_kv_len};
  }

 private:
  void poison_gaps() {
    const auto poison = [&](Tensor& tensor, std::int64_t row, int count) {
      const std::int64_t width = tensor.numel() / tensor.shape()[0];
      for (std::int64_t i = row * width; i < (row + count) * width; ++i)
        floats(tensor)[i] = kPoison;
    };
    poison(q, 0, gap);
    poison(q, q.shape()[0] - gap, gap);
    for (Tensor* tensor : {&k, &v}) {
      poison(*tensor, 0, gap);
      for (std::size_t b = 0; b < lengths.size(); ++b) {
        poison(*tensor, kv_begins[b] + lengths[b].kv, gap);
      }
    }
  }
};

inline Spec dense_of(Spec spec) {
  spec.layout = Layout::bshd;
  spec.dtype = f32;
  spec.tactic.reset();
  return spec;
}

// f32 or f16.
inline Tensor in_dtype(const Tensor& tensor, DType dtype) {
  Tensor copy = Tensor::zeros(dtype, tensor.shape());
  const auto* const from = static_cast<const float*>(tensor.data());
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    if (dtype == f16) {
      static_cast<std::uint16_t*>(copy.data())[i] = float_to_f16(from[i]);
    } else if (dtype == bf16) {
      static_cast<std::uint16_t*>(copy.data())[i] = float_to_bf16(from[i]);
    } else {
      floats(copy)[i] = from[i];
    }
  }
  return copy;
}

inline void read_back(const Tensor& from, Tensor& to) {
  for (std::int64_t i = 0; i < from.numel(); ++i) {
    const auto bits = [&] { return static_cast<const std::uint16_t*>(from.data())[i]; };
    floats(to)[i] = from.dtype() == f16    ? f16_to_float(bits())
                    : from.dtype() == bf16 ? bf16_to_float(bits())
                                           : static_cast<const float*>(from.data())[i];
  }
}

// A batch's tensors as a call takes them, in the spec's dtype.
struct BatchTensors {
  Tensor q_begin, kv_begin, kv_len, q, k, v;

  // What f16 holds, the batch gets too, for whatever is compared with the call.
  BatchTensors(Batch& batch, DType dtype)
      : q_begin(int_tensor(batch.q_begins)),
        kv_begin(int_tensor(batch.kv_begins)),
        kv_len(int_tensor(batch.kv_lens)),
        q(in_dtype(batch.q, dtype)),
        k(in_dtype(batch.k, dtype)),
        v(in_dtype(batch.v, dtype)) {
    read_back(q, batch.q);
    read_back(k, batch.k);
    read_back(v, batch.v);
  }

  Sequences sequences() const {
    return {.q_begin = q_begin, .kv_begin = kv_begin.view(), .kv_len = kv_len.view()};
  }
};

inline TensorView rows_of(const Tensor& tensor, int begin, int count) {
  TensorView view = tensor.view();
  const std::int64_t heads = view.shape[1], dim = view.shape[2];
  const std::array<std::int64_t, 4> shape = {1, count, heads, dim};
  return TensorView::contiguous(static_cast<float*>(view.data) + begin * heads * dim, f32, shape);
}

// Compares a packed call with a dense one on the CPU for each sequence, over out and lse; rows of
// no sequence must keep what they held. Tensors lie where the device and the host read them.
inline void check_against_dense(const Spec& spec, Batch& batch, float tolerance,
                                const Device& device = Device::cpu()) {
  const Attention packed(spec, {.device = device});
  const Attention dense(dense_of(spec), {.device = Device::cpu()});
  Workspace workspace(packed.workspace_size(batch.shape()));
  const BatchTensors staged(batch, spec.dtype);
  Plan plan = packed.plan(batch.shape(), staged.sequences(), {}, {.workspace = workspace.view()});
  const PlanReport report = plan.report();
  CHECK(report.count == 0);
  CHECK(report.text().empty());
  CHECK(report.unplanned_rows == batch.gap);
  fill(batch.out, -7.0f);
  fill(batch.lse, -9.0f);
  const bool has_lse = spec.outputs.lse;
  const std::optional<TensorView> lse = has_lse ? std::optional(batch.lse.view()) : std::nullopt;
  Tensor packed_out = in_dtype(batch.out, spec.dtype);
  packed.forward({.q = staged.q, .k = staged.k, .v = staged.v, .out = packed_out, .lse = lse},
                 plan);
  read_back(packed_out, batch.out);

  const std::int64_t total = batch.q.shape()[0], row_size = std::int64_t{batch.heads} * batch.dim;
  std::vector<bool> written(static_cast<std::size_t>(total), false);
  for (std::size_t b = 0; b < batch.lengths.size(); ++b) {
    const auto [q_len, kv_len_b] = batch.lengths[b];
    if (q_len == 0) continue;
    for (int i = 0; i < q_len; ++i) written[static_cast<std::size_t>(batch.q_begins[b] + i)] = true;
    Tensor out = Tensor::zeros(f32, {1, q_len, batch.heads, batch.dim});
    Tensor dense_lse = Tensor::zeros(f32, {1, batch.heads, q_len});
    if (kv_len_b == 0) {
      fill(dense_lse, -std::numeric_limits<float>::infinity());
    } else {
      const Shape shape{.batch = 1,
                        .num_q_heads = batch.heads,
                        .num_kv_heads = batch.kv_heads,
                        .q_len = q_len,
                        .kv_len = kv_len_b,
                        .q_offset = kv_len_b - q_len};
      const ForwardTensors tensors = {
          .q = rows_of(batch.q, batch.q_begins[b], q_len),
          .k = rows_of(batch.k, batch.kv_begins[b], kv_len_b),
          .v = rows_of(batch.v, batch.kv_begins[b], kv_len_b),
          .out = out,
          .lse = has_lse ? std::optional(dense_lse.view()) : std::nullopt};
      const ForwardOptions options = {.q_offset = kv_len_b - q_len};
      if (spec.mask_mod.empty()) {
        dense.forward(tensors, {}, options);
      } else {
        dense.forward(tensors, dense.block_mask(shape), {}, options);
      }
    }
    float greatest = 0;
    const float* const ours = floats(batch.out) + batch.q_begins[b] * row_size;
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      greatest = std::fmax(greatest, std::fabs(ours[i] - floats(out)[i]));
      if (std::isnan(ours[i])) greatest = std::numeric_limits<float>::infinity();
    }
    INFO("sequence " << b);
    CHECK(greatest <= tolerance);
    for (std::int64_t h = 0; has_lse && h < batch.heads; ++h) {
      for (int i = 0; i < q_len; ++i) {
        const float given = floats(batch.lse)[h * total + batch.q_begins[b] + i];
        const float wanted = floats(dense_lse)[h * q_len + i];
        if (std::isinf(wanted)) {
          CHECK(given == wanted);
        } else {
          CHECK(std::fabs(given - wanted) <= (spec.dtype == f16 ? 2e-3f : 4e-5f));
        }
      }
    }
  }
  for (std::int64_t row = 0; row < total; ++row) {
    if (written[static_cast<std::size_t>(row)]) continue;
    for (std::int64_t i = 0; i < row_size; ++i)
      REQUIRE(floats(batch.out)[row * row_size + i] == -7.0f);
    for (int h = 0; h < batch.heads; ++h) REQUIRE(floats(batch.lse)[h * total + row] == -9.0f);
  }
}

inline Spec packed_spec(int dim, const std::string& mask_mod, bool lse) {
  return {.dtype = f32,
          .head_dim = dim,
          .layout = Layout::packed,
          .mask_mod = mask_mod,
          .outputs = {.lse = lse}};
}

}  // namespace tilewright::packed_calls
