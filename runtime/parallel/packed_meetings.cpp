#include "runtime/parallel/packed_meetings.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "runtime/call/plan_map.hpp"

namespace tilewright::parallel {
namespace {

using Tiles = std::vector<PlanMap::Tile>;

bool is_kept(PlanMap::Tile tile) {
  return tile != PlanMap::Tile::empty;
}

// body(sequence, row of tiles, its tiles), of each head of the mask.
template <typename Body>
void for_each_row(const PlanMap& map, std::int64_t batch, const Body& body) {
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t q_blocks = map.q_blocks(b);
    for (std::int64_t item = 0; item < map.heads() * q_blocks; ++item) {
      const std::int64_t q_block = item % q_blocks;
      body(b, q_block,
           map.has_tiles()
               ? map.row(b, item / q_blocks, q_block)
               : Tiles(static_cast<std::size_t>(map.kv_blocks(b)), PlanMap::Tile::full));
    }
  }
}

// Where each sequence's range begins within the shard.
std::vector<std::int64_t> begins_of(const PackedShard& shard, std::int64_t SequenceRange::*length) {
  std::vector<std::int64_t> begins;
  std::int64_t at = 0;
  for (const SequenceRange& range : shard) {
    begins.push_back(at);
    at += range.*length;
  }
  return begins;
}

}  // namespace

bool share_sequences(const PackedShard& rows, const PackedShard& columns) {
  for (std::size_t b = 0; b < rows.size(); ++b) {
    if (rows[b].q_len > 0 && columns[b].kv_len > 0) return true;
  }
  return false;
}

Meeting packed_meeting(const PackedCall& call, const PackedShard& rows, const PackedShard& columns,
                       const std::array<std::int64_t, 2>& block) {
  const PlanMap map(call.plan(), block);
  const std::vector<std::int64_t> row_begins = begins_of(rows, &SequenceRange::q_len);
  const std::vector<std::int64_t> column_begins = begins_of(columns, &SequenceRange::kv_len);
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  Meeting box{.row_begin = kFar, .column_begin = kFar};
  for_each_row(
      map, call.shape().batch, [&](std::int64_t b, std::int64_t q_block, const Tiles& tiles) {
        const auto first = std::find_if(tiles.begin(), tiles.end(), is_kept);
        if (first == tiles.end()) return;
        const auto end = std::find_if(tiles.rbegin(), tiles.rend(), is_kept).base();
        const auto sequence = static_cast<std::size_t>(b);
        const abi::RowsOfTiles of = map.rows_of(b, q_block);
        const std::int64_t columns_end =
            std::min((end - tiles.begin()) * block[1], columns[sequence].kv_len);
        box.tiles += std::count_if(first, end, is_kept);
        box.row_begin = std::min(box.row_begin, row_begins[sequence] + of.begin);
        box.row_end = std::max(box.row_end, row_begins[sequence] + of.end);
        box.column_begin = std::min(box.column_begin,
                                    column_begins[sequence] + (first - tiles.begin()) * block[1]);
        box.column_end = std::max(box.column_end, column_begins[sequence] + columns_end);
      });
  return box.tiles == 0 ? Meeting{} : box;
}

std::int64_t packed_tiles(const PackedCall& call, const std::array<std::int64_t, 2>& block) {
  const PlanMap map(call.plan(), block);
  std::int64_t count = 0;
  for_each_row(map, call.shape().batch, [&](std::int64_t, std::int64_t, const Tiles& tiles) {
    count += std::count_if(tiles.begin(), tiles.end(), is_kept);
  });
  return count;
}

PackedCall call_of_shards(const Attention& attention, const SharedSequences& whole,
                          const PackedShard& rows, const PackedShard& columns,
                          const Bindings& bindings, Stream stream) {
  PackedBox box = {.rows = &rows, .columns = &columns};
  for (const SequenceRange& range : rows) box.row_count += range.q_len;
  for (const SequenceRange& range : columns) box.column_count += range.kv_len;
  return {attention, whole, box, bindings, false, stream};
}

PackedShard all_columns(const SharedSequences& whole) {
  PackedShard columns;
  for (std::size_t b = 0; b + 1 < whole.kv_begin.size(); ++b) {
    columns.push_back({.kv_len = whole.kv_begin[b + 1] - whole.kv_begin[b]});
  }
  return columns;
}

}  // namespace tilewright::parallel
