#include "fuzz/case_inputs.hpp"

#include <cstddef>
#include <limits>
#include <vector>

#include "generator/spec/dtype.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::verify::fuzz {
namespace {

std::size_t head_dimension(Layout layout) {
  return layout == Layout::bhsd ? 1 : 2;
}

std::size_t row_dimension(Layout layout) {
  return layout == Layout::bhsd ? 2 : 1;
}

// FNV-1a over every element in the order of its indices.
std::uint64_t hash_of(const TensorView& view, std::uint64_t hash) {
  const auto bytes = static_cast<std::int64_t>(size_of(view.dtype));
  const auto* data = static_cast<const unsigned char*>(view.data);
  const std::int64_t count = view.numel();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t offset = 0;
    std::int64_t rest = i;
    for (auto d = static_cast<std::size_t>(view.rank); d-- > 0;) {
      offset += rest % view.shape[d] * view.strides[d];
      rest /= view.shape[d];
    }
    for (std::int64_t byte = 0; byte < bytes; ++byte) {
      hash = (hash ^ data[offset * bytes + byte]) * 0x100000001b3;
    }
  }
  return hash;
}

}  // namespace

Inputs dense_inputs(const FuzzCase& fuzz_case) {
  const RandomOptions options{.broadcast_kv = fuzz_case.broadcast_kv,
                              .broadcast_buffers = fuzz_case.broadcast_buffers,
                              .free_dim = fuzz_case.free_dim,
                              .q_factor = fuzz_case.q_factor};
  Inputs inputs = random_inputs(fuzz_case.spec, fuzz_case.shape, fuzz_case.seed, options);
  for (const auto& [name, value] : fuzz_case.scalars) inputs.scalars[name] = value;
  return inputs;
}

CaseInputs::CaseInputs(const FuzzCase& fuzz_case) : kv_layout_(fuzz_case.spec.key_value_layout()) {
  const Inputs inputs = dense_inputs(fuzz_case);
  problem_.shape = fuzz_case.shape;
  problem_.scale = fuzz_case.scale;
  problem_.snippet.scalars = inputs.scalars;
  problem_.q = place(inputs.q, fuzz_case.q);
  problem_.k = place(inputs.k, fuzz_case.k);
  problem_.v = place(inputs.v, fuzz_case.v);
  for (const auto& [name, tensor] : inputs.buffers) {
    problem_.snippet.buffers.emplace(name, place(tensor, fuzz_case.buffers));
  }
  if (fuzz_case.one_kv_head_for_all) {
    problem_.k.strides[head_dimension(kv_layout_)] = 0;
    problem_.v.strides[head_dimension(kv_layout_)] = 0;
  }
}

TensorView CaseInputs::place(const TensorView& source, const Placement& placement) {
  tensors_.push_back(GuardedTensor::copy_of(source, placement));
  return tensors_.back().view();
}

void CaseInputs::plant_nan_in_dropped(
    const std::function<bool(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& keep) {
  const Shape& shape = problem_.shape;
  const TensorView& k = problem_.k;
  const std::int64_t group = shape.num_q_heads / shape.num_kv_heads;
  const bool shares_heads = k.strides[head_dimension(kv_layout_)] == 0;
  const auto row_of_k = [&](std::int64_t b, std::int64_t h, std::int64_t column) {
    const std::int64_t k_batch = k.shape[0] == 1 ? 0 : b;
    const std::int64_t k_head = shares_heads ? 0 : h / group;
    return static_cast<std::size_t>((k_batch * shape.num_kv_heads + k_head) * shape.kv_len +
                                    column);
  };
  std::vector<bool> kept(static_cast<std::size_t>(shape.batch * shape.num_kv_heads * shape.kv_len));
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.num_q_heads; ++h) {
      for (std::int64_t row = 0; row < shape.q_len; ++row) {
        for (std::int64_t column = 0; column < shape.kv_len; ++column) {
          if (keep(b, h, row, column)) kept[row_of_k(b, h, column)] = true;
        }
      }
    }
  }
  for (std::int64_t b = 0; b < k.shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape.num_q_heads; h += group) {
      for (std::int64_t column = 0; column < shape.kv_len; ++column) {
        if (kept[row_of_k(b, h, column)]) continue;
        const std::int64_t start = b * k.strides[0] +
                                   h / group * k.strides[head_dimension(kv_layout_)] +
                                   column * k.strides[row_dimension(kv_layout_)];
        for (std::int64_t i = 0; i < k.shape[3]; ++i) {
          write_element(k.data, k.dtype, start + i, std::numeric_limits<double>::quiet_NaN());
        }
      }
    }
  }
}

std::uint64_t CaseInputs::fingerprint() const {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const GuardedTensor& tensor : tensors_) {
    hash = hash_of(tensor.view(), hash) + (tensor.damage() ? 1 : 0);
  }
  return hash;
}

}  // namespace tilewright::verify::fuzz
