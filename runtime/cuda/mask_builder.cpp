#include "runtime/cuda/mask_builder.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/cuda/mask_kernels.hpp"
#include "runtime/cuda/mask_workspace.hpp"
#include "runtime/cuda/tile_lists.hpp"

namespace tilewright::cuda {
namespace {

constexpr std::int64_t kMaxBlocks = std::numeric_limits<std::int32_t>::max();  // of a launch
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

void require_launchable(const TileGrid& grid) {
  if (grid.rows() <= kMaxBlocks - grid.batch * grid.heads) return;
  throw Error(
      ErrorCode::block_mask,
      fmt::format("the block mask has {} rows of tiles, more than a launch takes", grid.rows()),
      "choose a greater block in the spec, or split the batch");
}

// Launches the kernels that list a mask's tiles, in one stream.
class Builder {
 public:
  Builder(const Driver& driver, const MaskKernels& kernels, std::int64_t ordered_rows,
          const MaskWorkspace& workspace, SnippetParameter& snippet, tilewright::Stream stream)
      : driver_(driver),
        kernels_(kernels),
        ordered_rows_(ordered_rows),
        workspace_(workspace),
        snippet_(snippet),
        stream_(stream) {}

  // The tables that proofs read. Clears the counters too.
  void prepare() {
    workspace_.clear(static_cast<Stream>(stream_));
    abi::cuda::MaskArguments arguments = {};
    workspace_.describe(arguments);
    for (std::size_t i = 0; i < kernels_.tables.size(); ++i) {
      int table = static_cast<int>(i);
      launch_kernel(driver_, *kernels_.extrema,
                    config(workspace_.table_blocks(i), abi::cuda::kMaskThreads), arguments,
                    snippet_, table);
    }
  }

  // Row offsets, empty where there are more than `capacity` tiles.
  void count(const TileGrid& grid, const CsrMemory& lists, std::int64_t capacity) {
    abi::cuda::MaskArguments arguments = arguments_of(grid, lists, capacity);
    launch_kernel(driver_, kernels_.rows, config(grid.rows(), abi::cuda::kMaskThreads), arguments,
                  snippet_);
    launch_kernel(driver_, kernels_.scan, config(1, abi::cuda::kMaskScanThreads), arguments);
  }

  void fill(const TileGrid& grid, const CsrMemory& lists, std::int64_t capacity) {
    abi::cuda::MaskArguments arguments = arguments_of(grid, lists, capacity);
    arguments.fills = 1;
    const std::int64_t orders = lists.q_tile_order() ? grid.batch * grid.heads : 0;
    launch_kernel(driver_, kernels_.rows, config(grid.rows() + orders, abi::cuda::kMaskThreads),
                  arguments, snippet_);
  }

 private:
  abi::cuda::MaskArguments arguments_of(const TileGrid& grid, const CsrMemory& lists,
                                        std::int64_t capacity) const {
    abi::cuda::MaskArguments arguments = {
        .row_offsets = lists.row_offsets(),
        .full_row_offsets = lists.full_row_offsets(),
        .indices = lists.indices(),
        .q_tile_order = lists.q_tile_order(),
        .capacity = capacity,
        .batch = static_cast<int>(grid.batch),
        .heads = static_cast<int>(grid.heads),
        .rows_of_head = static_cast<int>(grid.rows_of_head),
        .columns = static_cast<int>(grid.columns),
        .chunks = static_cast<int>(grid.chunks()),
        .ordered_rows = static_cast<int>(ordered_rows_),
        .transposed = grid.transposed ? 1 : 0,
    };
    workspace_.describe(arguments);
    return arguments;
  }

  LaunchConfig config(std::int64_t blocks, int threads) const {
    return {.blocks = blocks,
            .threads = threads,
            .stream = stream_,
            .doing = "launching a block mask's kernel"};
  }

  const Driver& driver_;
  const MaskKernels& kernels_;
  std::int64_t ordered_rows_;
  const MaskWorkspace& workspace_;
  SnippetParameter& snippet_;
  tilewright::Stream stream_;
};

}  // namespace

BlockMask build_block_mask(const LaunchScope& on, MaskFingerprint fingerprint, const Shape& shape,
                           const Bindings& bindings, const BlockMaskOptions& options) {
  const Driver& driver = on.driver;
  const ContextScope& scope = on.context;
  const MaskKernels kernels = find_mask_kernels(on);
  const auto stream = static_cast<Stream>(options.stream);
  const TileGrid by_rows(fingerprint, false);
  const TileGrid by_columns(fingerprint, true);
  require_launchable(by_rows);
  if (options.transposed) require_launchable(by_columns);
  SnippetParameter snippet(bindings.cuda_arguments(), shape);
  auto workspace = std::make_unique<MaskWorkspace>(
      driver, scope, fingerprint, kernels.tables, bindings, options.transposed, stream,
      options.capacity ? StreamMemory::Release::when_idle : StreamMemory::Release::in_order);
  auto lists =
      std::make_shared<TileListMemory>(driver, scope, by_rows.rows(), kernels.ordered_rows, stream);
  if (options.transposed) lists->add_transposed(scope, by_columns.rows(), stream);

  Builder builder(driver, kernels, kernels.ordered_rows, *workspace, snippet, stream);
  builder.prepare();
  std::optional<TileCounts> counts;
  std::int64_t room = options.capacity.value_or(kNoLimit);
  builder.count(by_rows, lists->by_rows(), room);
  if (!options.capacity) {
    counts = read_totals(driver, workspace->totals(false), stream);
    room = counts->partial + counts->full;
  }
  lists->reserve_indices(scope, room, stream);
  builder.fill(by_rows, lists->by_rows(), room);
  if (options.transposed) {
    builder.count(by_columns, *lists->by_columns(), room);
    builder.fill(by_columns, *lists->by_columns(), room);
  }
  if (options.capacity) lists->keep(std::move(workspace), room);
  return BlockMask(std::move(fingerprint), std::move(lists), counts,
                   kernels.proves ? "proved" : "exact");
}

void rebuild_block_mask(const LaunchScope& on, const BlockMask& mask, const Shape& shape,
                        const Bindings& bindings, tilewright::Stream given_stream) {
  const MaskKernels kernels = find_mask_kernels(on);
  const auto stream = static_cast<Stream>(given_stream);
  const DeviceTileLists* const made_here = MaskPlacement::made_in(mask, on.context.id());
  if (!made_here) {
    throw Error(ErrorCode::block_mask, "the block mask lies in another CUDA context or on the host",
                "rebuild it in the context that it was made in");
  }
  const auto& lists = static_cast<const TileListMemory&>(*made_here);
  const MaskWorkspace* workspace = lists.workspace();
  if (!workspace) {
    throw Error(ErrorCode::block_mask, "the block mask was made without a capacity",
                "give BlockMaskOptions one, as the memory of a mask without cannot be used again");
  }
  if (!workspace->fits(mask.fingerprint(), kernels.tables, bindings,
                       lists.by_columns() != nullptr)) {
    throw Error(ErrorCode::block_mask,
                "a buffer of mask_mod has another size than when the mask was made",
                "make the mask again with block_mask(...)");
  }
  SnippetParameter snippet(bindings.cuda_arguments(), shape);
  Builder builder(on.driver, kernels, lists.ordered_rows(), *workspace, snippet, stream);
  builder.prepare();
  const std::int64_t room = lists.capacity();
  const TileGrid by_rows(mask.fingerprint(), false);
  builder.count(by_rows, lists.by_rows(), room);
  builder.fill(by_rows, lists.by_rows(), room);
  if (const CsrMemory* by_columns = lists.by_columns()) {
    const TileGrid grid(mask.fingerprint(), true);
    builder.count(grid, *by_columns, room);
    builder.fill(grid, *by_columns, room);
  }
}

}  // namespace tilewright::cuda
