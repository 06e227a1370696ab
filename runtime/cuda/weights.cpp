#include "runtime/cuda/weights.hpp"

#include "runtime/cuda/call_mask.hpp"
#include "runtime/cuda/q_tile_grid.hpp"
#include "templates/abi/cuda_weights.hpp"

namespace tilewright::cuda {

void launch_weights(const LaunchScope& on, const ForwardCall& call, const BlockMask* mask,
                    const Bindings& bindings) {
  // The kernel: weights.cu.jinja.
  const KernelVariant variant = variant_for(on.facts.variants.weights, is_aligned(on.spec, call));
  const Kernel& kernel = on.kernels.kernel(variant, "tilewright_weights");

  // The grid.
  const CallMask lists(on, mask);
  const QTileGrid tiles = q_tile_grid(on, call.shape, kernel, mask);
  const LaunchConfig config = {.blocks = tiles.all,
                               .threads = kernel.launch.threads,
                               .shared_bytes = kernel.launch.shared_bytes,
                               .stream = call.stream,
                               .doing = "launching forward"};

  // The arguments. Scores stay in the units of score_mod.
  abi::cuda::WeightsArguments arguments = {
      {.q = tensor_argument(call.q),
       .k = tensor_argument(call.k),
       .v = tensor_argument(call.v),
       .out = tensor_argument(call.out),
       .lse = call.lse,
       .mask = lists.arguments(kernel.launch.q_tile),
       .scaling = {.factor = static_cast<float>(call.scale), .to_log2 = 0},
       .q_tiles = static_cast<int>(tiles.of_head),
       .heads_in_group = static_cast<int>(tiles.groups.heads),
       .whole_groups = static_cast<int>(tiles.groups.count),
       .launch = on.kernels.next_launch()},
      call.weights};
  SnippetParameter snippet(bindings.cuda_arguments(), call.shape);

  // The launch.
  launch_kernel(on.driver, kernel, config, arguments, snippet);
}

}  // namespace tilewright::cuda
