#include "verify/outputs.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

#include "runtime/call/staged_call.hpp"

namespace tilewright::verify {
namespace {

std::array<std::int64_t, 4> out_shape(const Spec& spec, const Shape& shape) {
  return spec.layout == Layout::bhsd
             ? std::array{shape.batch, shape.num_q_heads, shape.q_len, spec.value_head_dim()}
             : std::array{shape.batch, shape.q_len, shape.num_q_heads, spec.value_head_dim()};
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
  if (!spec.outputs.lse) return;
  // Contiguous wherever out lies.
  const std::array extents{shape.batch, shape.num_q_heads, shape.q_len};
  lse_.emplace(DType::f32, extents);
}

ForwardTensors Outputs::tensors(const Problem& problem) const {
  ForwardTensors tensors{
      .q = problem.q, .k = problem.k, .v = problem.v, .out = out_.view(), .lse = {}};
  if (lse_) tensors.lse = lse_->view();
  return tensors;
}

AttentionValues Outputs::values(const Spec& spec) const {
  AttentionValues values{.out = read_values(out_.view(), spec.layout), .lse = {}};
  if (lse_) values.lse = read_lse(lse_->view());
  return values;
}

std::optional<std::string> Outputs::damage() const {
  if (const auto found = out_.damage()) return "memory around out was written to: " + *found;
  if (!lse_) return std::nullopt;
  if (const auto found = lse_->damage()) return "memory around lse was written to: " + *found;
  return std::nullopt;
}

std::optional<BlockMask> run_call(const Attention& attention, const Problem& problem,
                                  const Outputs& outputs, CallFacts* facts) {
  const StagedCall staged(attention.device(), outputs.tensors(problem), problem.snippet,
                          GuardedTensor::kGuardBytes);
  const Bindings bindings = attention.bind(staged.inputs());
  const ForwardOptions call{.q_offset = problem.shape.q_offset,
                            .kv_offset = problem.shape.kv_offset,
                            .scale = problem.scale};
  CallFacts taken;
  std::optional<BlockMask> mask;
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
  staged.copy_back();
  if (facts) {
    taken.changed_input = staged.changed_input();
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
