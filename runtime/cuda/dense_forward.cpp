#include "runtime/cuda/dense_forward.hpp"

#include "runtime/cuda/call_mask.hpp"
#include "runtime/cuda/forward_choice.hpp"
#include "runtime/cuda/q_tile_grid.hpp"
#include "runtime/cuda/split_forward.hpp"
#include "runtime/cuda/tensor_maps.hpp"
#include "templates/abi/cuda_max_scores.hpp"
#include "templates/abi/cuda_splits.hpp"

namespace tilewright::cuda {

void launch_dense_forward(const LaunchScope& on, const ForwardCall& call, const BlockMask* mask,
                          const Bindings& bindings) {
  // The kernel: hopper_forward.cu.jinja, which takes tensor maps, or portable_forward.cu.jinja.
  const ForwardChoice unsplit = choose_forward(on, call, bindings);
  const bool may_split = call.workspace != nullptr && unsplit.takes_maps();
  const DenseSplit split = may_split ? dense_split(on, call.shape, call.splits) : DenseSplit();
  const ForwardChoice choice = split.parts > 1 ? split_twin(on, unsplit) : unsplit;
  const Kernel& kernel = choice.kernel;

  // The grid.
  const CallMask lists(on, mask);
  const QTileGrid tiles = q_tile_grid(on, call.shape, kernel, mask);
  const LaunchConfig config = {.blocks = blocks_for(on, kernel, tiles.all * split.parts),
                               .threads = kernel.launch.threads,
                               .shared_bytes = kernel.launch.shared_bytes,
                               .stream = call.stream,
                               .doing = "launching forward"};

  // The arguments. Kernels of specs without max_scores take the first part.
  const abi::cuda::ForwardArguments plain = {.q = tensor_argument(call.q),
                                             .k = tensor_argument(call.k),
                                             .v = tensor_argument(call.v),
                                             .out = tensor_argument(call.out),
                                             .lse = call.lse,
                                             .mask = lists.arguments(kernel.launch.q_tile),
                                             .scaling = choice.scaling,
                                             .q_tiles = static_cast<int>(tiles.of_head),
                                             .heads_in_group = static_cast<int>(tiles.groups.heads),
                                             .whole_groups = static_cast<int>(tiles.groups.count),
                                             .launch = on.kernels.next_launch()};
  abi::cuda::WithMaxScores<abi::cuda::ForwardArguments> arguments = {plain, call.max_scores};
  SnippetParameter snippet(bindings.cuda_arguments(), call.shape);

  // The launch.
  if (!choice.takes_maps()) return launch_kernel(on.driver, kernel, config, arguments, snippet);
  ForwardMaps maps;  // of which dense kernels take the first part
  make_tensor_maps(on.driver, on.spec, call, kernel.launch.kv_box_rows, maps);
  if (split.parts == 1) return launch_kernel(on.driver, kernel, config, arguments, maps, snippet);
  abi::cuda::WithMaxScores<abi::cuda::WithSplits<abi::cuda::ForwardArguments>> of_parts = {
      {plain, split.work(call.workspace)}, call.max_scores};
  launch_kernel(on.driver, kernel, config, of_parts, maps, snippet);
}

}  // namespace tilewright::cuda
