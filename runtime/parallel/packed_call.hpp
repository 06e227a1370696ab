#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "../api/attention.hpp"
#include "../api/context_parallel.hpp"
#include "packed_shards.hpp"

namespace tilewright::cuda {
class DeviceMemory;
}

namespace tilewright::parallel {

/// Some rows of one shard and some columns of another.
struct PackedBox {
  const PackedShard* rows;     ///< q_first and q_len count
  const PackedShard* columns;  ///< kv_first and kv_len count
  std::int64_t first_row = 0;  ///< within the shard
  std::int64_t row_count = 0;
  std::int64_t first_column = 0;
  std::int64_t column_count = 0;
};

/// A packed call over a box, with the plan of its sequences and the memory of both. A sequence that
/// has no rows or no columns in the box keeps its number.
class PackedCall {
 public:
  /// Waits for the plan.
  /// @param whole completed
  PackedCall(const Attention& attention, const SharedSequences& whole, const PackedBox& box,
             const Bindings& bindings, bool backward, Stream stream);
  PackedCall(PackedCall&&) noexcept;
  PackedCall& operator=(PackedCall&&) noexcept;
  ~PackedCall();

  const PackedShape& shape() const { return shape_; }
  const Plan& plan() const { return *plan_; }

 private:
  TensorView memory_of(const Device& device, std::int64_t bytes);

  PackedShape shape_;
  Tensor on_host_;
  std::unique_ptr<cuda::DeviceMemory> on_gpu_;
  std::optional<Plan> plan_;
};

}  // namespace tilewright::parallel
