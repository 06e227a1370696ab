#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/bundles.hpp"
#include "cache/store.hpp"
#include "fuzz/kernel_call.hpp"
#include "fuzz/random_tactic.hpp"
#include "fuzz/relations.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/call/plan_state.hpp"
#include "runtime/call/staged_call.hpp"
#include "runtime/call/staged_plan.hpp"
#include "runtime/compile/temporary_directory.hpp"
#include "verify/outputs.hpp"
#include "verify/sequences.hpp"

namespace tilewright::verify::fuzz {

KernelRelationRunner::KernelRelationRunner(const Device& device, Toolchain kernels)
    : device_(device), kernels_(std::move(kernels)) {}

AttentionValues KernelRelationRunner::forward(const Spec& spec, const Problem& problem, Way way) {
  AttentionOptions options{.device = device_, .kernels = kernels_};
  std::optional<ThreadPool> one_thread;
  if (way == Way::one_thread) options.threads = &one_thread.emplace(1);
  return run_call(Attention(spec, options), problem);
}

RelationRunner::FromCache KernelRelationRunner::forward_from_cache(const Spec& spec,
                                                                   const Problem& problem) {
  const TemporaryDirectory folder("relation");
  const auto with_own_store = [&] {
    AttentionOptions options{.device = device_, .kernels = kernels_};
    options.kernels.store =
        std::make_shared<cache::Store>(cache::Store::Options{.directory = folder.path()});
    options.kernels.bundles = std::make_shared<const cache::Bundles>();
    // A separate key: an equal kernel that this process has loaded would be taken instead.
    options.kernels.instrumentation.emplace_back("-DTILEWRIGHT_FROM_CACHE");
    return Attention(spec, options);
  };
  with_own_store();
  const Attention attention = with_own_store();
  FromCache result{.values = run_call(attention, problem)};
  for (const KernelBuild& build : attention.builds()) result.sources.push_back(build.source);
  return result;
}

BlockMask KernelRelationRunner::block_mask(const Spec& spec, const Problem& problem) {
  const Attention attention(spec, {.device = device_, .kernels = kernels_, .masks_only = true});
  const StagedCall staged(attention.device(), problem.snippet);
  return attention.block_mask(problem.shape, attention.bind(staged.inputs()));
}

std::vector<AttentionValues> KernelRelationRunner::forward_replanned(
    const Spec& spec, const Problem& problem, const SequenceNumbers& others,
    const SequenceNumbers& numbers) {
  const Attention attention(spec, {.device = device_, .kernels = kernels_});
  const Outputs outputs(spec, problem.shape);
  const StagedCall staged(device_, outputs.tensors(problem), problem.snippet);
  const Bindings bindings = attention.bind(staged.inputs());
  std::vector<AttentionValues> results;
  const auto run = [&](const StagedPlan& plan) {
    attention.forward(staged.tensors(), plan.plan(), bindings, {.scale = problem.scale});
    staged.copy_back();
    results.push_back(outputs.values(spec));
  };
  const PackedShape shape = verify::packed_shape(problem);
  SequenceMemory memory(others);
  StagedPlan plan(attention, shape, memory.sequences(), bindings);
  plan.plan_again(attention, *problem.sequences, bindings);
  run(plan);
  tilewright::Plan same = plan.plan();
  attention.rebuild(same, bindings);
  run(plan);
  if (device_.kind() != Device::Kind::cpu) return results;  // copies on a GPU keep their contents
  const StagedPlan overwritten(attention, shape, memory.sequences(), bindings);
  memory.overwrite(numbers);
  same = overwritten.plan();
  attention.rebuild(same, bindings);
  run(overwritten);
  return results;
}

RelationRunner::OfLies KernelRelationRunner::forward_with_lies(const Spec& spec,
                                                               const Problem& problem,
                                                               const PackedShape& shape) {
  const Attention attention(spec, {.device = device_, .kernels = kernels_});
  const Outputs outputs(spec, problem.shape);
  const StagedCall staged(device_, outputs.tensors(problem), problem.snippet,
                          GuardedTensor::kGuardBytes);
  const Bindings bindings = attention.bind(staged.inputs());
  const StagedPlan plan(attention, shape, *problem.sequences, bindings,
                        StagedPlan::OnFaults::clamp);
  attention.forward(staged.tensors(), plan.plan(), bindings, {.scale = problem.scale});
  staged.wait();
  staged.copy_back();
  const PlanGeometry& geometry = plan.plan().state().geometry;
  OfLies result{.report = plan.plan().report(),
                .values = outputs.values(spec),
                .row_side = geometry.block[0],
                .room = geometry.rows};
  for (const std::optional<std::string>& damage :
       {outputs.damage(problem), plan.damage(), staged.changed_input()}) {
    if (damage && result.damage.empty()) result.damage = *damage;
  }
  return result;
}

AttentionValues KernelRelationRunner::forward_with_positions(const Spec& spec,
                                                             const Problem& problem,
                                                             std::int64_t length) {
  const Snippet mask = check_snippet(SnippetKind::mask_mod, spec.mask_mod);
  Spec dense{.dtype = DType::f32,
             .head_dim = spec.head_dim,
             .mask_mod = spec.mask_mod,
             .buffers = spec.buffers,
             .scalars = spec.scalars,
             .block = spec.block};
  SnippetInputs inputs = problem.snippet;
  const auto is_of_others = [&](const auto& named) { return !mask.mentions(named.first); };
  std::erase_if(dense.buffers, is_of_others);
  std::erase_if(inputs.buffers, is_of_others);
  std::erase_if(dense.scalars, is_of_others);
  std::erase_if(inputs.scalars, is_of_others);
  const Attention masks(dense, {.device = Device::cpu(), .kernels = kernels_, .masks_only = true});
  const Shape shape = {.num_q_heads = problem.shape.num_q_heads,
                       .num_kv_heads = problem.shape.num_kv_heads,
                       .q_len = length,
                       .kv_len = length};
  const BlockMask positions = masks.block_mask(shape, masks.bind(inputs));
  Problem with_positions = problem;
  with_positions.positions = &positions;
  const Attention attention(spec, {.device = device_, .kernels = kernels_, .positions = true});
  const Outputs outputs(spec, problem.shape);
  run_call(attention, with_positions, outputs);
  return outputs.values(spec);
}

AttentionValues KernelRelationRunner::forward_appended(const Spec& spec, const Problem& problem,
                                                       const NewRows& rows) {
  const Attention attention(spec, {.device = device_, .kernels = kernels_, .append = true});
  const Outputs outputs(spec, problem.shape);
  ForwardTensors tensors = outputs.tensors(problem);
  tensors.k_new = rows.k_new;
  tensors.v_new = rows.v_new;
  const StagedCall staged(device_, tensors, problem.snippet);
  const Bindings bindings = attention.bind(staged.inputs());
  const StagedPlan plan(attention, verify::packed_shape(problem), *problem.sequences, bindings);
  ForwardTensors call = staged.tensors();
  attention.append({.k_new = *call.k_new, .v_new = *call.v_new}, call.k, call.v, &plan.plan(),
                   bindings);
  call.k_new.reset();
  call.v_new.reset();
  attention.forward(call, plan.plan(), bindings, {.scale = problem.scale});
  staged.copy_back();
  return outputs.values(spec);
}

RelationRunner::Merged KernelRelationRunner::forward_merged(const Spec& spec,
                                                            std::span<const Problem> problems) {
  const Attention attention(spec, {.device = device_, .kernels = kernels_, .merge = true});
  std::deque<Outputs> outputs;
  std::deque<StagedCall> staged;
  const auto stage = [&](const Problem& problem) -> const StagedCall& {
    const Outputs& own = outputs.emplace_back(spec, problem.shape);
    return staged.emplace_back(device_, own.tensors(problem), problem.snippet);
  };
  std::vector<Part> parts;
  std::deque<StagedPlan> plans;
  for (const Problem& problem : problems) {
    const StagedCall& call = stage(problem);
    const Bindings bindings = attention.bind(call.inputs());
    const StagedPlan& plan =
        plans.emplace_back(attention, verify::packed_shape(problem), *problem.sequences, bindings);
    attention.forward(call.tensors(), plan.plan(), bindings, {.scale = problem.scale});
    parts.push_back({.out = call.tensors().out, .lse = *call.tensors().lse});
  }
  const StagedCall& whole = stage(problems.front());
  attention.merge(parts, whole.tensors().out, whole.tensors().lse);
  for (const StagedCall& call : staged) call.copy_back();
  Merged merged{.whole = outputs.back().values(spec)};
  for (std::size_t i = 0; i < problems.size(); ++i) {
    merged.parts.push_back(outputs[i].values(spec));
  }
  return merged;
}

void KernelRelationRunner::backward(const FuzzCase& fuzz_case, const Problem& problem,
                                    CaseGradients& gradients) {
  const Attention attention(fuzz_case.spec, {.device = device_, .kernels = kernels_});
  const Written written(fuzz_case);
  run_kernels(attention, problem, written, fuzz_case.packing.is_bounded, false,
              {.gradients = &gradients, .deterministic = true});
}

std::vector<TacticSpec> KernelRelationRunner::tactics(const Spec& spec) {
  const Attention attention(spec, {.device = device_, .kernels = kernels_});
  Spec open = spec;
  open.tactic.reset();
  return different_tactics(open, attention.target(), {.masked = !spec.mask_mod.empty()});
}

Spec KernelRelationRunner::reread(const Spec& spec) {
  return spec_from_json(to_json(spec), "the spec as JSON");
}

}  // namespace tilewright::verify::fuzz
