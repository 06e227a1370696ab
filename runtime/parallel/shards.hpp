#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../api/context_parallel.hpp"

namespace tilewright::parallel {

/// A shard and the rank that has it.
struct OwnedShard {
  Shard shard;
  int rank = 0;
};

/// All shards of a sequence, rising.
struct ShardList {
  Sharding sharding = Sharding::contiguous;
  std::vector<OwnedShard> shards;

  int count() const { return static_cast<int>(shards.size()); }
  std::vector<int> of_rank(int rank) const;  ///< rising
};

/// The sequence in 2 * ranks parts of nearly as many tiles each, or, where it has few tiles, of
/// nearly as many rows. Both shardings are made of them. If q_len is kv_len, each part has the same
/// rows and columns.
/// @throws Error with code tensor for fewer rows or columns than parts
std::vector<Shard> half_shards(const Shape& whole, const std::array<std::int64_t, 2>& block,
                               int ranks);

ShardList contiguous_shards(std::span<const Shard> halves);
ShardList zigzag_shards(std::span<const Shard> halves);

/// Contiguous shards of given lengths, one for each rank.
/// @throws Error with code tensor for another number of lengths, one below 1, or another sum
ShardList shards_of_lengths(const Shape& whole, std::span<const std::int64_t> q_lengths,
                            std::span<const std::int64_t> kv_lengths, int ranks);

/// Contiguous, or zigzag if its busiest rank visits at least 1 of 32 fewer tiles.
/// @param tiles of the mask in rows of each half shard
Sharding cheaper_sharding(std::span<const std::int64_t> tiles);

/// The same, where the half shards of zigzag are other rows.
/// @param contiguous, zigzag tiles in rows of each half shard
Sharding cheaper_sharding(std::span<const std::int64_t> contiguous,
                          std::span<const std::int64_t> zigzag);

}  // namespace tilewright::parallel
