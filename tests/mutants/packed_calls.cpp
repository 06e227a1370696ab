#include "tests/mutants/packed_calls.hpp"

#include "base/error.hpp"
#include "fuzz/case_inputs.hpp"
#include "fuzz/relations.hpp"
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

std::string wrong_by_reference(const FuzzCase& call, const Attention& attention,
                               const Toolchain& kernels) {
  verify::CheckOptions options;
  options.attention.device = attention.device();
  options.attention.kernels = kernels;
  options.readings = Toolchain{};
  options.check_undefined = false;
  const verify::fuzz::CaseInputs inputs(call);
  const verify::Report report = verify::check(call.spec, inputs.problem(), options);
  return report.ok ? "" : report.reasons().front();
}

}  // namespace

std::vector<Spec> packed_specs() {
  const Spec causal{.name = "packed causal",
                    .dtype = DType::f16,
                    .head_dim = 64,
                    .layout = Layout::packed,
                    .mask_mod = "q_idx >= kv_idx",
                    .outputs = {.lse = true}};
  Spec heads = causal;
  heads.name = "packed heads";
  heads.dtype = DType::f32;
  heads.head_dim = 16;
  heads.block = {16, 16};
  heads.mask_mod =
      "(q_token * 7 + kv_token * 13) % 5 != h && q_idx - kv_idx < 200 + 64 * h + 16 * b";
  heads.score_mod = "score + 0.01 * (kv_token - q_token) + 0.1 * b";
  Spec plain = causal;
  plain.name = "packed without snippets";
  plain.mask_mod.clear();
  Spec portable = causal;
  portable.name = "packed portable";
  portable.tactic = TacticSpec{.name = "portable"};
  return {heads, causal, plain, portable};
}

std::string wrong_packed_call(const Attention& attention, const Toolchain& kernels) {
  try {
    const FuzzCase call = packed_call(attention.spec());
    std::string wrong = wrong_by_reference(call, attention, kernels);
    verify::fuzz::KernelRelationRunner runner(attention.device(), kernels);
    for (const Relation relation : {Relation::lying_lengths, Relation::planned_again}) {
      if (!wrong.empty()) break;
      wrong = check_relation(relation, call.spec, dense_inputs(call), runner, call.packing).message;
    }
    return wrong;
  } catch (const Error& error) {
    return error.message();  // a plan that reports what is not so
  }
}

}  // namespace tilewright::mutants
