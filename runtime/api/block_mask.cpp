#include "runtime/api/block_mask.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "base/printable_number.hpp"
#include "runtime/call/mask_fingerprint.hpp"
#include "runtime/call/mask_placement.hpp"

namespace tilewright {
namespace {

void validate_list(std::string_view name, std::span<const std::int64_t> offsets,
                   std::span<const std::int32_t> indices, std::int64_t rows,
                   std::int64_t kv_blocks) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::block_mask, fmt::format("the {} list is wrong: {}", name, why));
  };
  if (static_cast<std::int64_t>(offsets.size()) != rows + 1) {
    refuse(fmt::format("{} row offsets for {} rows of tiles; {} are needed", offsets.size(), rows,
                       rows + 1));
  }
  if (offsets.front() != 0)
    refuse(fmt::format("the first row offset is {}, not 0", offsets.front()));
  if (offsets.back() != static_cast<std::int64_t>(indices.size())) {
    refuse(fmt::format("the last row offset is {}, but there are {} indices", offsets.back(),
                       indices.size()));
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t begin = offsets[row], end = offsets[row + 1];
    if (end < begin || end > offsets.back()) {
      refuse(fmt::format("row offset {} is {} after {}", row + 1, end, begin));
    }
    for (std::int64_t i = begin; i < end; ++i) {
      if (indices[i] < 0 || indices[i] >= kv_blocks) {
        refuse(fmt::format("row {} holds kv block {}; there are {}", row, indices[i], kv_blocks));
      }
      if (i > begin && indices[i] <= indices[i - 1]) {
        refuse(fmt::format("row {} holds kv block {} after {}; they must rise", row, indices[i],
                           indices[i - 1]));
      }
    }
  }
}

void validate_disjoint(const TileLists& lists, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row) {
    auto partial = lists.indices.begin() + lists.row_offsets[row];
    const auto partial_end = lists.indices.begin() + lists.row_offsets[row + 1];
    auto full = lists.full_indices.begin() + lists.full_row_offsets[row];
    const auto full_end = lists.full_indices.begin() + lists.full_row_offsets[row + 1];
    while (partial != partial_end && full != full_end) {
      if (*partial == *full) {
        throw Error(ErrorCode::block_mask,
                    fmt::format("row {} holds kv block {} as partial and as full", row, *full));
      }
      *partial < *full ? ++partial : ++full;
    }
  }
}

bool have_same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

std::vector<std::int32_t> order_by_cost(const TileLists& lists, std::int64_t rows) {
  const auto cost = [&](std::int32_t row) {
    return lists.row_offsets[row + 1] - lists.row_offsets[row] + lists.full_row_offsets[row + 1] -
           lists.full_row_offsets[row];
  };
  std::vector<std::int32_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return cost(a) > cost(b); });
  return order;
}

std::shared_ptr<const HostTileLists> host_lists(TileLists lists, std::int64_t rows) {
  std::vector<std::int32_t> order = order_by_cost(lists, rows);
  return std::make_shared<const HostTileLists>(
      HostTileLists{.lists = std::move(lists), .q_tile_order = std::move(order)});
}

// One of the two lists by columns: counted, summed, and dealt out in order of rows.
void transpose_list(const std::vector<std::int64_t>& offsets,
                    const std::vector<std::int32_t>& indices, std::int64_t rows_of_head,
                    std::int64_t columns, std::vector<std::int64_t>& to_offsets,
                    std::vector<std::int32_t>& to_indices) {
  const std::int64_t rows = static_cast<std::int64_t>(offsets.size()) - 1;
  const auto place = [&](std::int64_t row, std::int64_t i) {
    return static_cast<std::size_t>(row / rows_of_head * columns +
                                    indices[static_cast<std::size_t>(i)]);
  };
  to_offsets.assign(static_cast<std::size_t>(rows / rows_of_head * columns + 1), 0);
  to_indices.resize(indices.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = offsets[row]; i < offsets[row + 1]; ++i) ++to_offsets[place(row, i) + 1];
  }
  std::partial_sum(to_offsets.begin(), to_offsets.end(), to_offsets.begin());
  std::vector<std::int64_t> next(to_offsets.begin(), to_offsets.end() - 1);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = offsets[row]; i < offsets[row + 1]; ++i) {
      const std::int64_t at = next[place(row, i)]++;
      to_indices[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(row % rows_of_head);
    }
  }
}

template <typename Contents>
Contents& checked(const std::shared_ptr<Contents>& contents) {
  if (contents) return *contents;
  throw Error(ErrorCode::usage, "this BlockMask was moved from",
              "use the one that it was moved to");
}

MaskFingerprint valid(MaskFingerprint fingerprint) {
  validate(fingerprint);
  return fingerprint;
}

}  // namespace

void validate(const MaskFingerprint& fingerprint) {
  validate(fingerprint.shape);
  const auto& block = fingerprint.source.block;
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (block[i] >= 1 && block[i] <= std::numeric_limits<std::int32_t>::max()) continue;
    throw Error(ErrorCode::block_mask,
                fmt::format("the block of a mask's fingerprint is [{}, {}]", block[0], block[1]),
                "take the fingerprint from attention.mask_fingerprint(shape)");
  }
  const MaskFingerprint::Counts& counts = fingerprint.counts;
  for (const std::int64_t count : {counts.batch, counts.num_q_heads, counts.num_kv_heads}) {
    if (count >= 0) continue;
    throw Error(
        ErrorCode::tensor,
        fmt::format("a count of a mask's fingerprint is {}; it must be 0 (any) or more", count),
        "take the fingerprint from attention.mask_fingerprint(shape)");
  }
  if (fingerprint.scalars.size() == fingerprint.source.scalars.size()) return;
  throw Error(ErrorCode::block_mask,
              fmt::format("a mask's fingerprint names {} scalars and holds {} values",
                          fingerprint.source.scalars.size(), fingerprint.scalars.size()),
              "take the fingerprint from attention.mask_fingerprint(shape)");
}

bool operator==(const MaskFingerprint& a, const MaskFingerprint& b) {
  return a.source == b.source && a.shape == b.shape && a.counts == b.counts &&
         std::equal(a.scalars.begin(), a.scalars.end(), b.scalars.begin(), b.scalars.end(),
                    have_same_bits);
}

std::int64_t count_tile_rows(std::int64_t batch, std::int64_t heads, std::int64_t q_blocks) {
  if (batch < 1 || heads < 1 || q_blocks < 1) {
    throw Error(ErrorCode::tensor,
                fmt::format("a block mask of batch {}, {} heads and {} blocks has no rows of tiles",
                            batch, heads, q_blocks));
  }
  std::int64_t rows = 0;
  const bool wraps =
      __builtin_mul_overflow(batch, heads, &rows) || __builtin_mul_overflow(rows, q_blocks, &rows);
  if (!wraps && rows <= std::numeric_limits<std::int32_t>::max()) return rows;
  throw Error(ErrorCode::tensor,
              fmt::format("a block mask of batch {}, {} heads and {} blocks has more than 2^31 - 1 "
                          "rows of tiles",
                          batch, heads, q_blocks),
              "choose a greater block in the spec, or split the batch");
}

TileLists transpose(const TileLists& lists, std::int64_t rows_of_head, std::int64_t columns) {
  const auto rows = static_cast<std::int64_t>(lists.row_offsets.size()) - 1;
  if (rows < 1 || rows_of_head < 1 || rows % rows_of_head != 0) {
    throw Error(ErrorCode::block_mask,
                fmt::format("lists of {} rows of tiles do not divide into heads of {} rows", rows,
                            rows_of_head));
  }
  count_tile_rows(rows / rows_of_head, 1, columns);
  validate_list("partial", lists.row_offsets, lists.indices, rows, columns);
  validate_list("full", lists.full_row_offsets, lists.full_indices, rows, columns);
  TileLists to;
  transpose_list(lists.row_offsets, lists.indices, rows_of_head, columns, to.row_offsets,
                 to.indices);
  transpose_list(lists.full_row_offsets, lists.full_indices, rows_of_head, columns,
                 to.full_row_offsets, to.full_indices);
  return to;
}

BlockMask::BlockMask(MaskFingerprint fingerprint, TileLists lists, std::string path,
                     std::int64_t tiles_evaluated)
    : fingerprint_(valid(std::move(fingerprint))),
      q_blocks_(ceil_div(fingerprint_.shape.q_len, fingerprint_.source.block[0])),
      kv_blocks_(ceil_div(fingerprint_.shape.kv_len, fingerprint_.source.block[1])),
      contents_(std::make_shared<Contents>()) {
  count_tile_rows(batch(), heads(), q_blocks_);
  validate_list("partial", lists.row_offsets, lists.indices, rows(), kv_blocks_);
  validate_list("full", lists.full_row_offsets, lists.full_indices, rows(), kv_blocks_);
  validate_disjoint(lists, rows());
  contents_->path = std::move(path);
  contents_->counts = {.partial = static_cast<std::int64_t>(lists.indices.size()),
                       .full = static_cast<std::int64_t>(lists.full_indices.size()),
                       .evaluated = tiles_evaluated};
  contents_->host = host_lists(std::move(lists), rows());
}

BlockMask::BlockMask(MaskFingerprint fingerprint, std::shared_ptr<const DeviceTileLists> lists,
                     std::optional<TileCounts> counts, std::string path)
    : fingerprint_(valid(std::move(fingerprint))),
      q_blocks_(ceil_div(fingerprint_.shape.q_len, fingerprint_.source.block[0])),
      kv_blocks_(ceil_div(fingerprint_.shape.kv_len, fingerprint_.source.block[1])),
      contents_(std::make_shared<Contents>()) {
  count_tile_rows(batch(), heads(), q_blocks_);
  if (!lists) throw Error(ErrorCode::usage, "a block mask was made of no lists");
  contents_->origin = std::move(lists);
  contents_->path = std::move(path);
  contents_->counts = counts;
}

std::shared_ptr<const HostTileLists> BlockMask::on_host() const {
  Contents& contents = checked(contents_);
  const std::lock_guard lock(contents.host_mutex);
  const bool may_have_changed = contents.origin && !contents.counts;
  if (contents.host && !may_have_changed) return contents.host;
  TileLists now = contents.origin->to_host();
  if (!contents.host || contents.host->lists != now) {
    contents.host = host_lists(std::move(now), rows());
  }
  return contents.host;
}

const TileLists& BlockMask::transposed() const {
  const std::shared_ptr<const HostTileLists> now = on_host();
  Contents& contents = checked(contents_);
  const std::lock_guard lock(contents.host_mutex);
  if (contents.transposed_from != now) {
    std::optional<TileLists> made;
    if (contents.origin) made = contents.origin->transposed_to_host();
    contents.transposed = made ? *std::move(made) : transpose(now->lists, q_blocks_, kv_blocks_);
    contents.transposed_from = now;
  }
  return contents.transposed;
}

bool BlockMask::has_transposed() const {
  if (checked(contents_).origin && contents_->origin->has_transposed()) return true;
  const std::shared_ptr<const HostTileLists> now = on_host();
  const std::lock_guard lock(checked(contents_).host_mutex);
  return checked(contents_).transposed_from == now;
}

TileCounts BlockMask::counts() const {
  {
    const std::lock_guard lock(checked(contents_).host_mutex);
    if (checked(contents_).counts) return *checked(contents_).counts;
  }
  return checked(contents_).origin->counts();
}

std::string BlockMask::path() const {
  const std::lock_guard lock(checked(contents_).host_mutex);
  return checked(contents_).path;
}

void BlockMask::take_tiles(const BlockMask& other) {
  if (checked(contents_).origin) {
    throw Error(ErrorCode::block_mask, "the block mask lies on a GPU",
                "rebuild it with the Attention that made it");
  }
  const std::shared_ptr<const HostTileLists> host = other.on_host();
  const TileCounts counts = other.counts();
  std::string path = other.path();
  const std::lock_guard lock(checked(contents_).host_mutex);
  checked(contents_).host = host;
  checked(contents_).counts = counts;
  checked(contents_).path = std::move(path);
}

double BlockMask::density() const {
  const TileCounts tiles = counts();
  return static_cast<double>(tiles.partial + tiles.full) / static_cast<double>(rows() * kv_blocks_);
}

std::int64_t BlockMask::bytes() const {
  const TileCounts tiles = counts();
  return 2 * (rows() + 1) * static_cast<std::int64_t>(sizeof(std::int64_t)) +
         (tiles.partial + tiles.full) * static_cast<std::int64_t>(sizeof(std::int32_t));
}

std::vector<BlockMask::Tile> BlockMask::row(std::int64_t b, std::int64_t h,
                                            std::int64_t q_block) const {
  const auto require = [](std::string_view what, std::int64_t given, std::int64_t count) {
    if (given >= 0 && given < count) return;
    throw Error(ErrorCode::usage,
                fmt::format("a block mask has no row of {} {}: it has {}", what, given, count),
                fmt::format("give a number from 0 to {}", count - 1));
  };
  require("batch", b, batch());
  require("head", h, heads());
  require("q block", q_block, q_blocks_);
  const std::int64_t r = (b * heads() + h) * q_blocks_ + q_block;
  const std::shared_ptr<const HostTileLists> host = on_host();
  const TileLists& lists = host->lists;
  std::vector<Tile> tiles(static_cast<size_t>(kv_blocks_), Tile::empty);
  for (std::int64_t i = lists.row_offsets[r]; i < lists.row_offsets[r + 1]; ++i) {
    tiles[lists.indices[i]] = Tile::partial;
  }
  for (std::int64_t i = lists.full_row_offsets[r]; i < lists.full_row_offsets[r + 1]; ++i) {
    tiles[lists.full_indices[i]] = Tile::full;
  }
  return tiles;
}

void require_fit(const BlockMask& mask, const MaskSource& source, const Shape& shape,
                 const Bindings& bindings) {
  const auto refuse = [](std::string_view what, const auto& of_mask, const auto& of_call) {
    throw Error(
        ErrorCode::block_mask,
        fmt::format("the block mask was built for {} {}, but this call has {}", what, of_mask,
                    of_call),
        "build one with attention.block_mask(...) for the shape, offsets and scalars of this call");
  };
  const auto require_equal = [&](std::string_view what, const auto& of_mask, const auto& of_call) {
    if (of_mask != of_call) refuse(what, of_mask, of_call);
  };
  const MaskFingerprint& built = mask.fingerprint();
  require_equal("the mask_mod", built.source.mask_mod, source.mask_mod);
  require_equal("a q block of", built.source.block[0], source.block[0]);
  require_equal("a kv block of", built.source.block[1], source.block[1]);
  require_equal("q_len", built.shape.q_len, shape.q_len);
  require_equal("kv_len", built.shape.kv_len, shape.kv_len);
  require_equal("q_offset", built.shape.q_offset, shape.q_offset);
  require_equal("kv_offset", built.shape.kv_offset, shape.kv_offset);
  const auto require_count = [&](std::string_view what, std::int64_t of_mask,
                                 std::int64_t of_call) {
    if (of_mask != 0) require_equal(what, of_mask, of_call);
  };
  require_count("batch", built.counts.batch, shape.batch);
  require_count("num_q_heads", built.counts.num_q_heads, shape.num_q_heads);
  require_count("num_kv_heads", built.counts.num_kv_heads, shape.num_kv_heads);
  if (built.shape.batch != 1) require_equal("batch", built.shape.batch, shape.batch);
  if (built.shape.num_q_heads != 1) {
    require_equal("num_q_heads", built.shape.num_q_heads, shape.num_q_heads);
  }
  require_equal("this many scalars:", built.scalars.size(), source.scalars.size());
  for (size_t i = 0; i < source.scalars.size(); ++i) {
    const MaskSource::Scalar& scalar = source.scalars[i];
    if (scalar.index >= bindings.scalars().size()) {
      throw Error(ErrorCode::usage,
                  fmt::format("the bindings hold {} scalars, and mask_mod reads \"{}\"",
                              bindings.scalars().size(), scalar.name),
                  "make them with attention.bind({.buffers = ..., .scalars = ...})");
    }
    const double value = bindings.scalars()[scalar.index];
    if (!have_same_bits(built.scalars[i], value))
      refuse(scalar.name, printable(built.scalars[i]), printable(value));
  }
}

}  // namespace tilewright
