#include "fuzz/case_inputs.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "generator/spec/dtype.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::verify::fuzz {
namespace {

std::size_t head_dimension(Layout layout) {
  return layout == Layout::bshd ? 2 : 1;
}

std::size_t row_dimension(Layout layout) {
  if (layout == Layout::packed) return 0;
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

void poison_rows(Tensor& tensor, const std::vector<bool>& is_used) {
  const std::int64_t width = tensor.shape()[1] * tensor.shape()[2];
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    if (is_used[static_cast<std::size_t>(i / width)]) continue;
    write_element(tensor.data(), tensor.dtype(), i, std::numeric_limits<double>::quiet_NaN());
  }
}

void poison_rows_of_no_sequence(const FuzzPacking& packing, Inputs& inputs) {
  std::vector<bool> q(static_cast<std::size_t>(inputs.shape.q_len));
  std::fill(q.begin() + packing.q_rows_before, q.end() - packing.q_rows_after, true);
  std::vector<bool> kv(static_cast<std::size_t>(inputs.shape.kv_len));
  const std::vector<std::int64_t> begins = kv_begins_of(packing);
  for (std::size_t b = 0; b < begins.size(); ++b) {
    std::fill_n(kv.begin() + begins[b], packing.sequences[b].kv_len, true);
  }
  poison_rows(inputs.q, q);
  poison_rows(inputs.k, kv);
  poison_rows(inputs.v, kv);
}

std::uint64_t hash_of_sequences(const Sequences& sequences, std::uint64_t hash) {
  hash = hash_of(sequences.q_begin, hash);
  for (const auto* const tensor :
       {&sequences.kv_begin, &sequences.kv_len, &sequences.q_offset, &sequences.kv_offset}) {
    if (*tensor) hash = hash_of(**tensor, hash);
  }
  return hash;
}

}  // namespace

Inputs dense_inputs(const FuzzCase& fuzz_case) {
  RandomOptions options{.broadcast_kv = fuzz_case.broadcast_kv,
                        .broadcast_buffers = fuzz_case.broadcast_buffers,
                        .free_dim = fuzz_case.free_dim,
                        .q_factor = fuzz_case.q_factor,
                        .null_extents = fuzz_case.null_extents};
  for (const FuzzSequence& sequence : fuzz_case.packing.sequences) {
    options.longest_kv = std::max(options.longest_kv.value_or(0), sequence.kv_len);
  }
  Inputs inputs = random_inputs(fuzz_case.spec, fuzz_case.shape, fuzz_case.seed, options);
  for (const auto& [name, value] : fuzz_case.scalars) inputs.scalars[name] = value;
  if (fuzz_case.spec.is_packed()) poison_rows_of_no_sequence(fuzz_case.packing, inputs);
  return inputs;
}

CaseInputs::CaseInputs(const FuzzCase& fuzz_case) : kv_layout_(fuzz_case.spec.key_value_layout()) {
  const Inputs inputs = dense_inputs(fuzz_case);
  problem_.shape = fuzz_case.shape;
  problem_.scale = fuzz_case.scale;
  problem_.splits = fuzz_case.splits;
  problem_.batch_invariant = fuzz_case.batch_invariant;
  problem_.snippet.scalars = inputs.scalars;
  problem_.q = place(inputs.q, fuzz_case.q);
  problem_.k = place(inputs.k, fuzz_case.k);
  problem_.v = place(inputs.v, fuzz_case.v);
  for (const auto& [name, tensor] : inputs.buffers) {
    problem_.snippet.buffers.emplace(name, place(tensor, fuzz_case.buffers));
  }
  if (fuzz_case.spec.is_packed()) {
    sequences_.emplace(numbers_of(fuzz_case.packing));
    problem_.sequences = sequences_->sequences();
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

// Rows of k, by the batch and head that hold them.
class CaseInputs::KeyRows {
 public:
  KeyRows(const Problem& problem, Layout layout)
      : shape_(problem.shape), k_(problem.k), layout_(layout), is_packed_(problem.sequences) {}

  std::int64_t count() const { return batches() * shape_.num_kv_heads * shape_.kv_len; }

  // kv_row: of the part's first column
  std::int64_t of(std::int64_t b, std::int64_t h, std::int64_t row) const {
    const std::int64_t batch = batches() == 1 ? 0 : b;
    const std::int64_t group = shape_.num_q_heads / shape_.num_kv_heads;
    const std::int64_t head = k_.strides[head_dimension(layout_)] == 0 ? 0 : h / group;
    return (batch * shape_.num_kv_heads + head) * shape_.kv_len + row;
  }

  void fill_with_nan(std::int64_t row) const {
    std::int64_t start =
        row % shape_.kv_len * k_.strides[row_dimension(layout_)] +
        row / shape_.kv_len % shape_.num_kv_heads * k_.strides[head_dimension(layout_)];
    if (!is_packed_) start += row / shape_.kv_len / shape_.num_kv_heads * k_.strides[0];
    const std::int64_t width = k_.shape[static_cast<std::size_t>(k_.rank) - 1];
    for (std::int64_t i = 0; i < width; ++i) {
      write_element(k_.data, k_.dtype, start + i, std::numeric_limits<double>::quiet_NaN());
    }
  }

 private:
  std::int64_t batches() const { return is_packed_ ? 1 : k_.shape[0]; }

  const Shape& shape_;
  const TensorView& k_;
  Layout layout_;
  bool is_packed_;
};

void CaseInputs::plant_nan_in_dropped(const CaseParts& parts) {
  const KeyRows rows(problem_, kv_layout_);
  const Shape& shape = problem_.shape;
  std::vector<bool> kept(static_cast<std::size_t>(rows.count()));
  for (const CaseParts::Part& part : parts.parts()) {
    for (std::int64_t i = 0; i < part.piece.score_rows(); ++i) {
      const std::int64_t row = i % part.piece.rows();
      const std::int64_t h = i / part.piece.rows() % shape.num_q_heads;
      const std::int64_t b = i / part.piece.rows() / shape.num_q_heads;
      for (std::int64_t column = 0; column < part.piece.columns(); ++column) {
        if (!part.interpretations.keep(b, h, row, column)) continue;
        kept[static_cast<std::size_t>(rows.of(b, h, part.piece.kv_row + column))] = true;
      }
    }
  }
  const bool shares_heads = problem_.k.strides[head_dimension(kv_layout_)] == 0;
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    const bool is_other_head = row / shape.kv_len % shape.num_kv_heads != 0;
    if (kept[static_cast<std::size_t>(row)] || (shares_heads && is_other_head)) continue;
    rows.fill_with_nan(row);
  }
}

std::uint64_t CaseInputs::fingerprint() const {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const GuardedTensor& tensor : tensors_) {
    hash = hash_of(tensor.view(), hash) + (tensor.damage() ? 1 : 0);
  }
  return sequences_ ? hash_of_sequences(*problem_.sequences, hash) : hash;
}

}  // namespace tilewright::verify::fuzz
