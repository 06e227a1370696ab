#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../../generator/spec/spec.hpp"
#include "../api/bindings.hpp"

namespace tilewright::parallel {

/// Elements of the rows in which shares are added up, 256 bytes.
inline constexpr std::int64_t kSummedWidth = 64;
inline constexpr std::int64_t kShareElement = sizeof(float);

/// The gradient of a buffer or scalar.
struct NamedGradient {
  std::string name;
  std::vector<std::int64_t> extents;  ///< of the bound tensor
  std::int64_t first = 0;             ///< element of a share
};

/// Some elements of a share.
struct Slice {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Gradients of buffers and scalars. Each rank has a share of them, f32, dense, one after another;
/// the gradient is the sum of all ranks' shares. Each rank adds up one slice of them and sends it
/// to the others, so that all have equal bits. Offsets are those in the workspace.
struct BufferGradients {
  std::vector<NamedGradient> named;  ///< in the order of gradient_names(spec)
  std::int64_t elements = 0;         ///< of a share, gaps between gradients included
  std::int64_t longest_slice = 0;
  std::int64_t part_offset = 0;      ///< what one call adds to the share
  std::int64_t share_offset = 0;     ///< this rank's, in the end the sum
  std::int64_t received_offset = 0;  ///< this rank's slice of each rank's share

  bool empty() const { return named.empty(); }
  Slice slice_of(int rank) const;
  std::int64_t share_bytes() const;
  std::int64_t received_bytes(int ranks) const;  ///< of the workspace
  /// What a rank sends to all others, and receives from them.
  std::int64_t bytes_sent(int rank, int ranks) const;
  std::int64_t bytes_received(int rank, int ranks) const;
};

/// Without offsets.
/// @param bindings whose buffers the spec declares
BufferGradients buffer_gradients(const Spec& spec, const Bindings& bindings, int ranks);

}  // namespace tilewright::parallel
