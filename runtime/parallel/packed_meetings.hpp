#pragma once

#include <array>

#include "meetings.hpp"
#include "packed_call.hpp"

namespace tilewright::parallel {

/// Whether a sequence has rows in one shard and columns in the other.
bool share_sequences(const PackedShard& rows, const PackedShard& columns);

/// What the mask keeps in rows of one shard and columns of another.
/// @param call over all rows and all columns of the two
/// @param block of the spec
Meeting packed_meeting(const PackedCall& call, const PackedShard& rows, const PackedShard& columns,
                       const std::array<std::int64_t, 2>& block);

/// The tiles that a call visits, over all heads of the mask.
std::int64_t packed_tiles(const PackedCall& call, const std::array<std::int64_t, 2>& block);

/// A call over all rows of one shard and all columns of another.
PackedCall call_of_shards(const Attention& attention, const SharedSequences& whole,
                          const PackedShard& rows, const PackedShard& columns,
                          const Bindings& bindings, Stream stream);

/// All columns of all sequences.
PackedShard all_columns(const SharedSequences& whole);

}  // namespace tilewright::parallel
