#include "verify/mask_check.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/ceil_div.hpp"

namespace tilewright::verify {
namespace {

using Tile = BlockMask::Tile;

const char* name_of(Tile tile) {
  return tile == Tile::empty ? "empty" : tile == Tile::full ? "full" : "partial";
}

// One row of tiles of one head, and what every tile of it should be.
struct TileRow {
  std::int64_t b, h, q_block;
  std::int64_t rows = 0;           // inside q_len
  std::vector<std::int64_t> kept;  // elements of each tile
};

TileRow count_kept(const std::array<std::int64_t, 2>& block, const Shape& shape,
                   const KeptRow& kept_row, TileRow tiles) {
  std::vector<unsigned char> keep(static_cast<std::size_t>(shape.kv_len));
  const std::int64_t first = tiles.q_block * block[0];
  const std::int64_t last = std::min(first + block[0], shape.q_len);
  tiles.rows = last - first;
  for (std::int64_t row = first; row < last; ++row) {
    kept_row(tiles.b, tiles.h, row, keep.data());
    for (std::int64_t column = 0; column < shape.kv_len; ++column) {
      tiles.kept[static_cast<std::size_t>(column / block[1])] +=
          keep[static_cast<std::size_t>(column)] != 0;
    }
  }
  return tiles;
}

std::int64_t columns_of(const std::array<std::int64_t, 2>& block, const Shape& shape,
                        std::size_t kv_block) {
  const std::int64_t first = static_cast<std::int64_t>(kv_block) * block[1];
  return std::min(first + block[1], shape.kv_len) - first;
}

void compare(MaskVerdict& verdict, const std::array<std::int64_t, 2>& block, const Shape& shape,
             const TileRow& tiles, const std::vector<Tile>& listed) {
  for (std::size_t kv_block = 0; kv_block < listed.size(); ++kv_block) {
    const std::int64_t elements = tiles.rows * columns_of(block, shape, kv_block);
    const std::int64_t kept = tiles.kept[kv_block];
    const Tile wanted = kept == 0 ? Tile::empty : kept == elements ? Tile::full : Tile::partial;
    ++verdict.tiles;
    if (listed[kv_block] == wanted) continue;
    if (verdict.wrong_tiles++ == 0) {
      verdict.first_wrong = fmt::format(
          "tile (q block {}, kv block {}) of b {}, h {} is listed as {}, but mask_mod keeps {} of "
          "its {} elements",
          tiles.q_block, kv_block, tiles.b, tiles.h, name_of(listed[kv_block]), kept, elements);
    }
  }
}

}  // namespace

MaskVerdict check_block_mask(const Spec& spec, const Problem& problem, const BlockMask& mask,
                             const FloatReading& reading, ThreadPool& threads) {
  const SnippetValues values(spec, problem.snippet, problem.shape);
  const abi::SnippetArguments arguments = values.arguments();
  const std::vector<float> scores(static_cast<std::size_t>(problem.shape.kv_len));
  const auto kept_row = [&](std::int64_t b, std::int64_t h, std::int64_t row, unsigned char* keep) {
    std::vector<float> modified(scores.size());
    reading.row(arguments, b, h, row, scores.data(), modified.data(), keep);
  };
  return check_block_mask(spec.block, problem.shape, mask, kept_row, threads);
}

MaskVerdict check_block_mask(const std::array<std::int64_t, 2>& block, const Shape& shape,
                             const BlockMask& mask, const KeptRow& kept_row, ThreadPool& threads) {
  const std::int64_t q_blocks = ceil_div(shape.q_len, block[0]);
  const std::int64_t kv_blocks = ceil_div(shape.kv_len, block[1]);
  std::vector<TileRow> rows(static_cast<std::size_t>(shape.batch * shape.num_q_heads * q_blocks));
  threads.parallel_for(static_cast<std::int64_t>(rows.size()), [&](std::int64_t item, int) {
    TileRow tiles{.b = item / q_blocks / shape.num_q_heads,
                  .h = item / q_blocks % shape.num_q_heads,
                  .q_block = item % q_blocks,
                  .rows = 0,
                  .kept = std::vector<std::int64_t>(static_cast<std::size_t>(kv_blocks))};
    rows[static_cast<std::size_t>(item)] = count_kept(block, shape, kept_row, std::move(tiles));
  });

  MaskVerdict verdict;
  for (const TileRow& tiles : rows) {
    const std::int64_t b = mask.batch() == 1 ? 0 : tiles.b;
    const std::int64_t h = mask.heads() == 1 ? 0 : tiles.h;
    compare(verdict, block, shape, tiles, mask.row(b, h, tiles.q_block));
  }
  verdict.ok = verdict.wrong_tiles == 0;
  return verdict;
}

}  // namespace tilewright::verify
