#include "verify/fuzz/shrink.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "generator/snippet.hpp"
#include "verify/fuzz/simpler.hpp"

namespace tilewright::verify::fuzz {
namespace {

using Simpler = std::vector<FuzzCase> (*)(const FuzzCase&);

class Shrinker {
 public:
  Shrinker(const FuzzCase& failing, const Outcome& outcome, const RunCase& run,
           const ShrinkOptions& options)
      : run_(run), options_(options), shrunk_{failing, outcome, 0, false} {
    tried_.insert(to_json(failing));
  }

  Shrunk result() {
    bool smaller = true;
    while (smaller && !is_exhausted()) {
      smaller = false;
      for (const Simpler simpler : {simpler_shapes, simpler_features, simpler_snippets}) {
        while (take_one(simpler)) smaller = true;
      }
    }
    shrunk_.finished = !is_exhausted();
    return std::move(shrunk_);
  }

 private:
  // Goes on from the first simpler case that fails alike; false where there is none.
  bool take_one(Simpler simpler) {
    for (FuzzCase& candidate : simpler(shrunk_.smallest)) {
      if (is_exhausted()) return false;
      if (!tried_.insert(to_json(candidate)).second) continue;
      ++shrunk_.runs;
      Outcome outcome = run_(candidate);
      if (outcome.failure != shrunk_.outcome.failure) continue;
      shrunk_.smallest = std::move(candidate);
      shrunk_.outcome = std::move(outcome);
      if (options_.progress) options_.progress(shrunk_.smallest, shrunk_.runs);
      return true;
    }
    return false;
  }

  bool is_exhausted() const {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start_;
    return shrunk_.runs >= options_.max_runs || taken.count() > options_.max_seconds;
  }

  const RunCase& run_;
  const ShrinkOptions& options_;
  Shrunk shrunk_;
  std::set<std::string> tried_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void collect(const Expression& expression, std::set<std::string>& operations) {
  if (!expression.operands.empty()) operations.insert(std::string(to_string(expression.op)));
  for (const Expression& operand : expression.operands) collect(operand, operations);
}

void collect(const std::vector<Statement>& statements, std::set<std::string>& operations) {
  for (const Statement& statement : statements) {
    collect(statement.value, operations);
    collect(statement.body, operations);
    collect(statement.otherwise, operations);
  }
}

std::string group_name(const Shrunk& shrunk) {
  const std::vector<std::string> features = needed_features(shrunk.smallest);
  return fmt::format("{}: {}", to_string(shrunk.outcome.failure), fmt::join(features, ", "));
}

}  // namespace

Shrunk shrink(const FuzzCase& failing, const Outcome& outcome, const RunCase& run,
              const ShrinkOptions& options) {
  return Shrinker(failing, outcome, run, options).result();
}

std::vector<std::string> needed_features(const FuzzCase& minimal) {
  const Spec& spec = minimal.spec;
  const Shape& shape = minimal.shape;
  std::vector<std::string> features;
  const auto add_if = [&](bool needed, std::string_view name) {
    if (needed) features.emplace_back(name);
  };
  add_if(minimal.target != "cpu", minimal.target);
  add_if(spec.dtype != DType::f32, to_string(spec.dtype));
  add_if(spec.kv_dtype || spec.out_dtype, "mixed dtypes");
  add_if(spec.v_head_dim != 0 && spec.v_head_dim != spec.head_dim, "v_head_dim");
  add_if(spec.layout != Layout::bhsd || spec.kv_layout, "layout");
  add_if(spec.outputs.lse, "lse");
  add_if(spec.precise_math, "precise_math");
  add_if(spec.tactic.has_value(), "tactic");
  add_if(shape.batch > 1, "batch");
  add_if(shape.num_q_heads > 1, "heads");
  add_if(shape.num_q_heads != shape.num_kv_heads, "head groups");
  add_if(shape.q_offset != 0 || shape.kv_offset != 0, "offsets");
  add_if(minimal.broadcast_kv || minimal.one_kv_head_for_all || minimal.broadcast_buffers,
         "broadcast");
  add_if(minimal.nan_in_dropped, "NaN");
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

bool FailureGroups::add(Shrunk shrunk) {
  std::string name = group_name(shrunk);
  const auto found = std::find_if(groups_.begin(), groups_.end(),
                                  [&](const Group& group) { return group.name == name; });
  if (found == groups_.end()) {
    groups_.push_back({std::move(name), std::move(shrunk), 1});
    return true;
  }
  ++found->count;
  if (tokens(shrunk.smallest) < tokens(found->smallest.smallest)) {
    found->smallest = std::move(shrunk);
  }
  return false;
}

std::int64_t tokens(const FuzzCase& fuzz_case) {
  return fuzz_case.shape.q_len + fuzz_case.shape.kv_len;
}

}  // namespace tilewright::verify::fuzz
