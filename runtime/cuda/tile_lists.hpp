#pragma once

#include "../../templates/abi/cuda.hpp"
#include "../block_mask.hpp"
#include "memory.hpp"

namespace tilewright::cuda {

/// How many tiles there are of each kind.
struct TileCounts {
  long long partial = 0;
  long long full = 0;
};

/// A block mask's lists in a context's memory.
class TileListMemory final : public DeviceTileLists {
 public:
  /// Makes room for row offsets and the order of rows, in the stream's order.
  TileListMemory(const Driver& driver, const ContextScope& scope, std::int64_t rows, Stream stream);
  /// Makes room for the indices.
  void reserve_indices(const ContextScope& scope, const TileCounts& counts, Stream stream);

  /// Reads the counts off the row offsets. Waits for the stream.
  TileCounts read_counts(Stream stream) const;

  /// The mask's lists and their order, which is given as rows of the whole mask.
  void upload(const TileLists& lists, std::span<const std::int32_t> rows_by_cost,
              std::int64_t q_blocks);

  /// Waits for everything in the context that may still write the lists.
  TileLists to_host() const override;

  long long* row_offsets() const { return at<long long>(rows_memory_, 0); }
  long long* full_row_offsets() const { return row_offsets() + rows_ + 1; }
  int* rows_by_cost() const { return reinterpret_cast<int*>(full_row_offsets() + rows_ + 1); }
  int* indices() const { return at<int>(*index_memory_, 0); }
  int* full_indices() const { return indices() + counts_.partial; }

 private:
  template <typename T>
  static T* at(const StreamMemory& memory, std::size_t offset) {
    return reinterpret_cast<T*>(memory.pointer() + offset);
  }

  const Driver& driver_;
  Context context_;
  std::int64_t rows_;
  TileCounts counts_;
  StreamMemory rows_memory_;
  std::unique_ptr<StreamMemory> index_memory_;
};

/// As kernels take them.
abi::cuda::BlockMaskArguments mask_arguments(const BlockMask& mask, const TileListMemory& lists);

}  // namespace tilewright::cuda
