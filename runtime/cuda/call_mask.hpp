#pragma once

#include <cstdint>
#include <memory>

#include "launch_scope.hpp"
#include "tile_lists.hpp"

namespace tilewright::cuda {

/// The block mask of a call in the memory of its context. Must live until the launch stands in the
/// stream.
class CallMask {
 public:
  enum class Lists { by_rows, by_both };

  /// A mask made from lists, or in another context, is copied to this one at its first use.
  /// @param mask null: the call has none; outlives this object
  CallMask(const LaunchScope& on, const BlockMask* mask, Lists lists = Lists::by_rows);

  /// As kernels take them; zeros without a mask.
  /// @param q_tile as of mask_arguments
  abi::cuda::BlockMaskArguments arguments(std::int64_t q_tile) const;
  abi::cuda::BlockMaskArguments columns() const;

 private:
  const BlockMask* mask_;
  std::shared_ptr<const TileListMemory> lists_;
};

/// Rows of q of what forward works on in the order of cost: a block of the mask, or a q tile that
/// is greater.
std::int64_t ordered_rows(const LaunchScope& on);

}  // namespace tilewright::cuda
