#include "runtime/cuda/dense_decode.hpp"

#include <algorithm>
#include <limits>

#include "base/ceil_div.hpp"
#include "generator/tactic/decode_tactic.hpp"
#include "runtime/call/split_parts.hpp"
#include "runtime/cuda/call_mask.hpp"
#include "runtime/cuda/forward_choice.hpp"
#include "templates/abi/cuda_max_scores.hpp"

namespace tilewright::cuda {

static_assert(kDecodeRows == abi::kDecodeRows);

DenseDecode::DenseDecode(const Spec& spec, const Target& target, bool masked, std::int64_t blocks)
    : columns_(decode_columns(decode_tactic(spec, target))),
      block_columns_(spec.block[1]),
      value_dim_(spec.value_head_dim()),
      masked_(masked),
      blocks_(std::min<std::int64_t>(blocks, abi::kMostSplitBlocks)) {}

// As templates/cuda/decode/dense_items.hpp counts them. The block mask may tell heads apart.
DenseDecode::Units DenseDecode::units_of(const Shape& shape) const {
  if (!masked_) {
    const std::int64_t items = shape.batch * shape.num_kv_heads;
    return {items, items * ceil_div(shape.kv_len, columns_)};
  }
  const std::int64_t items = shape.batch * shape.num_q_heads;
  const std::int64_t tiles = ceil_div(shape.kv_len, block_columns_);
  return {items, items * (tiles * ceil_div(block_columns_, columns_) + 1)};
}

bool DenseDecode::serves(const Shape& shape) const {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  return fits_decode_rows(shape.q_len, shape.num_q_heads, shape.num_kv_heads) &&
         shape.batch * shape.num_q_heads <= kMost && units_of(shape).all <= kMost;
}

std::int64_t DenseDecode::workspace_bytes(const Shape& shape) const {
  if (!serves(shape)) return 0;
  const Units units = units_of(shape);
  if (units.all <= units.items) return 0;
  return abi::split_layout(std::min(blocks_, units.all), value_dim_).bytes;
}

abi::DecodeWork DenseDecode::work(const Shape& shape, std::byte* workspace,
                                  std::int64_t splits) const {
  const Units units = units_of(shape);
  abi::DecodeWork work = {};
  if (workspace == nullptr || splits == 1) {
    work.blocks = static_cast<int>(std::min(blocks_, units.items));
    work.keeps_items_whole = 1;
    return work;
  }
  work.blocks =
      static_cast<int>(blocks_for_splits(splits, units.items, std::min(blocks_, units.all)));
  const abi::SplitLayout layout = abi::split_layout(work.blocks, value_dim_);
  work.partial = reinterpret_cast<float*>(workspace + layout.partial);
  work.ends = reinterpret_cast<float*>(workspace + layout.ends);
  work.arrived = reinterpret_cast<unsigned*>(workspace);
  return work;
}

std::int64_t most_blocks_of_decode(const LaunchScope& on) {
  const Kernel& kernel = on.kernels.kernel(on.facts.variants.decode, kForwardEntry);
  return std::min(kernel.launch.blocks_per_sm * on.kernels.gpu().multiprocessors,
                  most_decode_blocks(on.spec));
}

void launch_dense_decode(const LaunchScope& on, const DenseDecode& decode, const ForwardCall& call,
                         const BlockMask* mask, const Bindings& bindings) {
  // The kernel: decode.cu.jinja.
  const KernelVariant variant = variant_for(on.facts.variants.decode, is_aligned(on.spec, call));
  const Kernel& kernel = on.kernels.kernel(variant, kForwardEntry);

  // The grid.
  const abi::DecodeWork work = decode.work(call.shape, call.workspace, call.splits);
  const LaunchConfig config = {.blocks = work.blocks,
                               .threads = kernel.launch.threads,
                               .shared_bytes = kernel.launch.shared_bytes,
                               .stream = call.stream,
                               .doing = "launching forward"};

  // The arguments. Kernels of specs without max_scores take the first part.
  const CallMask lists(on, mask);
  abi::cuda::WithMaxScores<abi::cuda::DecodeForwardArguments> arguments = {
      {{.q = tensor_argument(call.q),
        .k = tensor_argument(call.k),
        .v = tensor_argument(call.v),
        .out = tensor_argument(call.out),
        .lse = call.lse,
        .mask = lists.arguments(0),
        .scaling = plain_scaling(on.spec, call),
        .q_tiles = 0,
        .heads_in_group = 0,
        .whole_groups = 0,
        .launch = on.kernels.next_launch()},
       work},
      call.max_scores};
  SnippetParameter snippet(bindings.cuda_arguments(), call.shape);

  // The launch.
  launch_kernel(on.driver, kernel, config, arguments, snippet);
}

}  // namespace tilewright::cuda
