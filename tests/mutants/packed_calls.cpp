#include "tests/mutants/packed_calls.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "fuzz/case_inputs.hpp"
#include "fuzz/packing.hpp"
#include "fuzz/relations.hpp"
#include "runtime/call/staged_call.hpp"
#include "runtime/call/staged_plan.hpp"
#include "verify/check.hpp"

namespace tilewright::mutants {
namespace {

using verify::fuzz::FuzzCase;
using verify::fuzz::Relation;

// Sequences of one row, around the borders of tiles, without rows or columns, with more rows than
// columns, and with more columns than a span of the map has tiles.
FuzzCase packed_call(const Spec& spec) {
  FuzzCase call;
  call.spec = spec;
  call.shape = {.num_q_heads = 4, .num_kv_heads = 2};
  call.packing = {.sequences = {{1, 83}, {5, 18}, {33, 150}, {0, 9}, {64, 0}, {140, 30}, {0, 0}},
                  .q_rows_before = 3,
                  .q_rows_after = 4,
                  .kv_gap = 5,
                  .kv_rows = verify::fuzz::KvRows::backward};
  if (spec.block[1] == 16) call.packing.sequences.push_back({70, 1100});
  set_totals(call.shape, call.packing);
  return call;
}

// The same with positions of their own, and sequences that lie next to each other.
FuzzCase placed_call(const Spec& spec) {
  FuzzCase call = packed_call(spec);
  call.packing.kv_rows = verify::fuzz::KvRows::together;
  call.packing.has_q_offset = call.packing.has_kv_offset = true;
  std::int64_t offset = 40;
  for (verify::fuzz::FuzzSequence& sequence : call.packing.sequences) {
    sequence.kv_offset = offset;
    sequence.q_offset = offset + sequence.kv_len / 2;
    offset = 29 - offset;
  }
  set_totals(call.shape, call.packing);
  return call;
}

// More sequences than a plan's block of threads takes at once, a third of them without rows.
FuzzCase crowded_call(const Spec& spec) {
  FuzzCase call;
  call.spec = spec;
  call.shape = {.num_q_heads = 2, .num_kv_heads = 1};
  for (std::int64_t i = 0; i < 700; ++i) {
    call.packing.sequences.push_back({.q_len = i % 3 == 0 ? 0 : 9 + i % 2, .kv_len = 1 + i % 5});
  }
  set_totals(call.shape, call.packing);
  return call;
}

std::string wrong_case(const FuzzCase& call, const Attention& attention, const Toolchain& kernels) {
  const verify::fuzz::CaseInputs inputs(call);
  return wrong_by_reference(inputs.problem(), attention, kernels);
}

// What a plan says of buffers that break the spec's promise of order.
std::string wrong_report(const FuzzCase& call, const Attention& attention) {
  verify::Inputs inputs = verify::fuzz::dense_inputs(call);
  Tensor& buffer = inputs.buffers.begin()->second;
  auto* const values = static_cast<std::int32_t*>(buffer.data());
  const std::int64_t width = buffer.shape().back();
  for (std::int64_t i = 0; i < buffer.numel(); ++i) values[i] = i % width < width - 2 ? 3 : 4;
  const verify::fuzz::SequenceMemory memory(verify::fuzz::numbers_of(call.packing));
  verify::Problem problem = inputs.problem();
  problem.sequences = memory.sequences();
  const auto text = [&] {
    const StagedCall staged(attention.device(), problem.snippet);
    const StagedPlan plan(attention, verify::packed_shape(problem), *problem.sequences,
                          attention.bind(staged.inputs()), StagedPlan::OnFaults::take_unsorted);
    return plan.plan().report().text();
  };
  std::string found = text();
  values[buffer.numel() - 1] = 2;
  values[5] = 5;
  found += "; " + text();
  const std::string wanted = fmt::format(
      "; x(0, 6) is 3 after 5, but the spec promises that it is sorted (2 elements are less than "
      "the one before)");
  return found == wanted ? "" : "the plan reports \"" + found + "\"";
}

Spec causal_spec() {
  return {.name = "packed causal",
          .dtype = DType::f16,
          .head_dim = 64,
          .layout = Layout::packed,
          .mask_mod = "q_idx >= kv_idx",
          .outputs = {.lse = true}};
}

}  // namespace

std::string wrong_by_reference(const verify::Problem& problem, const Attention& attention,
                               const Toolchain& kernels, bool decode) {
  verify::CheckOptions options;
  options.attention.device = attention.device();
  options.attention.kernels = kernels;
  options.attention.decode = decode;
  options.interpretations = Toolchain{};
  options.check_undefined = false;
  const verify::Report report = verify::check(attention.spec(), problem, options);
  return report.ok ? "" : report.reasons().front();
}

Spec spec_that_names_tokens() {
  Spec heads = causal_spec();
  heads.name = "packed heads";
  heads.dtype = DType::f32;
  heads.head_dim = 16;
  heads.block = {32, 16};
  heads.mask_mod =
      "(q_token * 7 + kv_token * 13) % 5 != h && q_idx - kv_idx < 200 + 64 * h + 16 * b";
  heads.score_mod = "score + 0.01 * (kv_token - q_token) + 0.1 * b";
  return heads;
}

std::vector<Spec> packed_specs() {
  const Spec causal = causal_spec();
  Spec plain = causal;
  plain.name = "packed without snippets";
  plain.mask_mod.clear();
  Spec portable = causal;
  portable.name = "packed portable";
  portable.tactic = TacticSpec{.name = "portable"};
  Spec documents = causal;
  documents.name = "packed documents";
  documents.dtype = DType::f32;
  documents.head_dim = 16;
  documents.mask_mod =
      "q_idx >= kv_idx && x(h_kv, q_token) == x(h_kv, kv_token) && y[kv_token] < 9";
  documents.buffers = {{"x",
                        {.dtype = DType::i32,
                         .shape = {NamedDim::num_kv_heads, FreeDim{}},
                         .range = {{0, 9}},
                         .sorted = Sorted::promised}},
                       {"y",
                        {.dtype = DType::i64,
                         .shape = {NamedDim::total_kv},
                         .range = {{0, 9}},
                         .sorted = Sorted::promised}}};
  return {spec_that_names_tokens(), causal, plain, portable, documents};
}

std::string wrong_packed_call(const Attention& attention, const Toolchain& kernels) {
  try {
    const FuzzCase call = packed_call(attention.spec());
    std::string wrong = wrong_case(call, attention, kernels);
    // In float32 one element of it is at its bound.
    if (wrong.empty() && call.spec.dtype == DType::f16) {
      wrong = wrong_case(placed_call(call.spec), attention, kernels);
    }
    if (wrong.empty() && call.spec.mask_mod.empty()) {
      wrong = wrong_case(crowded_call(call.spec), attention, kernels);
    }
    verify::fuzz::KernelRelationRunner runner(attention.device(), kernels);
    for (const Relation relation :
         {Relation::lying_lengths, Relation::planned_again, Relation::positions}) {
      if (!wrong.empty()) break;
      wrong = check_relation(relation, call.spec, dense_inputs(call), runner, call.packing).message;
    }
    if (wrong.empty() && !call.spec.buffers.empty()) wrong = wrong_report(call, attention);
    return wrong;
  } catch (const Error& error) {
    return error.message();  // a plan that reports what is not so
  }
}

}  // namespace tilewright::mutants
