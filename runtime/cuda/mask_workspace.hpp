#pragma once

#include <cstdint>
#include <vector>

#include "../../generator/render/extrema_table.hpp"
#include "../../templates/abi/cuda_mask.hpp"
#include "../../templates/abi/cuda_snippet.hpp"
#include "../../templates/abi/extrema.hpp"
#include "../api/bindings.hpp"
#include "../api/block_mask.hpp"
#include "memory.hpp"

namespace tilewright::cuda {

/// The tiles of a mask as a kernel goes through them: row by row, or column by column.
struct TileGrid {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t rows_of_head = 0;
  std::int64_t columns = 0;
  bool transposed = false;

  TileGrid(const MaskFingerprint& fingerprint, bool transposed);
  std::int64_t rows() const { return batch * heads * rows_of_head; }
  std::int64_t chunks() const;
};

/// Memory that is needed while a mask is built: counters, the states of evaluated tiles as far as
/// there is room for them, and the tables of the buffers.
class MaskWorkspace {
 public:
  MaskWorkspace(const Driver& driver, const ContextScope& scope, const MaskFingerprint& fingerprint,
                const std::vector<ExtremaTable>& tables, const Bindings& bindings, bool transposed,
                Stream stream, StreamMemory::Release release);

  /// Whether a mask with these buffers can be built here again: their tables are as long.
  bool fits(const MaskFingerprint& fingerprint, const std::vector<ExtremaTable>& tables,
            const Bindings& bindings, bool transposed) const;

  /// Of the mask, or of its transposed lists.
  abi::cuda::MaskTotals* totals(bool transposed) const {
    return reinterpret_cast<abi::cuda::MaskTotals*>(memory_.pointer()) + (transposed ? 1 : 0);
  }
  /// Sets all counters to 0, in the stream's order.
  void clear(Stream stream) const;
  /// Fills in everything that lies here.
  void describe(abi::cuda::MaskArguments& arguments) const;

  /// Threads' blocks that make a table.
  std::int64_t table_blocks(std::size_t table) const { return table_blocks_[table]; }

 private:
  struct Layout;
  MaskWorkspace(const Driver& driver, const ContextScope& scope, const Layout& layout,
                Stream stream, StreamMemory::Release release);

  const Driver& driver_;
  std::size_t bytes_;
  std::size_t saved_begin_;
  std::size_t saved_;
  std::int64_t saved_capacity_;
  std::vector<std::size_t> tables_;
  std::vector<std::int64_t> table_blocks_;
  StreamMemory memory_;
};

}  // namespace tilewright::cuda
