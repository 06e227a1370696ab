#include "verify/outputs.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/call/staged_call.hpp"
#include "runtime/call/staged_plan.hpp"
#include "runtime/call/staged_workspace.hpp"
#include "verify/sequences.hpp"

namespace tilewright::verify {
namespace {

std::vector<std::int64_t> out_shape(const Spec& spec, const Shape& shape) {
  switch (spec.layout) {
    case Layout::bhsd:
      return {shape.batch, shape.num_q_heads, shape.q_len, spec.value_head_dim()};
    case Layout::bshd:
      return {shape.batch, shape.q_len, shape.num_q_heads, spec.value_head_dim()};
    case Layout::packed:
    case Layout::paged:
    case Layout::paged_x:  // k and v alone
      return {shape.q_len, shape.num_q_heads, spec.value_head_dim()};
  }
  return {};
}

std::vector<std::int64_t> lse_shape(const Spec& spec, const Shape& shape) {
  if (spec.is_packed()) return {shape.num_q_heads, shape.q_len};
  return {shape.batch, shape.num_q_heads, shape.q_len};
}

// Runs `body`; returns the milliseconds that it took.
template <typename Body>
double milliseconds_of(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

Outputs::Outputs(const Spec& spec, const Shape& shape, const Placement& placement)
    : out_(spec.output_dtype(), out_shape(spec, shape), placement) {
  // Contiguous wherever out lies.
  if (spec.outputs.lse) lse_.emplace(DType::f32, lse_shape(spec, shape));
  if (spec.outputs.max_scores) max_scores_.emplace(DType::f32, lse_shape(spec, shape));
  if (spec.outputs.weights) {
    weights_.emplace(spec.output_dtype(),
                     std::array{shape.batch, shape.num_q_heads, shape.q_len, shape.kv_len});
  }
}

ForwardTensors Outputs::tensors(const Problem& problem) const {
  ForwardTensors tensors{
      .q = problem.q, .k = problem.k, .v = problem.v, .out = out_.view(), .lse = {}};
  if (lse_) tensors.lse = lse_->view();
  if (max_scores_) tensors.max_scores = max_scores_->view();
  if (weights_) tensors.weights = weights_->view();
  tensors.k_new = problem.k_new;
  tensors.v_new = problem.v_new;
  return tensors;
}

AttentionValues Outputs::values(const Spec& spec) const {
  AttentionValues values{.out = read_values(out_.view(), spec.layout), .lse = {}};
  if (lse_) values.lse = read_lse(lse_->view());
  if (max_scores_) values.max_scores = read_lse(max_scores_->view());
  if (weights_) values.weights = read_values(weights_->view(), Layout::bhsd);
  return values;
}

std::optional<std::string> Outputs::damage(const Problem& problem) const {
  if (const auto found = out_.damage()) return "memory around out was written to: " + *found;
  if (lse_) {
    if (const auto found = lse_->damage()) return "memory around lse was written to: " + *found;
  }
  if (max_scores_) {
    if (const auto found = max_scores_->damage()) {
      return "memory around max_scores was written to: " + *found;
    }
  }
  if (weights_) {
    if (const auto found = weights_->damage()) {
      return "memory around weights was written to: " + *found;
    }
  }
  return problem.sequences ? damaged_row(problem) : std::nullopt;
}

std::optional<std::string> Outputs::damaged_row(const Problem& problem) const {
  std::vector<bool> is_planned(static_cast<std::size_t>(problem.shape.q_len));
  for (const SequenceRows& rows : read_sequences(problem)) {
    std::fill_n(is_planned.begin() + rows.q_begin, rows.q_len, true);
  }
  constexpr const char* kMessage = "row {} of {} belongs to no sequence and was written to";
  for (std::int64_t row = 0; row < problem.shape.q_len; ++row) {
    if (is_planned[static_cast<std::size_t>(row)]) continue;
    if (!out_.is_untouched(0, row)) return fmt::format(kMessage, row, "out");
    if (lse_ && !lse_->is_untouched(1, row)) return fmt::format(kMessage, row, "lse");
    if (max_scores_ && !max_scores_->is_untouched(1, row)) {
      return fmt::format(kMessage, row, "max_scores");
    }
  }
  return std::nullopt;
}

namespace {

// Plans, looks at what the plan reports, and calls.
void run_packed(const Attention& attention, const Problem& problem, const StagedCall& staged,
                const Bindings& bindings, CallFacts& taken, bool wants_facts) {
  std::optional<StagedPlan> plan;
  taken.mask_ms = milliseconds_of([&] {
    plan.emplace(attention, packed_shape(problem), *problem.sequences, bindings,
                 StagedPlan::OnFaults::take_unsorted, wishes_of(problem));
  });
  taken.forward_ms = milliseconds_of([&] {
    attention.forward(staged.tensors(), plan->plan(), bindings, {.scale = problem.scale});
    staged.wait();
  });
  if (!wants_facts) return;
  taken.plan_map.emplace(plan->plan(), attention.spec().block);
  taken.changed_input = plan->damage();
}

}  // namespace

std::optional<BlockMask> run_call(const Attention& attention, const Problem& problem,
                                  const Outputs& outputs, CallFacts* facts) {
  const StagedCall staged(attention.device(), outputs.tensors(problem), problem.snippet,
                          GuardedTensor::kGuardBytes);
  const Bindings bindings = attention.bind(staged.inputs());
  ForwardOptions call{.q_offset = problem.shape.q_offset,
                      .kv_offset = problem.shape.kv_offset,
                      .scale = problem.scale,
                      .splits = problem.splits};
  std::optional<StagedWorkspace> workspace;
  if (!problem.sequences) call.workspace = workspace.emplace(attention, problem.shape).view();
  CallFacts taken;
  std::optional<BlockMask> mask;
  if (problem.sequences) {
    run_packed(attention, problem, staged, bindings, taken, facts != nullptr);
  } else {
    if (!attention.spec().mask_mod.empty()) {
      taken.mask_ms =
          milliseconds_of([&] { mask.emplace(attention.block_mask(problem.shape, bindings)); });
    }
    taken.forward_ms = milliseconds_of([&] {
      if (mask) {
        attention.forward(staged.tensors(), *mask, bindings, call);
      } else {
        attention.forward(staged.tensors(), bindings, call);
      }
      staged.wait();
    });
  }
  staged.copy_back();
  if (facts) {
    if (!taken.changed_input) taken.changed_input = staged.changed_input();
    if (!taken.changed_input && workspace) taken.changed_input = workspace->damage();
    *facts = std::move(taken);
  }
  return mask;
}

AttentionValues run_call(const Attention& attention, const Problem& problem) {
  const Outputs outputs(attention.spec(), problem.shape);
  run_call(attention, problem, outputs);
  return outputs.values(attention.spec());
}

}  // namespace tilewright::verify
