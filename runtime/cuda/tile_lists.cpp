#include "runtime/cuda/tile_lists.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"

namespace tilewright::cuda {
namespace {

// Makes a context current for as long as it lives; the context must be alive.
class CurrentScope {
 public:
  CurrentScope(const Driver& driver, Context context) : driver_(driver) {
    driver.check(driver.functions().context_push(context), "making a context current");
  }
  ~CurrentScope() {
    Context popped = nullptr;
    driver_.functions().context_pop(&popped);
  }
  CurrentScope(const CurrentScope&) = delete;
  CurrentScope& operator=(const CurrentScope&) = delete;

 private:
  const Driver& driver_;
};

template <typename T>
void copy_to_host(const Driver& driver, std::vector<T>& to, const void* from, std::size_t count) {
  to.resize(count);
  if (count == 0) return;
  driver.check(
      driver.functions().copy_to_host(to.data(), device_pointer(from), count * sizeof(T), nullptr),
      "copying a block mask from the GPU");
}

template <typename T>
void copy_to_device(const Driver& driver, const void* to, const std::vector<T>& from) {
  if (from.empty()) return;
  driver.check(driver.functions().copy_to_device(device_pointer(to), from.data(),
                                                 from.size() * sizeof(T), nullptr),
               "copying a block mask to the GPU");
}

// As order_rows of templates/cuda/mask/lists.hpp.
std::vector<std::int32_t> order_of_work(const TileLists& lists, const BlockMask& mask,
                                        std::int64_t ordered_rows) {
  const std::int64_t rows = mask.q_blocks();
  const std::int64_t items = ceil_div(mask.fingerprint().shape.q_len, ordered_rows);
  std::vector<std::int32_t> order(static_cast<std::size_t>(mask.rows()));
  std::vector<std::int64_t> costs(static_cast<std::size_t>(items));
  for (std::int64_t first_row = 0; first_row < mask.rows(); first_row += rows) {
    for (std::int64_t item = 0; item < items; ++item) {
      const std::int64_t begin = item * ordered_rows / mask.block()[0];
      const std::int64_t end = std::min(ceil_div((item + 1) * ordered_rows, mask.block()[0]), rows);
      std::int64_t cost = 0;
      for (std::int64_t row = first_row + begin; row < first_row + end; ++row) {
        const auto at = static_cast<std::size_t>(row);
        cost =
            std::max(cost, 5 * (lists.row_offsets[at + 1] - lists.row_offsets[at]) +
                               4 * (lists.full_row_offsets[at + 1] - lists.full_row_offsets[at]));
      }
      costs[static_cast<std::size_t>(item)] = cost;
    }
    const auto begin = order.begin() + first_row;
    std::iota(begin, begin + items, 0);
    std::stable_sort(begin, begin + items, [&](std::int32_t a, std::int32_t b) {
      return costs[static_cast<std::size_t>(a)] > costs[static_cast<std::size_t>(b)];
    });
  }
  return order;
}

}  // namespace

TileCounts read_totals(const Driver& driver, const abi::cuda::MaskTotals* totals, Stream stream) {
  abi::cuda::MaskTotals host = {};
  driver.check(driver.functions().copy_to_host(&host, device_pointer(totals), sizeof host, stream),
               "counting a block mask's tiles");
  driver.check(driver.functions().stream_synchronize(stream), "counting a block mask's tiles");
  return {.partial = host.partial,
          .full = host.full,
          .evaluated = static_cast<std::int64_t>(host.evaluated)};
}

CsrMemory::CsrMemory(const Driver& driver, const ContextScope& scope, std::int64_t rows,
                     bool has_order, Stream stream)
    : driver_(driver),
      rows_(rows),
      has_order_(has_order),
      rows_memory_(driver, scope,
                   static_cast<std::size_t>(2 * (rows + 1)) * sizeof(long long) +
                       (has_order ? static_cast<std::size_t>(rows) * sizeof(int) : 0),
                   stream, StreamMemory::Release::when_idle) {}

void CsrMemory::reserve_indices(const ContextScope& scope, std::int64_t tiles, Stream stream) {
  index_memory_ =
      std::make_unique<StreamMemory>(driver_, scope, static_cast<std::size_t>(tiles) * sizeof(int),
                                     stream, StreamMemory::Release::when_idle);
}

TileLists CsrMemory::to_host() const {
  TileLists lists;
  const auto offsets = static_cast<std::size_t>(rows_ + 1);
  copy_to_host(driver_, lists.row_offsets, row_offsets(), offsets);
  copy_to_host(driver_, lists.full_row_offsets, full_row_offsets(), offsets);
  driver_.check(driver_.functions().stream_synchronize(nullptr),
                "copying a block mask from the GPU");
  const std::int64_t partial = lists.row_offsets.back();
  for (std::int64_t& offset : lists.full_row_offsets) offset -= partial;
  copy_to_host(driver_, lists.indices, indices(), static_cast<std::size_t>(partial));
  copy_to_host(driver_, lists.full_indices, indices() + partial,
               static_cast<std::size_t>(lists.full_row_offsets.back()));
  driver_.check(driver_.functions().stream_synchronize(nullptr),
                "copying a block mask from the GPU");
  return lists;
}

void CsrMemory::upload(const TileLists& lists) const {
  std::vector<std::int64_t> full_offsets = lists.full_row_offsets;
  const auto partial = static_cast<std::int64_t>(lists.indices.size());
  for (std::int64_t& offset : full_offsets) offset += partial;
  copy_to_device(driver_, row_offsets(), lists.row_offsets);
  copy_to_device(driver_, full_row_offsets(), full_offsets);
  copy_to_device(driver_, indices(), lists.indices);
  copy_to_device(driver_, indices() + partial, lists.full_indices);
  // The shifted offsets end here, and any stream may use the lists from now on.
  driver_.check(driver_.functions().context_synchronize(), "copying a block mask to the GPU");
}

TileListMemory::TileListMemory(const Driver& driver, const ContextScope& scope, std::int64_t rows,
                               std::int64_t ordered_rows, Stream stream)
    : DeviceTileLists(scope.id()),
      driver_(driver),
      context_(scope.context()),
      ordered_rows_(ordered_rows),
      by_rows_(driver, scope, rows, true, stream) {}

void TileListMemory::add_transposed(const ContextScope& scope, std::int64_t rows, Stream stream) {
  by_columns_.emplace(driver_, scope, rows, false, stream);
}

void TileListMemory::reserve_indices(const ContextScope& scope, std::int64_t tiles, Stream stream) {
  by_rows_.reserve_indices(scope, tiles, stream);
  if (by_columns_) by_columns_->reserve_indices(scope, tiles, stream);
}

void TileListMemory::keep(std::unique_ptr<const MaskWorkspace> workspace, std::int64_t capacity) {
  workspace_ = std::move(workspace);
  capacity_ = capacity;
}

void TileListMemory::upload(const TileLists& lists, const BlockMask& mask) {
  copy_to_device(driver_, by_rows_.q_tile_order(), order_of_work(lists, mask, ordered_rows_));
  by_rows_.upload(lists);
}

void TileListMemory::upload_transposed(const TileLists& lists) {
  by_columns_->upload(lists);
}

TileCounts TileListMemory::counts() const {
  if (!workspace_) throw Error(ErrorCode::internal, "a block mask has lost its counts");
  const CurrentScope current(driver_, context_);
  driver_.check(driver_.functions().context_synchronize(), "waiting for a block mask");
  const TileCounts counts = read_totals(driver_, workspace_->totals(false), nullptr);
  if (counts.partial + counts.full > capacity_) {
    throw Error(ErrorCode::block_mask,
                fmt::format("the block mask has {} tiles, and its capacity is {}: its lists are "
                            "empty",
                            counts.partial + counts.full, capacity_),
                "give BlockMaskOptions a greater capacity");
  }
  return counts;
}

TileLists TileListMemory::copy_of(const CsrMemory& lists) const {
  if (workspace_) counts();
  const CurrentScope current(driver_, context_);
  driver_.check(driver_.functions().context_synchronize(), "waiting for a block mask");
  return lists.to_host();
}

TileLists TileListMemory::to_host() const {
  return copy_of(by_rows_);
}

std::optional<TileLists> TileListMemory::transposed_to_host() const {
  if (!by_columns_) return std::nullopt;
  return copy_of(*by_columns_);
}

abi::cuda::BlockMaskArguments mask_arguments(const BlockMask& mask, const TileListMemory& lists,
                                             std::int64_t q_tile) {
  const CsrMemory& rows = lists.by_rows();
  const bool is_ordered = lists.ordered_rows() == std::max(mask.block()[0], q_tile);
  return {.row_offsets = rows.row_offsets(),
          .indices = rows.indices(),
          .full_row_offsets = rows.full_row_offsets(),
          .full_indices = rows.indices(),
          .q_tile_order = is_ordered ? rows.q_tile_order() : nullptr,
          .batch = static_cast<int>(mask.batch()),
          .heads = static_cast<int>(mask.heads()),
          .q_blocks = static_cast<int>(mask.q_blocks()),
          .reserved = 0};
}

abi::cuda::BlockMaskArguments column_arguments(const BlockMask& mask, const TileListMemory& lists) {
  const CsrMemory& columns = *lists.by_columns();
  return {.row_offsets = columns.row_offsets(),
          .indices = columns.indices(),
          .full_row_offsets = columns.full_row_offsets(),
          .full_indices = columns.indices(),
          .q_tile_order = nullptr,
          .batch = static_cast<int>(mask.batch()),
          .heads = static_cast<int>(mask.heads()),
          .q_blocks = static_cast<int>(mask.kv_blocks()),
          .reserved = 0};
}

}  // namespace tilewright::cuda
