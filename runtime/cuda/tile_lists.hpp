#pragma once

#include <memory>
#include <optional>

#include "../../templates/abi/cuda_forward.hpp"
#include "../call/mask_placement.hpp"
#include "mask_workspace.hpp"

namespace tilewright::cuda {

/// What kernels have counted. Waits for the stream.
TileCounts read_totals(const Driver& driver, const abi::cuda::MaskTotals* totals, Stream stream);

/// Two CSR lists in a context's memory, in one array: the full tiles follow the partial ones,
/// and full_row_offsets begins with the number of these.
class CsrMemory {
 public:
  /// Makes room for row offsets and, if asked for, the order of rows, in the stream's order.
  CsrMemory(const Driver& driver, const ContextScope& scope, std::int64_t rows, bool has_order,
            Stream stream);
  /// Makes room for the indices.
  void reserve_indices(const ContextScope& scope, std::int64_t tiles, Stream stream);

  std::int64_t rows() const { return rows_; }
  long long* row_offsets() const { return reinterpret_cast<long long*>(rows_memory_.pointer()); }
  long long* full_row_offsets() const { return row_offsets() + rows_ + 1; }
  int* q_tile_order() const {  ///< null where there is none
    return has_order_ ? reinterpret_cast<int*>(full_row_offsets() + rows_ + 1) : nullptr;
  }
  int* indices() const {  ///< null before there is room for them
    return index_memory_ ? reinterpret_cast<int*>(index_memory_->pointer()) : nullptr;
  }

  /// Copies, when the context is idle.
  TileLists to_host() const;
  void upload(const TileLists& lists) const;

 private:
  const Driver& driver_;
  std::int64_t rows_;
  bool has_order_;
  StreamMemory rows_memory_;
  std::unique_ptr<StreamMemory> index_memory_;
};

/// A block mask's lists in a context's memory.
class TileListMemory final : public DeviceTileLists {
 public:
  /// @param ordered_rows rows of q of what the order of work is made of: the mask's block[0], or a
  ///                     greater q tile, which covers rows of two blocks
  TileListMemory(const Driver& driver, const ContextScope& scope, std::int64_t rows,
                 std::int64_t ordered_rows, Stream stream);

  void add_transposed(const ContextScope& scope, std::int64_t rows, Stream stream);
  /// Makes room for the indices of all lists.
  void reserve_indices(const ContextScope& scope, std::int64_t tiles, Stream stream);
  /// Keeps what the mask was built with, so that it can be built again.
  void keep(std::unique_ptr<const MaskWorkspace> workspace, std::int64_t capacity);

  /// The mask's lists, from the host, and their order of work.
  void upload(const TileLists& lists, const BlockMask& mask);
  void upload_transposed(const TileLists& lists);

  TileLists to_host() const override;
  std::optional<TileLists> transposed_to_host() const override;
  bool has_transposed() const override { return by_columns_.has_value(); }
  TileCounts counts() const override;

  const CsrMemory& by_rows() const { return by_rows_; }
  const CsrMemory* by_columns() const { return by_columns_ ? &*by_columns_ : nullptr; }
  const MaskWorkspace* workspace() const { return workspace_.get(); }
  std::int64_t ordered_rows() const { return ordered_rows_; }
  std::int64_t capacity() const { return capacity_; }

 private:
  TileLists copy_of(const CsrMemory& lists) const;

  const Driver& driver_;
  Context context_;
  std::int64_t ordered_rows_;
  CsrMemory by_rows_;
  std::optional<CsrMemory> by_columns_;
  std::unique_ptr<const MaskWorkspace> workspace_;  // where the mask may be built again
  std::int64_t capacity_ = 0;
};

/// As kernels take them.
/// @param q_tile of the kernel. Where the order of work is not made of what it works on, it gets
/// none.
abi::cuda::BlockMaskArguments mask_arguments(const BlockMask& mask, const TileListMemory& lists,
                                             std::int64_t q_tile);

/// The transposed lists, where q_blocks is the number of kv blocks.
abi::cuda::BlockMaskArguments column_arguments(const BlockMask& mask, const TileListMemory& lists);

}  // namespace tilewright::cuda
