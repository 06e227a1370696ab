#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "../api/block_mask.hpp"
#include "shards.hpp"

namespace tilewright::parallel {

/// What the mask keeps in rows of one shard and columns of another: the least box around it.
struct Meeting {
  std::int64_t tiles = 0;      ///< 0: the pair is dropped
  std::int64_t row_begin = 0;  ///< within the shard
  std::int64_t row_end = 0;
  std::int64_t column_begin = 0;
  std::int64_t column_end = 0;

  std::int64_t rows() const { return row_end - row_begin; }
  std::int64_t columns() const { return column_end - column_begin; }
};

/// The box around the tiles of a block mask.
/// @param rows, columns of the shards
Meeting meeting_of(const BlockMask& mask, std::int64_t rows, std::int64_t columns);

/// A pair of shards without a mask.
Meeting whole_meeting(std::int64_t rows, std::int64_t columns,
                      const std::array<std::int64_t, 2>& block);

/// Meetings of all pairs: of shard i's rows and shard j's columns at [i * count + j].
using Meetings = std::vector<Meeting>;

/// Meets this rank's rows of shards with all columns, and gathers those of the other ranks.
/// @param meet of shard i's rows and shard j's columns; called for this rank's shards
Meetings gather_meetings(Communicator& communicator, const ShardList& list,
                         const std::function<Meeting(int i, int j)>& meet);

}  // namespace tilewright::parallel
