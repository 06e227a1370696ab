#include "runtime/cuda/plan.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"
#include "runtime/call/forward_call.hpp"
#include "runtime/cuda/call_mask.hpp"
#include "runtime/cuda/head_groups.hpp"

namespace tilewright::cuda {
namespace {

// How the tiles of a plan are shared, as abi::cuda::PlanKernelArguments says.
struct PlanGrid {
  std::int64_t blocks_of_list;
  std::int64_t warps_of_sequence;
  std::int64_t parts_of_span;
};

PlanGrid plan_grid(const PlanState& plan) {
  constexpr std::int64_t kWarps = abi::cuda::kPlanThreads / 32;  // each decides a span at a time
  // About as many as a GPU's multiprocessors take at once: more would only come later.
  constexpr std::int64_t kMostBlocks = 256;
  const PlanGeometry& geometry = plan.geometry;
  const std::int64_t spans = std::int64_t{geometry.rows} * geometry.spans_of_row;  // of a list
  const std::int64_t most = std::max<std::int64_t>(1, kMostBlocks / geometry.heads);
  std::int64_t parts = 1;
  while (!plan.positions && parts < 4 && 2 * parts * spans <= most * kWarps) parts *= 2;
  const std::int64_t blocks = std::clamp<std::int64_t>(ceil_div(spans * parts, kWarps), 1, most);
  return {.blocks_of_list = blocks,
          .warps_of_sequence = std::max<std::int64_t>(1, blocks * kWarps / plan.shape.batch),
          .parts_of_span = parts};
}

// Of plan_proved, or of plan_exact, which serves where the former does not compile.
const Kernel& plan_kernel(const ContextKernels& kernels) {
  constexpr std::string_view kEntry = "tilewright_plan";
  const Kernel* const proved = kernels.find({.role = KernelRole::plan_proved}, kEntry);
  return proved ? *proved : kernels.kernel({.role = KernelRole::plan_exact}, kEntry);
}

// The plan's header, whatever the memory held.
void clear_once(const Driver& driver, PlanState& plan, Stream stream) {
  if (!plan.was_built) {
    driver.check(driver.functions().fill_bytes(
                     device_pointer(plan.memory), 0,
                     static_cast<std::size_t>(plan.geometry.layout.sequences), stream),
                 "clearing a plan");
  }
  plan.was_built = true;
}

void read_back(const Driver& driver, int ordinal, const std::byte* from, Stream stream, void* to,
               std::size_t bytes) {
  const ContextScope scope(driver, ordinal);
  driver.check(driver.functions().copy_to_host(to, device_pointer(from), bytes, stream),
               "reading a plan");
  driver.check(driver.functions().stream_synchronize(stream), "reading a plan");
}

}  // namespace

abi::cuda::PlanArguments plan_arguments(const PlanState& plan) {
  const PlanGeometry& geometry = plan.geometry;
  std::byte* const memory = plan.memory;
  const abi::DecodeLayout& decode = geometry.decode;
  return {.header = reinterpret_cast<abi::PlanHeader*>(memory),
          .sequences = reinterpret_cast<abi::PlannedSequence*>(memory + geometry.layout.sequences),
          .map = {.spans = reinterpret_cast<abi::TileSpan*>(memory + geometry.layout.spans),
                  .heads = geometry.heads,
                  .rows = geometry.rows,
                  .spans_of_row = geometry.spans_of_row},
          .work = reinterpret_cast<abi::PlannedRow*>(memory + geometry.layout.work),
          .batch = static_cast<int>(plan.shape.batch),
          .reserved = 0,
          .decode = {.units_before = reinterpret_cast<int*>(memory + decode.units_before),
                     .partial = reinterpret_cast<float*>(memory + decode.partial),
                     .ends = reinterpret_cast<float*>(memory + decode.ends),
                     .arrived = reinterpret_cast<unsigned*>(memory + decode.arrived),
                     .lists = geometry.decode_lists,
                     .blocks = plan.decode_blocks(),
                     .keeps_items_whole = plan.keeps_items_whole() ? 1 : 0,
                     .reserved = 0}};
}

void launch_plan(const LaunchScope& on, PlanState& plan, const Bindings& bindings,
                 tilewright::Stream stream) {
  // The kernel: plan.cu.jinja.
  const Kernel& kernel = plan_kernel(on.kernels);

  // The grid.
  const PlanGeometry& geometry = plan.geometry;
  const PlanGrid grid = plan_grid(plan);
  const LaunchConfig config = {.blocks = grid.blocks_of_list * geometry.heads,
                               .threads = abi::cuda::kPlanThreads,
                               .stream = stream,
                               .doing = "launching a plan's kernel"};

  // The arguments.
  const CallMask positions(on, plan.positions ? &*plan.positions : nullptr);
  const Shape shape = shape_of_totals(plan.shape);
  const PackedGroups groups = packed_groups(on.spec, shape, on.kernels.gpu().l2_bytes);
  abi::cuda::PlanKernelArguments arguments = {
      .plan = plan_arguments(plan),
      .arrivals = reinterpret_cast<unsigned*>(plan.memory + geometry.layout.arrivals),
      .tensors = plan.tensors(),
      .bounds = plan.bounds(),
      .blocks_of_list = static_cast<int>(grid.blocks_of_list),
      .warps_of_sequence = static_cast<int>(grid.warps_of_sequence),
      .parts_of_span = static_cast<int>(grid.parts_of_span),
      .kv_rows_of_group = static_cast<int>(groups.kv_rows),
      .groups = static_cast<int>(groups.sequences),
      .reserved = 0,
      .positions = positions.arguments(0),
      .tables = {}};
  SnippetParameter snippet(bindings.cuda_arguments(), shape, plan.pages());

  // The launch.
  clear_once(on.driver, plan, static_cast<Stream>(stream));
  launch_kernel(on.driver, kernel, config, arguments, snippet);
  plan.read = [&driver = on.driver, ordinal = on.facts.ordinal, memory = plan.memory,
               stream = static_cast<Stream>(stream)](void* to, std::size_t offset,
                                                     std::size_t bytes) {
    read_back(driver, ordinal, memory + offset, stream, to, bytes);
  };
}

}  // namespace tilewright::cuda
