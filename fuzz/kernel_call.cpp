#include "fuzz/kernel_call.hpp"

#include "base/activity.hpp"
#include "runtime/call/staged_backward.hpp"
#include "runtime/call/staged_call.hpp"
#include "verify/sequences.hpp"

namespace tilewright::verify::fuzz {
namespace {

ForwardOptions options_of(const Problem& problem) {
  if (problem.sequences) return {.scale = problem.scale};
  return {.q_offset = problem.shape.q_offset,
          .kv_offset = problem.shape.kv_offset,
          .scale = problem.scale,
          .splits = problem.splits};
}

void forward(const Attention& attention, const Problem& problem, const ForwardTensors& tensors,
             const Bindings& bindings, const KernelCall& call) {
  ForwardOptions options = options_of(problem);
  if (call.workspace) options.workspace = call.workspace->view();
  if (call.plan) {
    attention.forward(tensors, call.plan->plan(), bindings, options);
  } else if (call.mask) {
    attention.forward(tensors, *call.mask, bindings, options);
  } else {
    attention.forward(tensors, bindings, options);
  }
}

// @param shape  of a dense or a packed call
template <typename AnyShape>
void backward(const Attention& attention, const Problem& problem, const AnyShape& shape,
              const ForwardTensors& host, const StagedCall& forward, const Bindings& bindings,
              const KernelCall& call, const BackwardPart& part) {
  const StagedBackward staged(attention, shape, part.gradients->tensors(host), forward.tensors(),
                              part.gradients->buffers(), bindings, part.deterministic);
  const ForwardOptions given = options_of(problem);
  const BackwardOptions options = {.q_offset = given.q_offset,
                                   .kv_offset = given.kv_offset,
                                   .scale = given.scale,
                                   .deterministic = part.deterministic,
                                   .workspace = staged.workspace()};
  if (call.plan) {
    attention.backward(staged.tensors(), call.plan->plan(), bindings, staged.gradients(), options);
  } else if (call.mask) {
    attention.backward(staged.tensors(), *call.mask, bindings, staged.gradients(), options);
  } else {
    attention.backward(staged.tensors(), bindings, staged.gradients(), options);
  }
  staged.copy_back();
}

}  // namespace

PackedShape packed_shape(const Problem& problem, bool is_bounded) {
  PackedShape shape = verify::packed_shape(problem);
  if (!is_bounded) shape.max_q_len = shape.max_kv_len = 0;
  return shape;
}

KernelCall run_kernels(const Attention& attention, const Problem& problem, const Written& written,
                       bool is_bounded, bool is_split, const BackwardPart& part) {
  ForwardTensors tensors{
      .q = problem.q, .k = problem.k, .v = problem.v, .out = written.out_view(), .lse = {}};
  if (written.lse) tensors.lse = written.lse->view();
  if (written.max_scores) tensors.max_scores = written.max_scores->view();
  if (written.weights) tensors.weights = written.weights->view();
  const Activity activity("runs a call on",
                          attention.device().name() + ", " + attention.builds().front().kernel);
  const StagedCall staged(attention.device(), tensors, problem.snippet, GuardedTensor::kGuardBytes);
  const Bindings bindings = attention.bind(staged.inputs());
  KernelCall call;
  if (problem.sequences) {
    call.plan = std::make_unique<StagedPlan>(attention, packed_shape(problem, is_bounded),
                                             *problem.sequences, bindings,
                                             StagedPlan::OnFaults::refuse, wishes_of(problem));
  } else if (!attention.spec().mask_mod.empty()) {
    call.mask.emplace(
        attention.block_mask(problem.shape, bindings, {.transposed = part.gradients != nullptr}));
  }
  if (!problem.sequences && is_split) {
    call.workspace = std::make_unique<StagedWorkspace>(attention, problem.shape);
  }
  forward(attention, problem, staged.tensors(), bindings, call);
  staged.wait();
  if (part.gradients != nullptr && problem.sequences) {
    backward(attention, problem, packed_shape(problem, is_bounded), tensors, staged, bindings, call,
             part);
  } else if (part.gradients != nullptr) {
    backward(attention, problem, problem.shape, tensors, staged, bindings, call, part);
  }
  staged.copy_back();
  call.changed = staged.changed_input();
  if (!call.changed && call.workspace) call.changed = call.workspace->damage();
  if (!call.plan) return call;
  if (!call.changed) call.changed = call.plan->damage();
  call.map.emplace(call.plan->plan(), attention.spec().block);
  return call;
}

void forward_again(const Attention& attention, const Problem& problem,
                   const ForwardTensors& tensors, const KernelCall& call) {
  forward(attention, problem, tensors, attention.bind(problem.snippet), call);
}

}  // namespace tilewright::verify::fuzz
