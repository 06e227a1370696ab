#include "fuzz/written.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "runtime/io/float16.hpp"
#include "verify/sequences.hpp"

namespace tilewright::verify::fuzz {
namespace {

std::vector<std::int64_t> out_shape(const FuzzCase& c) {
  const Shape& shape = c.shape;
  const std::int64_t width = c.spec.value_head_dim();
  switch (c.spec.layout) {
    case Layout::bhsd:
      return {shape.batch, shape.num_q_heads, shape.q_len, width};
    case Layout::bshd:
      return {shape.batch, shape.q_len, shape.num_q_heads, width};
    case Layout::packed:
    case Layout::paged:
    case Layout::paged_x:
      break;
  }
  return {shape.q_len, shape.num_q_heads, width};
}

// The call's dimensions in the order of memory, slowest first; the last one stays.
std::vector<std::size_t> memory_order(const FuzzCase& c, Written::Order order) {
  constexpr std::array<std::array<std::size_t, 4>, 5> kOtherOrders = {
      {{2, 0, 1, 3}, {1, 2, 0, 3}, {2, 1, 0, 3}, {0, 2, 1, 3}, {1, 0, 2, 3}}};
  const bool is_other = order == Written::Order::other;
  if (c.spec.is_packed())
    return is_other ? std::vector<std::size_t>{1, 0, 2} : std::vector<std::size_t>{0, 1, 2};
  if (!is_other) return {0, 1, 2, 3};
  const auto& chosen = kOtherOrders[static_cast<std::size_t>(c.number) % kOtherOrders.size()];
  return {chosen.begin(), chosen.end()};
}

std::vector<std::int64_t> memory_shape(const FuzzCase& c, Written::Order order) {
  const std::vector<std::int64_t> shape = out_shape(c);
  std::vector<std::int64_t> result;
  for (const std::size_t from : memory_order(c, order)) result.push_back(shape[from]);
  return result;
}

// Wider by a multiple of 16 bytes: alignment decides which kernel serves.
Placement placement_of(const FuzzCase& c, Written::Order order) {
  Placement placement = c.out;
  if (order == Written::Order::other) placement.row_padding += 16 * (1 + c.number % 3);
  return placement;
}

// A double holds each number of the dtypes that are written, so equal doubles are equal bytes.
bool are_same(double x, double y) {
  const bool are_equal = std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  return are_equal || (std::isnan(x) && std::isnan(y));
}

}  // namespace

Written::Written(const FuzzCase& fuzz_case, Order order)
    : out(fuzz_case.spec.output_dtype(), memory_shape(fuzz_case, order),
          placement_of(fuzz_case, order)),
      layout(fuzz_case.spec.layout),
      row_dimension_(fuzz_case.spec.is_packed() && order == Order::other ? 1 : 0),
      out_view_(out.view()) {
  std::size_t from = 0;
  for (const std::size_t to : memory_order(fuzz_case, order)) {
    out_view_.shape[to] = out.view().shape[from];
    out_view_.strides[to] = out.view().strides[from++];
  }
  const Shape& shape = fuzz_case.shape;
  const auto make = [&](bool is_output, std::optional<GuardedTensor>& tensor) {
    if (!is_output) return;
    if (fuzz_case.spec.is_packed()) {
      tensor.emplace(DType::f32, std::array{shape.num_q_heads, shape.q_len});
    } else {
      tensor.emplace(DType::f32, std::array{shape.batch, shape.num_q_heads, shape.q_len});
    }
  };
  make(fuzz_case.spec.outputs.lse, lse);
  make(fuzz_case.spec.outputs.max_scores, max_scores);
  if (fuzz_case.spec.outputs.weights) {
    weights.emplace(fuzz_case.spec.output_dtype(),
                    std::array{shape.batch, shape.num_q_heads, shape.q_len, shape.kv_len});
  }
}

AttentionValues Written::values() const {
  AttentionValues values{.out = read_values(out_view(), layout), .lse = {}};
  if (lse) values.lse = read_lse(lse->view());
  if (max_scores) values.max_scores = read_lse(max_scores->view());
  if (weights) values.weights = read_values(weights->view(), Layout::bhsd);
  return values;
}

std::string Written::damage() const {
  if (const auto found = out.damage()) return "out was written to: " + *found;
  if (lse) {
    if (const auto found = lse->damage()) return "lse was written to: " + *found;
  }
  if (max_scores) {
    if (const auto found = max_scores->damage()) return "max_scores was written to: " + *found;
  }
  if (weights) {
    if (const auto found = weights->damage()) return "weights was written to: " + *found;
  }
  return {};
}

std::string Written::touched_row(const Problem& problem) const {
  constexpr const char* kMessage = "row {} of {} belongs to no sequence and was written to";
  std::vector<bool> is_planned(static_cast<std::size_t>(problem.shape.q_len));
  for (const SequenceRows& rows : read_sequences(problem)) {
    std::fill_n(is_planned.begin() + rows.q_begin, rows.q_len, true);
  }
  for (std::int64_t row = 0; row < problem.shape.q_len; ++row) {
    if (is_planned[static_cast<std::size_t>(row)]) continue;
    if (!out.is_untouched(row_dimension_, row)) return fmt::format(kMessage, row, "out");
    if (lse && !lse->is_untouched(1, row)) return fmt::format(kMessage, row, "lse");
    if (max_scores && !max_scores->is_untouched(1, row)) {
      return fmt::format(kMessage, row, "max_scores");
    }
  }
  return {};
}

bool same_bits(const Values& a, const Values& b) {
  return std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end(), are_same);
}

bool same_bits(const TensorView& a, const TensorView& b) {
  const Tensor left = Tensor::copy_of(a), right = Tensor::copy_of(b);
  for (std::int64_t i = 0; i < left.numel(); ++i) {
    if (!are_same(read_element(left.data(), left.dtype(), i),
                  read_element(right.data(), right.dtype(), i))) {
      return false;
    }
  }
  return true;
}

}  // namespace tilewright::verify::fuzz
