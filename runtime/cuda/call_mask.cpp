#include "runtime/cuda/call_mask.hpp"

#include <algorithm>
#include <cstddef>

namespace tilewright::cuda {
namespace {

std::shared_ptr<TileListMemory> copied_lists(const LaunchScope& on, const HostTileLists& host,
                                             const BlockMask& mask, bool transposed) {
  const std::size_t tiles = host.lists.indices.size() + host.lists.full_indices.size();
  auto copy = std::make_shared<TileListMemory>(on.driver, on.context, mask.rows(), ordered_rows(on),
                                               nullptr);
  if (transposed) {
    copy->add_transposed(on.context, mask.batch() * mask.heads() * mask.kv_blocks(), nullptr);
  }
  copy->reserve_indices(on.context, static_cast<std::int64_t>(tiles), nullptr);
  copy->upload(host.lists, mask);
  if (transposed) copy->upload_transposed(mask.transposed());
  return copy;
}

std::shared_ptr<const DeviceTileLists> lists_of(const LaunchScope& on, const BlockMask& mask,
                                                CallMask::Lists lists) {
  const bool transposed = lists == CallMask::Lists::by_both;
  const auto copy = [&](const HostTileLists& host) {
    return copied_lists(on, host, mask, transposed);
  };
  const std::uint64_t context = on.context.id();
  return transposed ? MaskPlacement::transposed_on_device(mask, context, copy)
                    : MaskPlacement::on_device(mask, context, copy);
}

}  // namespace

CallMask::CallMask(const LaunchScope& on, const BlockMask* mask, Lists lists) : mask_(mask) {
  if (mask) lists_ = std::static_pointer_cast<const TileListMemory>(lists_of(on, *mask, lists));
}

abi::cuda::BlockMaskArguments CallMask::arguments(std::int64_t q_tile) const {
  if (!mask_) return {};
  return mask_arguments(*mask_, *lists_, q_tile);
}

abi::cuda::BlockMaskArguments CallMask::columns() const {
  if (!mask_) return {};
  return column_arguments(*mask_, *lists_);
}

std::int64_t ordered_rows(const LaunchScope& on) {
  const Kernel* forward = on.kernels.find(on.facts.variants.forward, kForwardEntry);
  return std::max(on.spec.block[0], forward ? forward->launch.q_tile : 0);
}

}  // namespace tilewright::cuda
