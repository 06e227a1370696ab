#include "fuzz/failure_groups.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "fuzz/features.hpp"
#include "fuzz/shrink.hpp"
#include "generator/spec/gradients.hpp"

namespace tilewright::verify::fuzz {
namespace {

void collect(const std::vector<Statement>& statements, std::set<std::string>& operations) {
  for_each_node(statements, [&](const Expression& node) {
    if (!node.operands.empty()) operations.emplace(to_string(node.op));
  });
}

std::string features_of_spec(const FuzzCase& fuzz_case) {
  Features features = features_of(fuzz_case);
  for (std::size_t f = kSpecFactors; f < kFactors; ++f) features[f] = 0;
  const std::string text = describe(features);
  return fuzz_case.relation.empty() ? text : fuzz_case.relation + " " + text;
}

}  // namespace

std::vector<std::string> needed_features(const FuzzCase& minimal) {
  const Spec& spec = minimal.spec;
  const Shape& shape = minimal.shape;
  std::vector<std::string> features;
  const auto add_if = [&](bool needed, std::string_view name) {
    if (needed) features.emplace_back(name);
  };
  add_if(minimal.target != "cpu", minimal.target);
  add_if(!minimal.relation.empty(), minimal.relation);
  add_if(minimal.sanitized, "sanitized");
  add_if(spec.dtype != DType::f32, to_string(spec.dtype));
  add_if(spec.kv_dtype || spec.out_dtype, "mixed dtypes");
  add_if(spec.v_head_dim != 0 && spec.v_head_dim != spec.head_dim, "v_head_dim");
  add_if(spec.is_packed(), "packed");
  add_if(spec.layout == Layout::bshd || spec.kv_layout, "layout");
  for (const char* const name : {"q", "k", "v"}) {
    add_if(has_gradient(spec, name), fmt::format("gradient of {}", name));
  }
  add_if(!gradient_names(spec).empty(), "gradients of buffers");
  add_if(minimal.dlse, "dlse");
  add_if(minimal.deterministic, "deterministic");
  add_if(spec.outputs.lse && spec.gradients.empty(), "lse");
  add_if(spec.outputs.max_scores, "max_scores");
  add_if(spec.outputs.weights, "weights");
  add_if(spec.precise_math.value_or(false), "precise_math");
  add_if(spec.f32_products == F32Products::tf32, "tf32");
  add_if(spec.tactic.has_value(), "tactic");
  add_if(shape.batch > 1, "batch");
  add_if(shape.num_q_heads > 1, "heads");
  add_if(shape.num_q_heads != shape.num_kv_heads, "head groups");
  add_if(shape.q_offset != 0 || shape.kv_offset != 0 || minimal.packing.has_q_offset ||
             minimal.packing.has_kv_offset,
         "offsets");
  add_if(minimal.packing.kv_rows != KvRows::together, "rows of k");
  add_if(minimal.broadcast_kv || minimal.one_kv_head_for_all || minimal.broadcast_buffers,
         "broadcast");
  add_if(minimal.nan_in_dropped, "NaN");
  add_if(minimal.decode, "decode");
  add_if(minimal.split, "split");
  add_if(minimal.splits != 0, "splits");
  add_if(minimal.batch_invariant, "batch-invariant");
  const Placement none;
  for (const Placement& placement :
       {minimal.q, minimal.k, minimal.v, minimal.buffers, minimal.out}) {
    const bool is_plain =
        placement.row_padding == none.row_padding && placement.offset == none.offset;
    if (is_plain) continue;
    features.emplace_back("placement");
    break;
  }
  add_if(minimal.scale || spec.scale, "scale");
  add_if(minimal.q_factor != 1, "large scores");
  add_if(!spec.score_mod.empty(), "score_mod");
  add_if(!spec.mask_mod.empty(), "mask_mod");
  add_if(!spec.buffers.empty(), "buffers");
  add_if(!spec.scalars.empty(), "scalars");
  std::set<std::string> operations;
  if (minimal.score_mod) collect(minimal.score_mod->statements, operations);
  if (minimal.mask_mod) collect(minimal.mask_mod->statements, operations);
  features.insert(features.end(), operations.begin(), operations.end());
  return features;
}

bool FailureGroups::add(FuzzCase fuzz_case, Outcome outcome, std::int64_t count) {
  std::string name = name_of(fuzz_case, outcome);
  const auto found = std::find_if(groups_.begin(), groups_.end(),
                                  [&](const FailureGroup& group) { return group.name == name; });
  if (found == groups_.end()) {
    groups_.push_back({std::move(name), std::move(fuzz_case), std::move(outcome), count});
    return true;
  }
  found->count += count;
  if (tokens(fuzz_case) < tokens(found->fuzz_case)) {
    found->fuzz_case = std::move(fuzz_case);
    found->outcome = std::move(outcome);
  }
  return false;
}

std::string FailureGroups::name_of(const FuzzCase& fuzz_case, const Outcome& outcome) const {
  const std::string failure(to_string(outcome.failure));
  const bool has_place = outcome.failure == Failure::undefined && !outcome.key.empty();
  if (has_place) return failure + ": " + outcome.key;
  if (of_ == Of::found_cases) return failure + ": " + features_of_spec(fuzz_case);
  return fmt::format("{}: {}", failure, fmt::join(needed_features(fuzz_case), ", "));
}

}  // namespace tilewright::verify::fuzz
