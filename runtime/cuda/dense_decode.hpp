#pragma once

#include <cstddef>
#include <cstdint>

#include "../../generator/spec/spec.hpp"
#include "../../generator/spec/target.hpp"
#include "../../templates/abi/cuda_decode.hpp"
#include "../api/shape.hpp"
#include "launch_scope.hpp"

namespace tilewright::cuda {

/// What the host decides of dense calls that a decode kernel serves.
class DenseDecode {
 public:
  /// @param masked whether calls have block masks
  /// @param blocks of threads that the GPU runs at once
  DenseDecode(const Spec& spec, const Target& target, bool masked, std::int64_t blocks);

  /// Whether the kernel serves calls of this shape: their rows of q, with all query heads of a head
  /// of k and v, fit one tile.
  bool serves(const Shape& shape) const;

  /// Bytes of workspace that a call needs to be split over its columns; 0 where it is not decoded,
  /// or has nothing to split.
  std::int64_t workspace_bytes(const Shape& shape) const;

  /// The work of a call that is served.
  /// @param workspace of workspace_bytes(shape); null: each head stays with one block of threads
  /// @param splits ForwardOptions::splits
  abi::DecodeWork work(const Shape& shape, std::byte* workspace, std::int64_t splits) const;

 private:
  struct Units {
    std::int64_t items;
    std::int64_t all;  ///< at most
  };
  Units units_of(const Shape& shape) const;

  std::int64_t columns_;        // of a unit
  std::int64_t block_columns_;  // of a tile of the block mask
  std::int64_t value_dim_;
  bool masked_;
  std::int64_t blocks_;
};

/// Blocks of threads of the decode kernel that the GPU runs at once.
std::int64_t most_blocks_of_decode(const LaunchScope& on);

/// Launches decode for a dense call that `decode` serves.
/// @param mask null: the call has none
void launch_dense_decode(const LaunchScope& on, const DenseDecode& decode, const ForwardCall& call,
                         const BlockMask* mask, const Bindings& bindings);

}  // namespace tilewright::cuda
