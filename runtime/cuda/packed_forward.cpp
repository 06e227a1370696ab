#include "runtime/cuda/packed_forward.hpp"

#include "runtime/cuda/forward_choice.hpp"
#include "runtime/cuda/head_groups.hpp"
#include "runtime/cuda/plan.hpp"
#include "runtime/cuda/q_tile_grid.hpp"
#include "runtime/cuda/tensor_maps.hpp"
#include "templates/abi/cuda_max_scores.hpp"
#include "templates/abi/cuda_splits.hpp"

namespace tilewright::cuda {
namespace {

namespace cuda_abi = tilewright::abi::cuda;

abi::SplitWork split_work(const PlanState& plan) {
  const PlanGeometry& geometry = plan.geometry;
  return {.partial = reinterpret_cast<float*>(plan.memory + geometry.split_partial),
          .arrived = reinterpret_cast<unsigned*>(plan.memory + geometry.layout.split_arrived),
          .parts = plan.split_parts(),
          .reserved = 0};
}

abi::SequencePages pages_of(const LaunchScope& on, const ForwardCall& call, const PlanState& plan) {
  abi::SequencePages pages = plan.pages();
  const std::int64_t kv_tile =
      on.kernels.kernel(on.facts.variants.forward, kForwardEntry).launch.kv_box_rows;
  if (on.spec.is_paged() && kv_tile > 0) pages.box_shift = page_box_shift(call.page_size, kv_tile);
  return pages;
}

// What both kernels take, but for the scaling of those that take tensor maps. SnippetArguments has
// the totals as lengths.
cuda_abi::PackedForwardArguments packed_arguments(const LaunchScope& on, const ForwardCall& call,
                                                  const PlanState& plan) {
  const PackedGroups groups = packed_groups(on.spec, call.shape, on.kernels.gpu().l2_bytes);
  return {{.q = tensor_argument(call.q),
           .k = tensor_argument(call.k),
           .v = tensor_argument(call.v),
           .out = tensor_argument(call.out),
           .lse = call.lse,
           .mask = {},
           .scaling = plain_scaling(on.spec, call),
           .q_tiles = 0,
           .heads_in_group = static_cast<int>(groups.heads),
           .whole_groups = 0,
           .launch = on.kernels.next_launch()},
          plan_arguments(plan)};
}

// Appends what a launch's kernel takes after the plan's arguments. Those of specs without
// max_scores take all but the last.
template <typename Arguments, typename... Others>
void launch_with(const LaunchScope& on, const Kernel& kernel, const LaunchConfig& config,
                 const ForwardCall& call, const abi::SplitWork& splits, const Arguments& arguments,
                 Others&... others) {
  if (kernel.variant.split) {
    cuda_abi::WithMaxScores<cuda_abi::WithSplits<Arguments>> all = {{arguments, splits},
                                                                    call.max_scores};
    return launch_kernel(on.driver, kernel, config, all, others...);
  }
  cuda_abi::WithMaxScores<Arguments> all = {arguments, call.max_scores};
  launch_kernel(on.driver, kernel, config, all, others...);
}

// Kernels for kv_new take the new rows too.
template <typename... Others>
void launch_packed(const LaunchScope& on, const Kernel& kernel, const LaunchConfig& config,
                   const ForwardCall& call, const abi::SplitWork& splits,
                   const cuda_abi::PackedForwardArguments& arguments, Others&... others) {
  if (!on.spec.kv_new) return launch_with(on, kernel, config, call, splits, arguments, others...);
  const cuda_abi::NewRowsForwardArguments with_new = {arguments, tensor_argument(call.k_new),
                                                      tensor_argument(call.v_new)};
  launch_with(on, kernel, config, call, splits, with_new, others...);
}

void launch_packed_decode(const LaunchScope& on, const ForwardCall& call, const PlanState& plan,
                          const cuda_abi::PackedForwardArguments& arguments,
                          SnippetParameter& snippet) {
  // The kernel: decode.cu.jinja.
  const KernelVariant variant = variant_for(on.facts.variants.decode, is_aligned(on.spec, call));
  const Kernel& kernel = on.kernels.kernel(variant, kForwardEntry);

  // The grid: the blocks share what the plan has for them.
  const LaunchConfig config = {.blocks = plan.decode_blocks(),
                               .threads = kernel.launch.threads,
                               .shared_bytes = kernel.launch.shared_bytes,
                               .stream = call.stream,
                               .doing = "launching forward"};

  // The launch.
  launch_packed(on, kernel, config, call, {}, arguments, snippet);
}

// How prefill is launched: the kernel, and its items.
struct PrefillChoice {
  ForwardChoice choice;
  std::int64_t items;
};

PrefillChoice choose_prefill(const LaunchScope& on, const ForwardCall& call, const PlanState& plan,
                             const Bindings& bindings) {
  const ForwardChoice usual = choose_forward(on, call, bindings);
  const std::int64_t heads = plan.resident_heads();
  if (usual.takes_maps() && heads > 0) {
    return {resident_twin(on, usual), plan.shape.batch * (call.shape.num_q_heads / heads)};
  }
  const std::int64_t parts = plan.split_parts();
  const bool splits = usual.takes_maps() && parts > 1;
  const ForwardChoice choice = splits ? split_twin(on, usual) : usual;
  const std::int64_t of_head =
      std::int64_t{plan.geometry.rows} * (on.facts.plan_work_side / choice.kernel.launch.q_tile);
  const std::int64_t q_tiles = launchable_q_tiles(of_head * call.shape.num_q_heads);
  return {choice, splits ? q_tiles * parts : q_tiles};
}

void launch_prefill(const LaunchScope& on, const ForwardCall& call, const PlanState& plan,
                    const Bindings& bindings, cuda_abi::PackedForwardArguments& arguments,
                    SnippetParameter& snippet) {
  // The kernel: hopper_forward.cu.jinja, which takes tensor maps, or portable_forward.cu.jinja.
  const auto [choice, items] = choose_prefill(on, call, plan, bindings);
  const Kernel& kernel = choice.kernel;
  arguments.scaling = choice.scaling;
  if (kernel.variant.resident) arguments.heads_in_group = plan.resident_heads();

  // The grid: q tiles of the plan's work, parts of them, or sequences and heads of k and v.
  const LaunchConfig config = {.blocks = blocks_for(on, kernel, items),
                               .threads = kernel.launch.threads,
                               .shared_bytes = kernel.launch.shared_bytes,
                               .stream = call.stream,
                               .doing = "launching forward"};

  // The launch.
  if (!choice.takes_maps()) return launch_packed(on, kernel, config, call, {}, arguments, snippet);
  ForwardMaps maps;  // of which calls without pages take the first part
  make_tensor_maps(on.driver, on.spec, call, kernel.launch.kv_box_rows, maps);
  launch_packed(on, kernel, config, call, split_work(plan), arguments, maps, snippet);
}

}  // namespace

ResidentLaunch resident_launch(const LaunchScope& on) {
  const Kernel* const kernel = on.kernels.find(on.facts.variants.resident, kForwardEntry);
  if (!kernel) return {};
  return {.multiprocessors = on.kernels.gpu().multiprocessors,
          .kv_rows = kernel->launch.resident_rows};
}

void launch_packed_forward(const LaunchScope& on, const ForwardCall& call, const PlanState& plan,
                           const Bindings& bindings) {
  cuda_abi::PackedForwardArguments arguments = packed_arguments(on, call, plan);
  SnippetParameter snippet(bindings.cuda_arguments(), call.shape, pages_of(on, call, plan));
  if (plan.geometry.decode_blocks > 0) launch_packed_decode(on, call, plan, arguments, snippet);
  if (!plan.decodes_all()) launch_prefill(on, call, plan, bindings, arguments, snippet);
}

}  // namespace tilewright::cuda
