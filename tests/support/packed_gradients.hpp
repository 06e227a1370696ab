#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../../generator/render/templates.hpp"
#include "../../runtime/api/attention.hpp"
#include "../../runtime/io/float16.hpp"
#include "catch.hpp"
#include "packed_batch.hpp"

// Gradients of packed calls against those of a dense call for each sequence, on any device whose
// memory is the host's.

namespace tilewright::packed_calls {

/// A call of the backward pass. Sequences may share rows of K: set batch.kv_begins after make().
struct GradientCase {
  Spec spec;  ///< packed; buffers of constant shapes
  Batch batch;
  float scalar = 2;  ///< of each scalar
  bool has_dlse = true;
  bool deterministic = false;
  const BlockMask* positions = nullptr;
  std::vector<int> q_offsets = {};  ///< none: the last row and column have the same position
  bool has_kv_len = true;           ///< false: sequences of K follow each other, so batch.gap is 0
  bool rebuilds = false;            ///< the plan is made for empty sequences, and rebuilt
  std::optional<std::size_t> spoilt = {};  ///< a sequence whose q, k, v and dout hold NaN
  std::shared_ptr<const jinja::Loader> templates = nullptr;  ///< none: the sound ones
};

inline std::vector<std::int64_t> constant_shape(const BufferSpec& buffer) {
  std::vector<std::int64_t> shape;
  for (const BufferDim& dim : buffer.shape) shape.push_back(std::get<std::int64_t>(dim));
  return shape;
}

/// Lists over positions that say what mask_mod does, of `length` rows and columns.
inline BlockMask lists_of_mask(const Spec& spec, std::int64_t length) {
  const Attention dense(dense_of(spec), {.device = Device::cpu()});
  return dense.block_mask({.q_len = length, .kv_len = length});
}

// What a packed call wrote, or what dense calls of its sequences add up to.
struct Gradients {
  Tensor dq, dk, dv;
  std::map<std::string, Tensor> named;
};

class PackedGradients {
 public:
  explicit PackedGradients(GradientCase& one, const Device& device = Device::cpu())
      : case_(one),
        packed_(one.spec, {.device = device,
                           .kernels = {.templates = one.templates},
                           .positions = one.positions != nullptr}),
        staged_(one.batch, one.spec.dtype) {
    Batch& batch = one.batch;
    const std::int64_t total = batch.q.shape()[0];
    dout_ = random_tensor({total, batch.heads, one.spec.value_head_dim()}, 5);
    dlse_ = random_tensor({batch.heads, total}, 6);
    dout_in_dtype_ = in_dtype(dout_, one.spec.dtype);
    read_back(dout_in_dtype_, dout_);
    std::vector<int> ends = batch.kv_begins;
    ends.push_back(static_cast<int>(batch.k.shape()[0]));
    kv_ends_ = int_tensor(ends);
    if (one.spoilt) spoil(*one.spoilt);
    int seed = 7;
    for (const auto& [name, buffer] : one.spec.buffers) {
      buffers_.emplace(name, random_tensor(constant_shape(buffer), seed++));
      inputs_.buffers.emplace(name, buffers_.at(name).view());
    }
    for (const auto& [name, scalar] : one.spec.scalars) inputs_.scalars[name] = one.scalar;
    q_offsets_ = int_tensor(one.q_offsets);
  }

  const Attention& attention() const { return packed_; }

  Gradients run() {
    const Batch& batch = case_.batch;
    const PackedShape shape = batch.shape();
    Gradients gradients = poison();
    const Bindings bindings = packed_.bind(inputs_);
    Workspace memory(packed_.workspace_size(shape, case_.positions));
    Sequences sequences = staged_.sequences();
    if (!case_.q_offsets.empty()) sequences.q_offset = q_offsets_.view();
    if (!case_.has_kv_len) {
      sequences.kv_len.reset();
      sequences.kv_begin = kv_ends_.view();
    }
    const std::vector<int> q_begins = batch.q_begins;
    auto* const q_begin = static_cast<int*>(staged_.q_begin.data());
    if (case_.rebuilds) std::fill_n(q_begin, q_begins.size(), q_begins.front());
    Plan plan =
        packed_.plan(shape, sequences, bindings,
                     {.workspace = memory.view(), .positions = case_.positions, .backward = true});
    if (case_.rebuilds) {
      std::copy(q_begins.begin(), q_begins.end(), q_begin);
      packed_.rebuild(plan, bindings);
    }
    CHECK(plan.report().count == 0);
    const DType dtype = case_.spec.dtype;
    Tensor out = Tensor::zeros(dtype, dout_.shape());
    Tensor lse = Tensor::zeros(f32, dlse_.shape());
    packed_.forward({.q = staged_.q, .k = staged_.k, .v = staged_.v, .out = out, .lse = lse}, plan,
                    bindings);
    GradientBuffers named;
    for (auto& [name, tensor] : gradients.named) named.emplace(name, tensor.view());
    Workspace workspace(
        packed_.workspace_size(shape, Pass::backward, bindings, case_.deterministic));
    BackwardTensors tensors{.q = staged_.q,
                            .k = staged_.k,
                            .v = staged_.v,
                            .out = out,
                            .lse = lse,
                            .dout = dout_in_dtype_};
    if (case_.has_dlse) tensors.dlse = dlse_.view();
    if (wants("q")) tensors.dq = gradients.dq.view();
    if (wants("k")) tensors.dk = gradients.dk.view();
    if (wants("v")) tensors.dv = gradients.dv.view();
    packed_.backward(tensors, plan, bindings, named,
                     {.deterministic = case_.deterministic, .workspace = workspace.view()});
    return gradients;
  }

  /// Whether another call has the same elements of a gradient in rows from `begin` on.
  static bool have_equal_rows(const Tensor& one, const Tensor& other, int begin, int count) {
    const std::int64_t bytes = one.view().bytes() / one.shape()[0];
    return std::memcmp(static_cast<const std::byte*>(one.data()) + begin * bytes,
                       static_cast<const std::byte*>(other.data()) + begin * bytes,
                       static_cast<std::size_t>(count * bytes)) == 0;
  }

  // Dense calls on the CPU, in float32. Rows of dq that belong to no sequence are poison.
  Gradients dense() {
    const Batch& batch = case_.batch;
    const Attention attention(dense_of(case_.spec), {.device = Device::cpu()});
    const Bindings bindings = attention.bind(inputs_);
    Gradients sums = poison();
    sums.dq = as_floats(sums.dq);
    sums.dk = as_floats(sums.dk);
    sums.dv = as_floats(sums.dv);
    fill(sums.dk, 0);
    fill(sums.dv, 0);
    for (auto& [name, tensor] : sums.named) fill(tensor, 0);
    for (std::size_t b = 0; b < batch.lengths.size(); ++b) {
      if (batch.lengths[b].q > 0 && batch.lengths[b].kv > 0)
        add_sequence(attention, bindings, b, sums);
      if (batch.lengths[b].kv > 0) continue;
      for (int i = 0; wants("q") && i < batch.lengths[b].q; ++i) {
        const std::int64_t width = sums.dq.numel() / sums.dq.shape()[0];
        std::fill_n(floats(sums.dq) + (batch.q_begins[b] + i) * width, width, 0.0f);
      }
    }
    return sums;
  }

  // The greatest error is at most a share of the greatest element. share_of_sums: of gradients of
  // buffers and scalars
  void compare(const Gradients& got, const Gradients& wanted, float share,
               float share_of_sums) const {
    if (wants("q")) compare_one("dq", got.dq, wanted.dq, share);
    if (wants("k")) compare_one("dk", got.dk, wanted.dk, share);
    if (wants("v")) compare_one("dv", got.dv, wanted.dv, share);
    for (const auto& [name, tensor] : got.named) {
      compare_one(name, tensor, wanted.named.at(name), share_of_sums);
    }
  }
  void compare(const Gradients& got, const Gradients& wanted, float share) const {
    compare(got, wanted, share, share);
  }

  /// Whether compare() would find nothing in dq, dk and dv.
  static bool agree(const Gradients& got, const Gradients& wanted, float share) {
    const auto agrees = [&](const Tensor& one, const Tensor& other) {
      const Difference found = difference(one, other);
      return found.strays == 0 && found.error <= share * found.greatest;
    };
    return agrees(got.dq, wanted.dq) && agrees(got.dk, wanted.dk) && agrees(got.dv, wanted.dv);
  }

  static constexpr float kUnwritten = -7;

 private:
  void spoil(std::size_t b) {
    const Batch& batch = case_.batch;
    const auto fill_rows = [&](Tensor& tensor, int begin, int count) {
      const std::int64_t width = tensor.numel() / tensor.shape()[0];
      for (std::int64_t i = begin * width; i < (begin + count) * width; ++i) {
        write_element(tensor.data(), tensor.dtype(), i, std::nan(""));
      }
    };
    for (Tensor* tensor : {&staged_.q, &dout_in_dtype_}) {
      fill_rows(*tensor, batch.q_begins[b], batch.lengths[b].q);
    }
    for (Tensor* tensor : {&staged_.k, &staged_.v}) {
      fill_rows(*tensor, batch.kv_begins[b], batch.lengths[b].kv);
    }
  }

  bool wants(const std::string& name) const {
    const std::vector<std::string>& names = case_.spec.gradients;
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  Gradients poison() const {
    const auto like = [&](const Tensor& tensor) {
      Tensor floats_of = Tensor::zeros(f32, tensor.shape());
      fill(floats_of, kUnwritten);
      return in_dtype(floats_of, case_.spec.dtype);
    };
    Gradients gradients{.dq = like(case_.batch.q),
                        .dk = like(case_.batch.k),
                        .dv = like(case_.batch.v),
                        .named = {}};
    for (const std::string& name : case_.spec.gradients) {
      if (name == "q" || name == "k" || name == "v") continue;
      const auto buffer = buffers_.find(name);
      Tensor tensor = buffer == buffers_.end() ? Tensor::zeros(f32, {})
                                               : Tensor::zeros(f32, buffer->second.shape());
      fill(tensor, kUnwritten);
      gradients.named.emplace(name, std::move(tensor));
    }
    return gradients;
  }

  static Tensor as_floats(const Tensor& tensor) {
    Tensor result = Tensor::zeros(f32, tensor.shape());
    read_back(tensor, result);
    return result;
  }

  void add_sequence(const Attention& attention, const Bindings& bindings, std::size_t b,
                    Gradients& sums) {
    const Batch& batch = case_.batch;
    const auto [q_len, kv_len] = batch.lengths[b];
    const std::int64_t heads = batch.heads, total = batch.q.shape()[0];
    const std::int64_t q_offset = case_.q_offsets.empty() ? kv_len - q_len : case_.q_offsets[b];
    const auto like = [&](const Tensor& tensor, int rows) {
      return Tensor::zeros(f32, {1, rows, tensor.shape()[1], tensor.shape()[2]});
    };
    Tensor out = like(dout_, q_len), dq = like(batch.q, q_len);
    Tensor dk = like(batch.k, kv_len), dv = like(batch.v, kv_len);
    Tensor lse = Tensor::zeros(f32, {1, heads, q_len}),
           dlse = Tensor::zeros(f32, {1, heads, q_len});
    for (std::int64_t i = 0; i < heads * q_len; ++i) {
      floats(dlse)[i] = floats(dlse_)[i / q_len * total + batch.q_begins[b] + i % q_len];
    }
    const Shape shape{.batch = 1,
                      .num_q_heads = heads,
                      .num_kv_heads = batch.kv_heads,
                      .q_len = q_len,
                      .kv_len = kv_len,
                      .q_offset = q_offset};
    const ForwardTensors forward{.q = rows_of(batch.q, batch.q_begins[b], q_len),
                                 .k = rows_of(batch.k, batch.kv_begins[b], kv_len),
                                 .v = rows_of(batch.v, batch.kv_begins[b], kv_len),
                                 .out = out,
                                 .lse = lse};
    BackwardTensors tensors{.q = forward.q,
                            .k = forward.k,
                            .v = forward.v,
                            .out = out,
                            .lse = lse,
                            .dout = rows_of(dout_, batch.q_begins[b], q_len)};
    if (case_.has_dlse) tensors.dlse = dlse.view();
    if (wants("q")) tensors.dq = dq.view();
    if (wants("k")) tensors.dk = dk.view();
    if (wants("v")) tensors.dv = dv.view();
    std::map<std::string, Tensor> named;
    GradientBuffers views;
    for (const auto& [name, tensor] : sums.named) {
      named.emplace(name, Tensor::zeros(f32, tensor.shape()));
      views.emplace(name, named.at(name).view());
    }
    if (case_.spec.mask_mod.empty()) {
      attention.forward(forward, bindings, {.q_offset = q_offset});
      attention.backward(tensors, bindings, views, {.q_offset = q_offset});
    } else {
      const BlockMask mask = attention.block_mask(shape, bindings, {.transposed = true});
      attention.forward(forward, mask, bindings, {.q_offset = q_offset});
      attention.backward(tensors, mask, bindings, views, {.q_offset = q_offset});
    }
    const std::int64_t q_width = batch.q.numel() / total;
    std::copy_n(floats(dq), wants("q") ? dq.numel() : 0,
                floats(sums.dq) + batch.q_begins[b] * q_width);
    const auto add = [](Tensor& to, std::int64_t first, Tensor& from) {
      for (std::int64_t i = 0; i < from.numel(); ++i) floats(to)[first + i] += floats(from)[i];
    };
    add(sums.dk, batch.kv_begins[b] * (dk.numel() / kv_len), dk);
    add(sums.dv, batch.kv_begins[b] * (dv.numel() / kv_len), dv);
    for (auto& [name, tensor] : named) add(sums.named.at(name), 0, tensor);
  }

  // How far a gradient is from the one that is wanted.
  struct Difference {
    float greatest = 0, error = 0;
    std::int64_t strays = 0, at = -1;
  };

  // Elements that are not written, and zeros of rows that no sequence has, are so exactly.
  static Difference difference(const Tensor& in_dtype, const Tensor& wanted) {
    Tensor got = as_floats(in_dtype);
    const auto* const want = static_cast<const float*>(wanted.data());
    Difference found;
    for (std::int64_t i = 0; i < got.numel(); ++i) {
      const float have = floats(got)[i];
      if (want[i] == kUnwritten || want[i] == 0) {
        found.strays += have != want[i] && !(std::fabs(have) <= 1e-5f);
      }
      if (want[i] == kUnwritten) continue;
      found.greatest = std::fmax(found.greatest, std::fabs(want[i]));
      const float off = std::isnan(have) ? INFINITY : std::fabs(have - want[i]);
      if (off > found.error) found.error = off, found.at = i;
    }
    return found;
  }

  static void compare_one(const std::string& name, const Tensor& in_dtype, const Tensor& wanted,
                          float share) {
    const Difference found = difference(in_dtype, wanted);
    CAPTURE(name, found.greatest, found.error, found.at);
    CHECK(found.greatest > 0);
    CHECK(found.strays == 0);
    CHECK(found.error <= share * found.greatest);
  }

  GradientCase& case_;
  Attention packed_;
  BatchTensors staged_;
  Tensor dout_, dlse_, dout_in_dtype_, q_offsets_, kv_ends_;
  std::map<std::string, Tensor> buffers_;
  SnippetInputs inputs_;
};

}  // namespace tilewright::packed_calls
