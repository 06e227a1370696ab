#include "fuzz/packed_relation_calls.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "fuzz/rewrite.hpp"
#include "generator/snippet/snippet.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::verify::fuzz {
namespace {

bool mentions(const Spec& spec, std::string_view name) {
  return std::any_of(snippet_kinds().begin(), snippet_kinds().end(), [&](SnippetKind kind) {
    const std::string& text = snippet_text(spec, kind);
    return !text.empty() && check_snippet(kind, text).mentions(name);
  });
}

void rebind(Spec& spec, const Arguments& arguments) {
  for (const SnippetKind kind : snippet_kinds()) {
    std::string& text = snippet_text(spec, kind);
    if (!text.empty()) text = with_arguments(kind, text, arguments);
  }
}

std::vector<std::int64_t> range(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

Tensor i32_tensor(const std::vector<std::int64_t>& values) {
  Tensor tensor = Tensor::zeros(DType::i32, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) {
    write_element(tensor.data(), DType::i32, static_cast<std::int64_t>(i),
                  static_cast<double>(values[i]));
  }
  return tensor;
}

// Rows [count, heads, dim] as [1, count, heads, dim].
Tensor as_batch(const Tensor& rows) {
  Tensor tensor =
      Tensor::zeros(rows.dtype(), {1, rows.shape()[0], rows.shape()[1], rows.shape()[2]});
  std::memcpy(tensor.data(), rows.data(),
              static_cast<std::size_t>(rows.numel()) * size_of(rows.dtype()));
  return tensor;
}

bool is_of_sequences(const BufferDim& dim) {
  const auto* const named = std::get_if<NamedDim>(&dim);
  return named != nullptr &&
         (*named == NamedDim::batch || *named == NamedDim::total_q || *named == NamedDim::total_kv);
}

bool is_of_rows_of_k(const BufferDim& dim) {
  const auto* const named = std::get_if<NamedDim>(&dim);
  return named != nullptr && *named == NamedDim::total_kv;
}

bool tells_sequences_apart(const Spec& spec) {
  for (const auto& [name, buffer] : spec.buffers) {
    if (std::any_of(buffer.shape.begin(), buffer.shape.end(), is_of_sequences)) return true;
  }
  return spec.has_dropout() || mentions(spec, "b") || mentions(spec, "q_token") ||
         mentions(spec, "kv_token");
}

// A dimension whose size the call no longer has.
void free_dims_of_sequences(Spec& spec) {
  for (auto& [name, buffer] : spec.buffers) {
    for (BufferDim& dim : buffer.shape) {
      if (is_of_sequences(dim)) dim = FreeDim{};
    }
  }
}

}  // namespace

PackedRelationCall::PackedRelationCall(const Spec& s, const Inputs& i, const FuzzPacking& packing)
    : spec(s), inputs(copy_of(i)), q_begin(numbers_of(packing).q_begin) {
  const SequenceMemory memory(numbers_of(packing));
  Problem problem = inputs.problem();
  problem.sequences = memory.sequences();
  rows = read_sequences(problem);
}

PackedRelationCall::PackedRelationCall(const PackedRelationCall& other)
    : spec(other.spec), inputs(copy_of(other.inputs)), q_begin(other.q_begin), rows(other.rows) {}

AttentionValues PackedRelationCall::run(RelationRunner& runner) const {
  const SequenceMemory memory(numbers_of(q_begin, rows));
  Problem problem = inputs.problem();
  problem.sequences = memory.sequences();
  return runner.forward(spec, problem);
}

std::vector<std::size_t> filled_sequences(const std::vector<SequenceRows>& rows) {
  std::vector<std::size_t> found;
  for (std::size_t b = 0; b < rows.size(); ++b) {
    if (rows[b].q_len > 0 && rows[b].kv_len > 0) found.push_back(b);
  }
  return found;
}

std::vector<std::size_t> PackedRelationCall::filled() const {
  return filled_sequences(rows);
}

bool PackedRelationCall::tells_sequences_apart() const {
  return fuzz::tells_sequences_apart(spec);
}

void PackedRelationCall::empty_others(std::size_t b, const SequenceRows& rows_of_b) {
  for (SequenceRows& one : rows) one = {};
  rows[b] = rows_of_b;
  for (std::size_t i = 0; i < q_begin.size(); ++i) {
    q_begin[i] = rows_of_b.q_begin + (i > b ? rows_of_b.q_len : 0);
  }
}

void PackedRelationCall::keep_alone(std::size_t b) {
  SequenceRows one = rows[b];
  inputs.q = taken(inputs.q, 0, range(one.q_begin, one.q_len));
  inputs.k = taken(inputs.k, 0, range(one.kv_begin, one.kv_len));
  inputs.v = taken(inputs.v, 0, range(one.kv_begin, one.kv_len));
  inputs.shape.batch = 1;
  inputs.shape.q_len = one.q_len;
  inputs.shape.kv_len = one.kv_len;
  one.q_begin = one.kv_begin = 0;
  q_begin = {0, one.q_len};
  rows = {one};
}

void PackedRelationCall::keep_apart() {
  std::vector<std::int64_t> from;
  for (SequenceRows& one : rows) {
    const std::vector<std::int64_t> own = range(one.kv_begin, one.kv_len);
    one.kv_begin = static_cast<std::int64_t>(from.size());
    from.insert(from.end(), own.begin(), own.end());
  }
  inputs.k = taken(inputs.k, 0, from);
  inputs.v = taken(inputs.v, 0, from);
  inputs.shape.kv_len = static_cast<std::int64_t>(from.size());
}

void PackedRelationCall::zero_columns(std::size_t b, std::int64_t first, std::int64_t last) {
  for (Tensor* const tensor : {&inputs.k, &inputs.v}) {
    const std::int64_t width = tensor->shape()[1] * tensor->shape()[2];
    for (std::int64_t i = first * width; i < last * width; ++i) {
      write_element(tensor->data(), tensor->dtype(), rows[b].kv_begin * width + i, 0);
    }
  }
}

void PackedRelationCall::permute(const std::vector<std::size_t>& order) {
  std::vector<std::int64_t> old_rows = range(0, q_begin.front());
  std::vector<std::int64_t> old_numbers;
  std::vector<SequenceRows> old = rows;
  for (std::size_t i = 0; i < order.size(); ++i) {
    rows[i] = old[order[i]];
    rows[i].q_begin = static_cast<std::int64_t>(old_rows.size());
    q_begin[i] = rows[i].q_begin;
    const std::vector<std::int64_t> taken_rows = range(old[order[i]].q_begin, rows[i].q_len);
    old_rows.insert(old_rows.end(), taken_rows.begin(), taken_rows.end());
    old_numbers.push_back(static_cast<std::int64_t>(order[i]));
  }
  const std::vector<std::int64_t> after =
      range(q_begin.back(), inputs.shape.q_len - q_begin.back());
  old_rows.insert(old_rows.end(), after.begin(), after.end());
  inputs.q = taken(inputs.q, 0, old_rows);
  if (!tells_sequences_apart()) return;
  const std::string b = unused_name(spec, "old_b"), token = unused_name(spec, "old_token");
  rebind(spec, {{"b", b + "[b]"}, {"q_token", token + "[q_token]"}});
  spec.buffers[b] = {.dtype = DType::i32, .shape = {NamedDim::batch}};
  spec.buffers[token] = {.dtype = DType::i32, .shape = {NamedDim::total_q}};
  inputs.buffers.emplace(b, i32_tensor(old_numbers));
  inputs.buffers.emplace(token, i32_tensor(old_rows));
}

RelationCall PackedRelationCall::dense(std::size_t b) const {
  PackedRelationCall alone = *this;
  const SequenceRows& one = rows[b];
  alone.keep_alone(b);
  RelationCall call(spec, alone.inputs);
  call.spec.layout = Layout::bshd;
  call.spec.kv_layout.reset();
  call.spec.tactic.reset();
  free_dims_of_sequences(call.spec);
  const auto shifted = [](const char* index, std::int64_t by) {
    return fmt::format("({} + ({}))", index, by);
  };
  rebind(call.spec, {{"b", std::to_string(b)},
                     {"q_token", shifted("q_idx", one.q_begin - one.q_offset)},
                     {"kv_token", shifted("kv_idx", one.kv_begin - one.kv_offset)}});
  call.inputs.q = as_batch(alone.inputs.q);
  call.inputs.k = as_batch(alone.inputs.k);
  call.inputs.v = as_batch(alone.inputs.v);
  call.inputs.shape.q_offset = one.q_offset;
  call.inputs.shape.kv_offset = one.kv_offset;
  return call;
}

AttentionValues rows_of(const AttentionValues& all, std::int64_t first, std::int64_t count) {
  const auto part = [&](const Values& from) {
    Values to = Values::zeros(1, from.heads, count, from.width);
    for (std::int64_t h = 0; h < from.heads && count > 0; ++h) {
      std::copy_n(from.row(0, h, first), count * from.width, to.row(0, h, 0));
    }
    return to;
  };
  return {.out = part(all.out), .lse = part(all.lse)};
}

bool knows_rows_of_k(const Spec& spec) {
  return mentions(spec, "kv_token") ||
         std::any_of(spec.buffers.begin(), spec.buffers.end(), [](const auto& buffer) {
           const std::vector<BufferDim>& dims = buffer.second.shape;
           return std::any_of(dims.begin(), dims.end(), is_of_rows_of_k);
         });
}

std::string remember_rows_of_k(Spec& spec) {
  for (auto& [name, buffer] : spec.buffers) {
    std::replace_if(buffer.shape.begin(), buffer.shape.end(), is_of_rows_of_k, FreeDim{});
  }
  std::string rows = unused_name(spec, "old_row");
  rebind(spec, {{"kv_token", rows + "[kv_token]"}});
  spec.buffers[rows] = {.dtype = DType::i32, .shape = {NamedDim::total_kv}};
  return rows;
}

bool suits_new_rows(const Spec& spec) {
  // New rows have no scale, and appended ones have.
  return spec.k_scale.empty() && spec.v_scale.empty() && !knows_rows_of_k(spec) &&
         (spec.key_value_dtype() == spec.dtype || spec.dtype == DType::f32);
}

bool suits_ranges(const Spec& spec) {
  // A sink would be in both parts, and parts are not of 8 bits.
  return spec.sink.empty() && !mentions(spec, "kv_len") && !is_float8(spec.output_dtype());
}

std::optional<std::int64_t> length_of_positions(const Spec& spec,
                                                const std::vector<SequenceRows>& rows) {
  constexpr std::int64_t kMostPositions = 4096;
  if (spec.mask_mod.empty()) return {};
  const Snippet mask = check_snippet(SnippetKind::mask_mod, spec.mask_mod);
  for (const char* const of_one : {"b", "q_token", "kv_token", "q_len", "kv_len"}) {
    if (mask.mentions(of_one)) return {};
  }
  for (const auto& [name, buffer] : spec.buffers) {
    if (mask.mentions(name) && std::ranges::any_of(buffer.shape, is_of_sequences)) return {};
  }
  std::int64_t length = 1;
  for (const SequenceRows& one : rows) {
    if (one.kv_offset != 0) return {};
    length = std::max({length, one.q_offset + one.q_len, one.kv_len});
  }
  return length <= kMostPositions ? std::optional(length) : std::nullopt;
}

}  // namespace tilewright::verify::fuzz
