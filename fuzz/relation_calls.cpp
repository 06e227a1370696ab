#include "fuzz/relation_calls.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "generator/snippet/snippet.hpp"
#include "runtime/api/tensor.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::verify::fuzz {
Inputs copy_of(const Inputs& inputs) {
  Inputs copy{.shape = inputs.shape,
              .q = Tensor::copy_of(inputs.q),
              .k = Tensor::copy_of(inputs.k),
              .v = Tensor::copy_of(inputs.v),
              .buffers = {},
              .scalars = inputs.scalars};
  for (const auto& [name, tensor] : inputs.buffers) {
    copy.buffers.emplace(name, Tensor::copy_of(tensor));
  }
  return copy;
}

Tensor taken(const Tensor& tensor, std::size_t dimension, const std::vector<std::int64_t>& from) {
  std::vector<std::int64_t> extents(tensor.shape().begin(), tensor.shape().end());
  const std::int64_t before = extents[dimension];
  extents[dimension] = static_cast<std::int64_t>(from.size());
  Tensor result = Tensor::zeros(tensor.dtype(), extents);
  std::int64_t inner = 1;
  for (std::size_t i = dimension + 1; i < extents.size(); ++i) inner *= extents[i];
  const std::int64_t outer = result.numel() / (inner * extents[dimension]);
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      for (std::int64_t j = 0; j < inner; ++j) {
        const auto row = o * extents[dimension] + static_cast<std::int64_t>(i);
        write_element(
            result.data(), tensor.dtype(), row * inner + j,
            read_element(tensor.data(), tensor.dtype(), (o * before + from[i]) * inner + j));
      }
    }
  }
  return result;
}

namespace {

std::size_t rows_of(Layout layout) {
  return layout == Layout::bhsd ? 2 : 1;
}
std::size_t heads_of(Layout layout) {
  return layout == Layout::bhsd ? 1 : 2;
}

}  // namespace

RelationCall::RelationCall(const Spec& s, const Inputs& i) : spec(s), inputs(copy_of(i)) {}

void RelationCall::rebind(const Arguments& arguments) {
  for (const SnippetKind kind : snippet_kinds()) {
    std::string& text = snippet_text(spec, kind);
    if (!text.empty()) text = with_arguments(kind, text, arguments);
  }
}

void RelationCall::freeze() {
  const Shape& shape = inputs.shape;
  rebind({{"q_len", std::to_string(shape.q_len)},
          {"kv_len", std::to_string(shape.kv_len)},
          {"num_q_heads", std::to_string(shape.num_q_heads)},
          {"num_kv_heads", std::to_string(shape.num_kv_heads)}});
  for (auto& [name, buffer] : spec.buffers) {
    for (BufferDim& dim : buffer.shape) dim = FreeDim{};
    buffer.bounds = Bounds::clamped;
  }
}

void RelationCall::take_keys(const std::vector<std::int64_t>& from) {
  const std::size_t rows = rows_of(spec.key_value_layout());
  inputs.k = taken(inputs.k, rows, from);
  inputs.v = taken(inputs.v, rows, from);
  inputs.shape.kv_len = static_cast<std::int64_t>(from.size());
}

void RelationCall::take_head(std::int64_t h) {
  const std::int64_t h_kv = h / (inputs.shape.num_q_heads / inputs.shape.num_kv_heads);
  inputs.q = taken(inputs.q, heads_of(spec.layout), {h});
  inputs.k = taken(inputs.k, heads_of(spec.key_value_layout()), {h_kv});
  inputs.v = taken(inputs.v, heads_of(spec.key_value_layout()), {h_kv});
  rebind({{"h", std::to_string(h)}, {"h_kv", std::to_string(h_kv)}});
  inputs.shape.num_q_heads = inputs.shape.num_kv_heads = 1;
}

void RelationCall::take_batch(std::int64_t b) {
  inputs.q = taken(inputs.q, 0, {b});
  const std::int64_t b_kv = inputs.k.shape()[0] == 1 ? 0 : b;
  inputs.k = taken(inputs.k, 0, {b_kv});
  inputs.v = taken(inputs.v, 0, {b_kv});
  rebind({{"b", std::to_string(b)}});
  inputs.shape.batch = 1;
}

}  // namespace tilewright::verify::fuzz
