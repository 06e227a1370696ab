#include "runtime/cpu/mask_kernel.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "base/memory.hpp"
#include "runtime/cpu/thread_memory.hpp"

namespace tilewright::cpu {
namespace {

static_assert(kMaxExtremaTables == abi::kMaxExtremaTables);

// The tiles of one row: end << 2 | abi::TileState of each run of tiles in the same state.
using Runs = std::vector<unsigned>;

// Calls body(state, begin, end) for each run.
template <typename Body>
void for_each_run(const Runs& runs, const Body& body) {
  std::int32_t begin = 0;
  for (const unsigned run : runs) {
    const auto end = static_cast<std::int32_t>(run >> 2);
    body(static_cast<abi::TileState>(run & 3u), begin, end);
    begin = end;
  }
}

// Counted and summed row by row, then filled in.
TileLists lists_of(const std::vector<Runs>& rows, Executor& threads) {
  TileLists lists;
  lists.row_offsets.assign(rows.size() + 1, 0);
  lists.full_row_offsets.assign(rows.size() + 1, 0);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::int64_t partial = lists.row_offsets[row];
    std::int64_t full = lists.full_row_offsets[row];
    for_each_run(rows[row], [&](abi::TileState state, std::int32_t begin, std::int32_t end) {
      if (state == abi::kTilePartial) partial += end - begin;
      if (state == abi::kTileFull) full += end - begin;
    });
    lists.row_offsets[row + 1] = partial;
    lists.full_row_offsets[row + 1] = full;
  }
  lists.indices.resize(static_cast<std::size_t>(lists.row_offsets.back()));
  lists.full_indices.resize(static_cast<std::size_t>(lists.full_row_offsets.back()));
  threads.parallel_for(static_cast<std::int64_t>(rows.size()), [&](std::int64_t r, int) {
    const auto row = static_cast<std::size_t>(r);
    std::int32_t* partial = lists.indices.data() + lists.row_offsets[row];
    std::int32_t* full = lists.full_indices.data() + lists.full_row_offsets[row];
    for_each_run(rows[row], [&](abi::TileState state, std::int32_t begin, std::int32_t end) {
      std::int32_t*& to = state == abi::kTileFull ? full : partial;
      if (state == abi::kTileEmpty) return;
      for (std::int32_t tile = begin; tile < end; ++tile) *to++ = tile;
    });
  });
  return lists;
}

std::string describe(const Shape& shape, std::int64_t rows, std::int64_t kv_blocks) {
  return fmt::format("the lists of a block mask of {} ({} rows of {} tiles)", shape.describe(),
                     rows, kv_blocks);
}

// What a mask takes whatever its tiles are: for each row the offsets in two lists, its place in the
// order, and its runs until the lists are made.
constexpr double kBytesOfRow = 2 * sizeof(std::int64_t) + sizeof(std::int32_t) + sizeof(Runs) + 32;

// Counts the bytes of the tiles that are kept, and stops the work once they cannot fit.
class TileBudget {
 public:
  TileBudget(const Shape& shape, std::int64_t rows, std::int64_t kv_blocks)
      : what_(describe(shape, rows, kv_blocks)),
        rows_(rows),
        fixed_(static_cast<double>(rows) * kBytesOfRow) {
    require_memory_for(fixed_, what_ + ", without a tile,");
    available_ = static_cast<double>(available_memory()) - fixed_;
  }

  // Tiles that `runs` keep.
  static std::int64_t kept(const unsigned* runs, int count) {
    std::int64_t tiles = 0;
    std::int32_t begin = 0;
    for (int i = 0; i < count; ++i) {
      const auto end = static_cast<std::int32_t>(runs[i] >> 2);
      if ((runs[i] & 3u) != abi::kTileEmpty) tiles += end - begin;
      begin = end;
    }
    return tiles;
  }

  // Rows that were drawn evenly say at once what the whole will take. Refuses only what exceeds the
  // memory several times, as a few rows may differ from the others.
  void judge_sample(std::int64_t tiles, std::int64_t sampled_rows) const {
    constexpr double kSurely = 4;
    const double bytes = static_cast<double>(tiles) / static_cast<double>(sampled_rows) *
                         static_cast<double>(rows_) * kBytesOfTile;
    if (bytes > kSurely * available_) refuse(bytes + fixed_, "about ");
  }

  void add(const unsigned* runs, int count) {
    const std::int64_t tiles = tiles_ += kept(runs, count);
    const double bytes = static_cast<double>(tiles) * kBytesOfTile;
    if (bytes > available_) refuse(bytes + fixed_, "more than ");
  }

 private:
  static constexpr double kBytesOfTile = sizeof(std::int32_t);

  [[noreturn]] void refuse(double bytes, std::string_view how) const {
    throw Error(
        ErrorCode::memory,
        fmt::format("{} need {}{}, but this machine has {} available", what_, how,
                    memory_text(bytes), memory_text(available_ + fixed_)),
        "choose a greater block in the spec, smaller lengths, or a machine with more memory");
  }

  std::string what_;
  std::int64_t rows_;
  double fixed_;
  double available_ = 0;
  std::atomic<std::int64_t> tiles_ = 0;
};

// The calling thread's room for the runs of a row.
unsigned* run_buffer(std::int64_t kv_blocks) {
  return static_cast<unsigned*>(
      thread_memory(ThreadMemory::mask_runs, kv_blocks * std::int64_t{sizeof(unsigned)}));
}

}  // namespace

FilledTables MaskKernel::fill_tables(const std::array<std::int64_t, 2>& block,
                                     const abi::SnippetArguments& arguments,
                                     Executor& threads) const {
  FilledTables filled;
  const int run = abi::extrema_run(static_cast<int>(block[0]), static_cast<int>(block[1]));
  for (std::size_t table = 0; table < tables_.size(); ++table) {
    const ExtremaTable& facts = tables_[table];
    const abi::BufferArgument& buffer = arguments.buffers[facts.buffer];
    std::int64_t rows = 1;
    for (std::size_t dim = 0; dim + 1 < facts.rank; ++dim) rows *= buffer.size[dim];
    const std::int64_t entries = rows * abi::extrema_per_row(buffer.size[facts.rank - 1], run);
    const std::int64_t words_of_entry = facts.is_wide ? 2 : 1;
    filled.memory_.emplace_back(static_cast<std::size_t>(entries * words_of_entry));
    filled.tables_.entries[table] = filled.memory_.back().data();
    threads.parallel_for(rows, [&](std::int64_t row, int) {
      extrema_entry_(&arguments, filled.pointer(), static_cast<int>(table), row);
    });
  }
  return filled;
}

MaskKernel::MaskKernel(std::shared_ptr<const LoadedKernel> kernel)
    : kernel_(std::move(kernel)), row_entry_(kernel_->entry<RowEntry>("tilewright_mask_row")) {
  const KernelRole role = kernel_->source.variant.role;
  if (role != KernelRole::mask_proved && role != KernelRole::plan_proved) return;
  extrema_entry_ = kernel_->entry<ExtremaEntry>("tilewright_mask_extrema");
  tables_ = kernel_->source.extrema_tables;
}

BlockMask MaskKernel::run(MaskFingerprint fingerprint, const Shape& shape,
                          const BindingArguments& bindings, Executor& threads) const {
  const abi::SnippetArguments arguments = snippet_arguments(bindings, shape);
  const auto& block = fingerprint.source.block;
  const std::int64_t q_blocks = ceil_div(shape.q_len, block[0]);
  const std::int64_t kv_blocks = ceil_div(shape.kv_len, block[1]);
  const std::int64_t heads = fingerprint.shape.num_q_heads;
  const std::int64_t row_count = count_tile_rows(fingerprint.shape.batch, heads, q_blocks);
  TileBudget budget(shape, row_count, kv_blocks);
  const FilledTables tables = fill_tables(block, arguments, threads);
  const auto decide = [&](std::int64_t r, unsigned* runs, long long* evaluated_here) {
    const std::int64_t list = r / q_blocks;
    return decide_row(arguments, tables, static_cast<int>(list / heads),
                      static_cast<int>(list % heads), static_cast<int>(r % q_blocks), runs,
                      evaluated_here);
  };
  // Rows of the exact path take too long for a sample, and small masks need none.
  constexpr std::int64_t kSample = 16, kLargeMask = std::int64_t{1} << 20;
  if (extrema_entry_ && row_count >= kLargeMask) {
    long long ignored = 0;
    std::int64_t tiles = 0;
    for (std::int64_t i = 0; i < kSample; ++i) {
      unsigned* const runs = run_buffer(kv_blocks);
      const int count = decide((2 * i + 1) * row_count / (2 * kSample), runs, &ignored);
      tiles += TileBudget::kept(runs, count);
    }
    budget.judge_sample(tiles, kSample);
  }
  std::vector<Runs> rows(static_cast<std::size_t>(row_count));
  std::atomic<std::int64_t> evaluated = 0;
  threads.parallel_for(static_cast<std::int64_t>(rows.size()), [&](std::int64_t r, int) {
    unsigned* runs = run_buffer(kv_blocks);
    long long evaluated_here = 0;
    const int count = decide(r, runs, &evaluated_here);
    budget.add(runs, count);
    rows[static_cast<std::size_t>(r)].assign(runs, runs + count);
    evaluated += evaluated_here;
  });
  return BlockMask(std::move(fingerprint), lists_of(rows, threads),
                   extrema_entry_ ? "proved" : "exact", evaluated);
}

}  // namespace tilewright::cpu
