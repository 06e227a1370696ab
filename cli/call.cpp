#include "cli/call.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/kernels.hpp"
#include "cli/mask_lists.hpp"
#include "generator/tactic/tactic.hpp"
#include "runtime/api/decode_gain.hpp"
#include "runtime/api/safetensors.hpp"
#include "runtime/call/staged_backward.hpp"
#include "runtime/call/staged_call.hpp"
#include "runtime/call/staged_plan.hpp"
#include "runtime/call/staged_workspace.hpp"
#include "verify/sequences.hpp"

namespace tilewright::cli {
namespace {

// Kernels are made side by side, so the slowest one is what a step takes.
double slowest(const std::vector<KernelBuild>& builds, double KernelBuild::*step) {
  double ms = 0;
  for (const KernelBuild& build : builds) ms = std::max(ms, build.*step);
  return ms;
}

Json to_json(const KernelBuild& build) {
  return {{"name", build.kernel},         {"source", build.source},
          {"render_ms", build.render_ms}, {"compile_ms", build.compile_ms},
          {"load_ms", build.load_ms},     {"bytes", build.bytes},
          {"names", build.names}};
}

Json shape_json(const CallInputs& inputs) {
  const Shape& shape = inputs.shape();
  if (inputs.is_packed()) {
    const PackedShape packed = verify::packed_shape(inputs.problem());
    Json json = {{"batch", packed.batch},
                 {"num_q_heads", packed.num_q_heads},
                 {"num_kv_heads", packed.num_kv_heads},
                 {"total_q", packed.total_q},
                 {"total_kv", packed.total_kv},
                 {"max_q_len", packed.max_q_len},
                 {"max_kv_len", packed.max_kv_len}};
    if (packed.page_size > 0) json["page_size"] = packed.page_size;
    return json;
  }
  return {{"batch", shape.batch},
          {"num_q_heads", shape.num_q_heads},
          {"num_kv_heads", shape.num_kv_heads},
          {"q_len", shape.q_len},
          {"kv_len", shape.kv_len},
          {"q_offset", shape.q_offset},
          {"kv_offset", shape.kv_offset}};
}

Json mask_json(const BlockMask& mask) {
  return {{"partial", mask.partial_tiles()},
          {"full", mask.full_tiles()},
          {"empty", mask.empty_tiles()},
          {"density", mask.density()},
          {"path", mask.path()}};
}

Json map_json(const PlanMap& map, const std::string& path) {
  const PlanMap::Counts counts = map.counts();
  return {{"partial", counts.partial},
          {"full", counts.full},
          {"empty", counts.empty},
          {"density", counts.density()},
          {"path", path}};
}

// Of a block mask or a plan; null where every tile is visited.
Json tiles_json(const Call& call) {
  if (call.mask) return mask_json(*call.mask);
  if (call.plan_map && call.plan_map->has_tiles()) return map_json(*call.plan_map, call.plan_path);
  return {};
}

std::string tiles_line(const Call& call) {
  constexpr const char* kLine = "{:<9} {:<10} partial {}, full {}, empty {} tiles\n";
  if (call.mask) {
    return fmt::format(kLine, "mask", format_ms(call.mask_ms), call.mask->partial_tiles(),
                       call.mask->full_tiles(), call.mask->empty_tiles());
  }
  if (!call.plan_map) return {};
  if (!call.plan_map->has_tiles()) return fmt::format("plan      {}\n", format_ms(call.mask_ms));
  const PlanMap::Counts counts = call.plan_map->counts();
  return fmt::format(kLine, "plan", format_ms(call.mask_ms), counts.partial, counts.full,
                     counts.empty);
}

// The plan's report has no more than this to say where no value was clamped.
std::string unplanned_line(const Call& call, const CallInputs& inputs) {
  if (call.unplanned_rows == 0) return {};
  return fmt::format("note      q_begin ends at {}, and q has {} rows\n",
                     inputs.shape().q_len - call.unplanned_rows, inputs.shape().q_len);
}

// Calls backward, by `backward(tensors, gradients, options)`.
template <typename AnyShape, typename Backward>
void run_backward(const Attention& attention, const AnyShape& shape, const StagedCall& forward,
                  const Bindings& bindings, CallInputs& inputs, bool deterministic, Call& call,
                  const Backward& backward) {
  const CallGradients& gradients = *inputs.gradients();
  const StagedBackward staged(attention, shape, gradients.tensors(inputs.tensors()),
                              forward.tensors(), gradients.buffers(), bindings, deterministic);
  const ForwardOptions given = inputs.options();
  const BackwardOptions options = {.q_offset = given.q_offset,
                                   .kv_offset = given.kv_offset,
                                   .scale = given.scale,
                                   .deterministic = deterministic,
                                   .workspace = staged.workspace()};
  const Stopwatch watch;
  backward(staged.tensors(), staged.gradients(), options);
  staged.wait();
  call.backward_ms = watch.ms();
  staged.copy_back();
}

void run_dense_backward(const Attention& attention, const StagedCall& staged, CallInputs& inputs,
                        const Bindings& bindings, bool deterministic, Call& call) {
  if (call.mask && !call.mask->has_transposed()) static_cast<void>(call.mask->transposed());
  run_backward(attention, inputs.shape(), staged, bindings, inputs, deterministic, call,
               [&](const BackwardTensors& tensors, const GradientBuffers& gradients,
                   const BackwardOptions& options) {
                 if (!call.mask) return attention.backward(tensors, bindings, gradients, options);
                 attention.backward(tensors, *call.mask, bindings, gradients, options);
               });
}

void run_packed(const Attention& attention, const StagedCall& staged, CallInputs& inputs,
                const Bindings& bindings, const std::string& mask_file, bool deterministic,
                Call& call) {
  const Stopwatch plan_watch;
  std::optional<BlockMask> positions;
  if (!mask_file.empty()) {
    positions = read_positions(mask_file, attention, inputs.shape().num_q_heads, bindings);
  }
  const PackedShape shape = verify::packed_shape(inputs.problem());
  PlanWishes wishes = verify::wishes_of(inputs.problem());
  if (positions) wishes.positions = &*positions;
  const StagedPlan plan(attention, shape, *inputs.problem().sequences, bindings,
                        StagedPlan::OnFaults::refuse, wishes);
  call.mask_ms = plan_watch.ms();
  call.unplanned_rows = plan.plan().report().unplanned_rows;
  const Stopwatch watch;
  attention.forward(staged.tensors(), plan.plan(), bindings, inputs.options());
  staged.wait();
  call.forward_ms = watch.ms();
  call.plan_map.emplace(plan.plan(), attention.spec().block);
  if (inputs.gradients() == nullptr) return;
  run_backward(attention, shape, staged, bindings, inputs, deterministic, call,
               [&](const BackwardTensors& tensors, const GradientBuffers& gradients,
                   const BackwardOptions& options) {
                 attention.backward(tensors, plan.plan(), bindings, gradients, options);
               });
}

void run_dense(const Attention& attention, const StagedCall& staged, const CallInputs& inputs,
               const Bindings& bindings, const std::string& mask_file, Call& call) {
  if (!attention.spec().mask_mod.empty() || !mask_file.empty()) {
    const Stopwatch watch;
    call.mask = mask_file.empty()
                    ? attention.block_mask(inputs.shape(), bindings,
                                           {.transposed = inputs.gradients() != nullptr})
                    : read_mask(mask_file, attention, inputs.shape(), bindings);
    call.mask_ms = watch.ms();
  }
  const StagedWorkspace workspace(attention, inputs.shape());
  ForwardOptions options = inputs.options();
  options.workspace = workspace.view();
  const Stopwatch watch;
  if (call.mask) {
    attention.forward(staged.tensors(), *call.mask, bindings, options);
  } else {
    attention.forward(staged.tensors(), bindings, options);
  }
  staged.wait();
  call.forward_ms = watch.ms();
}

std::string compile_line(const std::vector<KernelBuild>& builds) {
  const double ms = slowest(builds, &KernelBuild::compile_ms);
  std::string kernels;
  for (const KernelBuild& build : builds) {
    kernels += fmt::format("{}{} ({}, {})", kernels.empty() ? "" : ", ", build.kernel,
                           build.source == "built" ? "compiled" : "from " + build.source,
                           format_bytes(build.bytes));
  }
  return fmt::format("compile   {:<10} {}\n", ms > 0 ? format_ms(ms) : "-", kernels);
}

Json times_json(const Call& call) {
  Json times = {{"inputs", call.inputs_ms},
                {"render", slowest(call.builds, &KernelBuild::render_ms)},
                {"compile", slowest(call.builds, &KernelBuild::compile_ms)},
                {"load", slowest(call.builds, &KernelBuild::load_ms)},
                {"prepare", call.prepare_ms},
                {"mask", call.mask_ms},
                {"forward", call.forward_ms}};
  if (call.backward_ms) times["backward"] = *call.backward_ms;
  times["write"] = call.write_ms;
  return times;
}

}  // namespace

std::string plan_path(const std::vector<KernelBuild>& builds) {
  for (const KernelBuild& build : builds) {
    if (build.kernel.starts_with("plan_")) return build.kernel.substr(5);
  }
  return {};
}

Toolchain command_line_toolchain() {
  Toolchain toolchain;
  toolchain.diagnostics = diagnostics_to_stderr();
  return toolchain;
}

Call run_call(const Spec& spec, const Device& device, CallInputs& inputs,
              const std::string& mask_file, bool deterministic) {
  Call call{.spec_name = spec.name, .device = device.name()};
  const Stopwatch prepare;
  const Attention attention(spec, {.device = device,
                                   .kernels = command_line_toolchain(),
                                   .takes_block_mask = !mask_file.empty(),
                                   .decode = gains_from_decode(spec, inputs.shape(), device)});
  call.prepare_ms = prepare.ms();
  call.target = attention.target().name();
  call.builds = attention.builds();
  const KernelVariant kernel = kernel_of_calls(attention, inputs.shape());
  call.kernel = kernel.name();
  call.tactic = choose_tactic(attention.spec(), attention.target(), kernel).describe();
  const StagedCall staged(device, inputs.tensors(), inputs.problem().snippet);
  const Bindings bindings = attention.bind(staged.inputs());
  if (inputs.is_packed()) {
    call.plan_path = mask_file.empty() ? plan_path(call.builds) : "lists";
    run_packed(attention, staged, inputs, bindings, mask_file, deterministic, call);
  } else {
    run_dense(attention, staged, inputs, bindings, mask_file, call);
    if (inputs.gradients() != nullptr) {
      run_dense_backward(attention, staged, inputs, bindings, deterministic, call);
    }
  }
  staged.copy_back();
  return call;
}

void write_outputs(const CallInputs& inputs, const std::string& path) {
  std::map<std::string, TensorView> tensors = {{"out", inputs.out().view()}};
  if (inputs.lse()) tensors.emplace("lse", inputs.lse()->view());
  if (inputs.max_scores()) tensors.emplace("max_scores", inputs.max_scores()->view());
  if (inputs.weights()) tensors.emplace("weights", inputs.weights()->view());
  if (inputs.gradients() != nullptr) tensors.merge(inputs.gradients()->outputs());
  write_safetensors(path, tensors);
}

Json to_json(const Call& call, const CallInputs& inputs) {
  Json kernels = Json::array();
  for (const KernelBuild& build : call.builds) kernels.push_back(to_json(build));
  return {{"spec", call.spec_name}, {"device", call.device},    {"target", call.target},
          {"kernel", call.kernel},  {"tactic", call.tactic},    {"shape", shape_json(inputs)},
          {"kernels", kernels},     {"mask", tiles_json(call)}, {"times_ms", times_json(call)}};
}

std::string describe_kernels(const std::vector<KernelBuild>& builds) {
  return fmt::format("render    {}\n", format_ms(slowest(builds, &KernelBuild::render_ms))) +
         compile_line(builds) +
         fmt::format("load      {}\n", format_ms(slowest(builds, &KernelBuild::load_ms)));
}

std::string describe(const Call& call, const CallInputs& inputs) {
  std::string text =
      fmt::format("{} on {} ({}): {}\n", call.spec_name.empty() ? "the spec" : call.spec_name,
                  call.device, call.tactic, inputs.describe());
  text += fmt::format("inputs    {}\n", format_ms(call.inputs_ms));
  text += describe_kernels(call.builds);
  text += tiles_line(call) + unplanned_line(call, inputs);
  text += fmt::format("forward   {}\n", format_ms(call.forward_ms));
  if (call.backward_ms) text += fmt::format("backward  {}\n", format_ms(*call.backward_ms));
  if (call.write_ms > 0) text += fmt::format("write     {}\n", format_ms(call.write_ms));
  return text;
}

}  // namespace tilewright::cli
