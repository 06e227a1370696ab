#include "runtime/cuda/tile_lists.hpp"

#include "base/error.hpp"

namespace tilewright::cuda {
namespace {

DevicePointer device_pointer(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

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

}  // namespace

TileListMemory::TileListMemory(const Driver& driver, const ContextScope& scope, std::int64_t rows,
                               Stream stream)
    : DeviceTileLists(scope.id()),
      driver_(driver),
      context_(scope.context()),
      rows_(rows),
      rows_memory_(driver, scope,
                   static_cast<std::size_t>(2 * (rows + 1)) * sizeof(long long) +
                       static_cast<std::size_t>(rows) * sizeof(int),
                   stream, StreamMemory::Release::when_idle) {}

void TileListMemory::reserve_indices(const ContextScope& scope, const TileCounts& counts,
                                     Stream stream) {
  counts_ = counts;
  index_memory_ = std::make_unique<StreamMemory>(
      driver_, scope, static_cast<std::size_t>(counts.partial + counts.full) * sizeof(int), stream,
      StreamMemory::Release::when_idle);
}

TileCounts TileListMemory::read_counts(Stream stream) const {
  const DriverFunctions& f = driver_.functions();
  TileCounts counts;
  driver_.check(f.copy_to_host(&counts.partial, device_pointer(row_offsets() + rows_),
                               sizeof counts.partial, stream),
                "counting a block mask's tiles");
  driver_.check(f.copy_to_host(&counts.full, device_pointer(full_row_offsets() + rows_),
                               sizeof counts.full, stream),
                "counting a block mask's tiles");
  driver_.check(f.stream_synchronize(stream), "counting a block mask's tiles");
  return counts;
}

void TileListMemory::upload(const TileLists& lists, std::span<const std::int32_t> rows_by_cost,
                            std::int64_t q_blocks) {
  // Rows of the whole mask in order of cost, dealt out to their heads, stay in that order.
  std::vector<std::int32_t> order(rows_by_cost.size());
  std::vector<std::int64_t> dealt(static_cast<std::size_t>(rows_ / q_blocks));
  for (const std::int32_t row : rows_by_cost) {
    const std::int64_t head = row / q_blocks;
    const std::int64_t place = head * q_blocks + dealt[static_cast<std::size_t>(head)]++;
    order[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(row % q_blocks);
  }
  copy_to_device(driver_, row_offsets(), lists.row_offsets);
  copy_to_device(driver_, full_row_offsets(), lists.full_row_offsets);
  copy_to_device(driver_, this->rows_by_cost(), order);
  copy_to_device(driver_, indices(), lists.indices);
  copy_to_device(driver_, full_indices(), lists.full_indices);
  // Any stream may use them from now on.
  driver_.check(driver_.functions().context_synchronize(), "copying a block mask to the GPU");
}

TileLists TileListMemory::to_host() const {
  const CurrentScope current(driver_, context_);
  driver_.check(driver_.functions().context_synchronize(), "waiting for a block mask");
  TileLists lists;
  const auto offsets = static_cast<std::size_t>(rows_ + 1);
  copy_to_host(driver_, lists.row_offsets, row_offsets(), offsets);
  copy_to_host(driver_, lists.full_row_offsets, full_row_offsets(), offsets);
  copy_to_host(driver_, lists.indices, indices(), static_cast<std::size_t>(counts_.partial));
  copy_to_host(driver_, lists.full_indices, full_indices(), static_cast<std::size_t>(counts_.full));
  driver_.check(driver_.functions().stream_synchronize(nullptr),
                "copying a block mask from the GPU");
  return lists;
}

abi::cuda::BlockMaskArguments mask_arguments(const BlockMask& mask, const TileListMemory& lists) {
  return {.row_offsets = lists.row_offsets(),
          .indices = lists.indices(),
          .full_row_offsets = lists.full_row_offsets(),
          .full_indices = lists.full_indices(),
          .rows_by_cost = lists.rows_by_cost(),
          .batch = static_cast<int>(mask.batch()),
          .heads = static_cast<int>(mask.heads()),
          .q_blocks = static_cast<int>(mask.q_blocks()),
          .reserved = 0};
}

}  // namespace tilewright::cuda
