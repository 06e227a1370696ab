#include "runtime/cuda/mask_workspace.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"

namespace tilewright::cuda {
namespace {

// States of this many spans of tiles are kept between counting and filling: half a megabyte. What
// does not fit is evaluated twice.
constexpr std::int64_t kSavedSpans = 65536;
constexpr std::size_t kSliceAlignment = 16;

}  // namespace

TileGrid::TileGrid(const MaskFingerprint& fingerprint, bool by_columns)
    : batch(fingerprint.shape.batch),
      heads(fingerprint.shape.num_q_heads),
      rows_of_head(ceil_div(fingerprint.shape.q_len, fingerprint.source.block[0])),
      columns(ceil_div(fingerprint.shape.kv_len, fingerprint.source.block[1])),
      transposed(by_columns) {
  if (by_columns) std::swap(rows_of_head, columns);
}

std::int64_t TileGrid::chunks() const {
  return ceil_div(columns, abi::cuda::kMaskChunk);
}

struct MaskWorkspace::Layout {
  std::size_t bytes = 0;
  std::size_t saved_begin = 0;
  std::size_t saved = 0;
  std::int64_t saved_capacity = 0;
  std::vector<std::size_t> tables = {};
  std::vector<std::int64_t> table_blocks = {};

  std::size_t take(std::int64_t count, std::size_t element) {
    const std::size_t at = bytes;
    bytes += static_cast<std::size_t>(count) * element;
    bytes = (bytes + kSliceAlignment - 1) / kSliceAlignment * kSliceAlignment;
    return at;
  }

  Layout(const MaskFingerprint& fingerprint, const std::vector<ExtremaTable>& extrema,
         const Bindings& bindings, bool transposed) {
    take(2, sizeof(abi::cuda::MaskTotals));
    std::int64_t row_chunks = 0;
    std::int64_t spans = 0;
    for (const bool by_columns : {false, true}) {
      if (by_columns && !transposed) continue;
      const TileGrid grid(fingerprint, by_columns);
      row_chunks = std::max(row_chunks, grid.rows() * grid.chunks());
      spans = std::max(spans, grid.rows() * ceil_div(grid.columns, 32));
    }
    saved_begin = take(row_chunks, sizeof(int));
    saved_capacity = std::min(spans, kSavedSpans);
    saved = take(saved_capacity, sizeof(unsigned long long));
    const auto& block = fingerprint.source.block;
    const int run = abi::extrema_run(static_cast<int>(block[0]), static_cast<int>(block[1]));
    for (const ExtremaTable& table : extrema) {
      const TensorView& buffer = bindings.buffers()[table.buffer];
      std::int64_t rows = 1;
      for (std::size_t dim = 0; dim + 1 < table.rank; ++dim) rows *= buffer.shape[dim];
      const std::int64_t extent = buffer.shape[table.rank - 1];
      tables.push_back(take(rows * abi::extrema_per_row(extent, run), table.is_wide ? 16 : 8));
      const std::int64_t runs_of_block = abi::kExtremaFan * abi::kExtremaFan;
      table_blocks.push_back(rows * ceil_div(abi::extrema_runs(extent, run), runs_of_block));
    }
  }
};

MaskWorkspace::MaskWorkspace(const Driver& driver, const ContextScope& scope,
                             const MaskFingerprint& fingerprint,
                             const std::vector<ExtremaTable>& tables, const Bindings& bindings,
                             bool transposed, Stream stream, StreamMemory::Release release)
    : MaskWorkspace(driver, scope, Layout(fingerprint, tables, bindings, transposed), stream,
                    release) {}

MaskWorkspace::MaskWorkspace(const Driver& driver, const ContextScope& scope, const Layout& layout,
                             Stream stream, StreamMemory::Release release)
    : driver_(driver),
      bytes_(layout.bytes),
      saved_begin_(layout.saved_begin),
      saved_(layout.saved),
      saved_capacity_(layout.saved_capacity),
      tables_(layout.tables),
      table_blocks_(layout.table_blocks),
      memory_(driver, scope, layout.bytes, stream, release) {}

bool MaskWorkspace::fits(const MaskFingerprint& fingerprint,
                         const std::vector<ExtremaTable>& tables, const Bindings& bindings,
                         bool transposed) const {
  const Layout layout(fingerprint, tables, bindings, transposed);
  return layout.bytes == bytes_ && layout.tables == tables_ && layout.table_blocks == table_blocks_;
}

void MaskWorkspace::clear(Stream stream) const {
  driver_.check(driver_.functions().fill_bytes(memory_.pointer(), 0,
                                               2 * sizeof(abi::cuda::MaskTotals), stream),
                "clearing a block mask's counts");
}

void MaskWorkspace::describe(abi::cuda::MaskArguments& arguments) const {
  arguments.totals = totals(arguments.transposed != 0);
  arguments.saved_begin = reinterpret_cast<int*>(memory_.pointer() + saved_begin_);
  arguments.saved = reinterpret_cast<unsigned long long*>(memory_.pointer() + saved_);
  arguments.saved_capacity = static_cast<int>(saved_capacity_);
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    arguments.tables.entries[i] = reinterpret_cast<void*>(memory_.pointer() + tables_[i]);
  }
}

}  // namespace tilewright::cuda
