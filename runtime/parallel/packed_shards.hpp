#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shards.hpp"

namespace tilewright::parallel {

/// Some rows and columns of one sequence.
struct SequenceRange {
  std::int64_t q_first = 0;  ///< within the sequence
  std::int64_t q_len = 0;
  std::int64_t kv_first = 0;
  std::int64_t kv_len = 0;
};

/// A range of each sequence, in their order: their rows lie one after another.
using PackedShard = std::vector<SequenceRange>;

/// Who has which rows of packed sequences.
struct PackedShards {
  std::vector<PackedShard> shards;
  ShardList list;  ///< of the same number: with lengths, and in contiguous sharding with begins
};

/// Fills in what may be left empty.
/// @throws Error with code tensor for lengths that fall, do not begin at 0, or are of another
/// number
SharedSequences completed(const SharedSequences& sequences);

/// All rows and columns, in one batch.
/// @param sequences completed
Shape whole_of(const SharedSequences& sequences);

/// Half shards: 2 * ranks parts of the packed tokens, of as many rows each, or of each sequence.
/// The rows that do not divide go to other parts for each sequence, so that parts differ by one
/// row.
/// @throws Error with code tensor for fewer rows or columns than parts
std::vector<PackedShard> half_shards(const SharedSequences& sequences, Sharding sharding,
                                     int ranks);

PackedShards packed_shards(const SharedSequences& sequences, std::span<const PackedShard> halves,
                           Sharding sharding);

/// The packed tokens in ranges of given lengths, one for each rank.
/// @throws Error as shards_of_lengths
PackedShards packed_shards_of_lengths(const SharedSequences& sequences,
                                      std::span<const std::int64_t> q_lengths,
                                      std::span<const std::int64_t> kv_lengths, int ranks);

}  // namespace tilewright::parallel
