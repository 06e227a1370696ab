#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/api/attention.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/packed_batch.hpp"

// Plans whose spec promises sorted buffers, on any device whose memory the host can write to.

namespace tilewright::packed_calls {

/// A packed spec with one promised buffer `x` that mask_mod reads.
inline Spec promised_spec(DType dtype, std::vector<BufferDim> shape, std::string mask_mod) {
  Spec spec = packed_spec(16, std::move(mask_mod), false);
  spec.buffers = {{"x", {.dtype = dtype, .shape = std::move(shape), .sorted = Sorted::promised}}};
  return spec;
}

/// A plan for two sequences of 150 and 250 rows and columns, with `x` bound.
struct PromisedPlan {
  Attention attention;
  Bindings bindings;
  Tensor begins = int_tensor({0, 150, 400});
  PackedShape shape = {.batch = 2, .num_q_heads = 2, .total_q = 400, .total_kv = 400};
  Workspace workspace;
  Plan plan;

  PromisedPlan(const Spec& spec, const TensorView& x, const Device& device)
      : attention(spec, {.device = device}),
        bindings(attention.bind({.buffers = {{"x", x}}})),
        workspace(attention.workspace_size(shape)),
        plan(attention.plan(shape, {.q_begin = begins, .kv_begin = begins.view()}, bindings,
                            {.workspace = workspace.view()})) {}

  PlanReport rebuilt_report() {
    attention.rebuild(plan, bindings);
    return plan.report();
  }
};

/// Has a plan find each element that is less than the one before, and nothing else.
template <typename Stored>
void check_finds_unsorted(DType dtype, const Device& device) {
  CAPTURE(to_string(dtype), device.name());
  Tensor x = Tensor::zeros(dtype, {2, 400});
  auto* const data = static_cast<Stored*>(x.data());
  // In order only with their signs and all their bits.
  const Stored least = std::numeric_limits<Stored>::lowest(),
               greatest = dtype == boolean ? Stored{1} : std::numeric_limits<Stored>::max();
  const std::string words = fmt::format(" is {} after {}, but the spec promises that it is sorted",
                                        std::int64_t{least}, std::int64_t{greatest});
  const auto fill = [&] {
    // The second row begins below the end of the first.
    for (int i = 0; i < 800; ++i) data[i] = i % 400 < 380 ? least : greatest;
  };
  fill();
  PromisedPlan made(
      promised_spec(dtype, {FreeDim{}, NamedDim::total_kv}, "x(h, q_token) == x(h, kv_token)"), x,
      device);
  CHECK(made.plan.report().count == 0);
  CHECK(made.plan.report().text().empty());
  data[100] = greatest;
  data[400 + 399] = least;
  PlanReport report = made.rebuilt_report();
  CHECK(report.count == 2);
  CHECK(report.unsorted == 2);
  REQUIRE(report.first);
  CHECK(report.first->kind == PlanReport::Kind::unsorted);
  CHECK(report.first->place == 101);
  CHECK(report.text() == "x(0, 101)" + words + " (2 elements are less than the one before)");
  fill();
  data[400 + 399] = least;
  report = made.rebuilt_report();
  CHECK(report.count == 1);
  CHECK(report.text() == "x(1, 399)" + words);
  fill();
  CHECK(made.rebuilt_report().count == 0);
}

/// Lengths that lie come first in a report.
inline void check_counts_beside_lengths(const Device& device) {
  Tensor x = Tensor::zeros(i32, {400});
  auto* const data = static_cast<int*>(x.data());
  data[7] = 3;
  PromisedPlan made(
      promised_spec(i32, {NamedDim::total_kv}, "q_idx >= kv_idx && x[q_token] == x[kv_token]"), x,
      device);
  CHECK(made.plan.report().text() == "x[8] is 0 after 3, but the spec promises that it is sorted");
  static_cast<int*>(made.begins.data())[2] = 401;
  const PlanReport report = made.rebuilt_report();
  CHECK(report.count == 3);
  CHECK(report.unsorted == 1);
  CHECK(report.text() ==
        "q_begin[2] is 401, but q has 400 rows (2 values were clamped) (1 element is less than "
        "the one before)");
}

}  // namespace tilewright::packed_calls
