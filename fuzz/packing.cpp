#include "fuzz/packing.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/enum_names.hpp"
#include "base/error.hpp"

namespace tilewright::verify::fuzz {
namespace {

constexpr std::array kKvRowsNames = {std::pair{KvRows::together, std::string_view("together")},
                                     std::pair{KvRows::gaps, std::string_view("gaps")},
                                     std::pair{KvRows::backward, std::string_view("backward")},
                                     std::pair{KvRows::shared, std::string_view("shared")}};

void write(const std::vector<std::int64_t>& values, const TensorView& to) {
  auto* const data = static_cast<std::int32_t*>(to.data);
  for (std::size_t i = 0; i < values.size(); ++i) data[i] = static_cast<std::int32_t>(values[i]);
}

GuardedTensor tensor_of(const std::vector<std::int64_t>& values) {
  GuardedTensor tensor(DType::i32, std::array{static_cast<std::int64_t>(values.size())});
  write(values, tensor.view());
  return tensor;
}

template <typename Field, typename Item>
std::vector<std::int64_t> fields_of(const std::vector<Item>& items, Field Item::*field) {
  std::vector<std::int64_t> values;
  values.reserve(items.size());
  for (const Item& item : items) values.push_back(item.*field);
  return values;
}

std::vector<std::int64_t> q_begins_of(const FuzzPacking& packing) {
  std::vector<std::int64_t> begins = {packing.q_rows_before};
  for (const FuzzSequence& sequence : packing.sequences) {
    begins.push_back(begins.back() + sequence.q_len);
  }
  return begins;
}

// Of rows one after another: where the last sequence ends, too.
std::vector<std::int64_t> kv_begin_tensor(const FuzzPacking& packing) {
  std::vector<std::int64_t> begins = kv_begins_of(packing);
  if (packing.kv_rows != KvRows::together) return begins;
  begins.push_back(packing.sequences.empty() ? packing.kv_gap
                                             : begins.back() + packing.sequences.back().kv_len);
  return begins;
}

}  // namespace

std::string_view to_string(KvRows rows) {
  return name_in(kKvRowsNames, rows);
}

KvRows kv_rows_from_string(std::string_view name) {
  if (const auto rows = value_in(kKvRowsNames, name)) return *rows;
  throw Error(ErrorCode::file, fmt::format("kv_rows is \"{}\", but must be together, gaps, "
                                           "backward or shared",
                                           name));
}

std::vector<std::int64_t> kv_begins_of(const FuzzPacking& packing) {
  const std::size_t batch = packing.sequences.size();
  std::vector<std::int64_t> begins(batch, packing.kv_gap);
  if (packing.kv_rows == KvRows::shared) return begins;
  const std::int64_t gap = packing.kv_rows == KvRows::together ? 0 : packing.kv_gap;
  std::int64_t row = packing.kv_gap;
  for (std::size_t i = 0; i < batch; ++i) {
    const std::size_t b = packing.kv_rows == KvRows::backward ? batch - 1 - i : i;
    begins[b] = row;
    row += packing.sequences[b].kv_len + gap;
  }
  return begins;
}

std::int64_t total_q_of(const FuzzPacking& packing) {
  return q_begins_of(packing).back() + packing.q_rows_after;
}

std::int64_t total_kv_of(const FuzzPacking& packing) {
  std::int64_t end = packing.kv_gap;
  const std::vector<std::int64_t> begins = kv_begins_of(packing);
  for (std::size_t b = 0; b < begins.size(); ++b) {
    end = std::max(end, begins[b] + packing.sequences[b].kv_len);
  }
  return end + packing.kv_gap;
}

void set_totals(Shape& shape, const FuzzPacking& packing) {
  shape.batch = static_cast<std::int64_t>(packing.sequences.size());
  shape.q_len = total_q_of(packing);
  shape.kv_len = total_kv_of(packing);
}

SequenceNumbers numbers_of(const FuzzPacking& packing) {
  SequenceNumbers numbers{.q_begin = q_begins_of(packing), .kv_begin = kv_begin_tensor(packing)};
  const auto& sequences = packing.sequences;
  if (packing.kv_rows != KvRows::together) {
    numbers.kv_len = fields_of(sequences, &FuzzSequence::kv_len);
  }
  if (packing.has_q_offset) numbers.q_offset = fields_of(sequences, &FuzzSequence::q_offset);
  if (packing.has_kv_offset) numbers.kv_offset = fields_of(sequences, &FuzzSequence::kv_offset);
  return numbers;
}

SequenceNumbers numbers_of(std::vector<std::int64_t> q_begin,
                           const std::vector<SequenceRows>& rows) {
  return {.q_begin = std::move(q_begin),
          .kv_begin = fields_of(rows, &SequenceRows::kv_begin),
          .kv_len = fields_of(rows, &SequenceRows::kv_len),
          .q_offset = fields_of(rows, &SequenceRows::q_offset),
          .kv_offset = fields_of(rows, &SequenceRows::kv_offset)};
}

SequenceMemory::SequenceMemory(const SequenceNumbers& numbers)
    : q_begin_(tensor_of(numbers.q_begin)), kv_begin_(tensor_of(numbers.kv_begin)) {
  if (numbers.kv_len) kv_len_.emplace(tensor_of(*numbers.kv_len));
  if (numbers.q_offset) q_offset_.emplace(tensor_of(*numbers.q_offset));
  if (numbers.kv_offset) kv_offset_.emplace(tensor_of(*numbers.kv_offset));
}

void SequenceMemory::overwrite(const SequenceNumbers& numbers) {
  write(numbers.q_begin, q_begin_.view());
  write(numbers.kv_begin, kv_begin_.view());
  if (kv_len_) write(*numbers.kv_len, kv_len_->view());
  if (q_offset_) write(*numbers.q_offset, q_offset_->view());
  if (kv_offset_) write(*numbers.kv_offset, kv_offset_->view());
}

Sequences SequenceMemory::sequences() const {
  Sequences sequences{.q_begin = q_begin_.view(), .kv_begin = kv_begin_.view()};
  if (kv_len_) sequences.kv_len = kv_len_->view();
  if (q_offset_) sequences.q_offset = q_offset_->view();
  if (kv_offset_) sequences.kv_offset = kv_offset_->view();
  return sequences;
}

SequencesOfCall::SequencesOfCall(const Spec& spec, const FuzzPacking& packing) {
  if (spec.is_packed()) memory_.emplace(numbers_of(packing));
}

Problem SequencesOfCall::problem_of(const Inputs& inputs) const {
  Problem problem = inputs.problem();
  if (memory_) problem.sequences = memory_->sequences();
  return problem;
}

}  // namespace tilewright::verify::fuzz
