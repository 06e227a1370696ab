#pragma once

#include <cstdint>
#include <vector>

#include "../../generator/spec/spec.hpp"
#include "meetings.hpp"
#include "shards.hpp"

namespace tilewright::parallel {

/// Workspaces and what lies in them begin at multiples of it.
inline constexpr std::int64_t kAlignment = 256;

/// Columns of a shard of k and v that go from one rank to another.
struct Transfer {
  int peer = 0;
  int shard = 0;                  ///< in the list
  std::int64_t first_column = 0;  ///< within the shard
  std::int64_t columns = 0;
  std::int64_t k_offset = 0;  ///< in the workspace of the receiver
  std::int64_t v_offset = 0;
};

/// A call over rows of one shard and columns of another.
struct PairCall {
  int q_shard = 0;             ///< in the list
  int kv_shard = 0;            ///< in the list
  std::int64_t first_row = 0;  ///< within the shard
  std::int64_t rows = 0;
  std::int64_t first_column = 0;  ///< within the shard
  std::int64_t columns = 0;
  bool writes_out = false;      ///< the call's out itself; else a part in the workspace
  int transfer = -1;            ///< of the step's receives; -1: the rank's own columns
  std::int64_t out_offset = 0;  ///< in the workspace, where it does not write out itself
  std::int64_t lse_offset = 0;  ///< in the workspace
};

/// The exchange with the rank that is `distance` before and the one that is `distance` after, and
/// the calls over what it brings. Step 0 has the rank's own columns and no exchange.
struct Step {
  int distance = 0;
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
  std::vector<PairCall> calls;
  /// Calls of the rank that is `distance` after, over what it is sent, as that rank lists them:
  /// their gradients of k and v come back.
  std::vector<PairCall> returns;
};

/// Rows of a shard that several calls have parts of.
struct MergedRows {
  int q_shard = 0;  ///< in the list
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::vector<const PairCall*> parts;  ///< in addition to the one that writes out
  /// In the workspace: lse of these rows alone, as Attention::merge takes it. Of the call that
  /// writes out, then of the parts; -1 where the call has no other rows.
  std::vector<std::int64_t> lse_offsets;
};

/// Sizes that bytes follow from.
struct ScheduleSizes {
  std::int64_t batch = 1;
  std::int64_t num_q_heads = 1;
  std::int64_t num_kv_heads = 1;
  std::int64_t head_dim = 0;
  std::int64_t v_head_dim = 0;
  std::int64_t kv_element = 0;   ///< bytes
  std::int64_t out_element = 0;  ///< bytes

  std::int64_t k_bytes(std::int64_t columns) const {
    return batch * num_kv_heads * columns * head_dim * kv_element;
  }
  std::int64_t v_bytes(std::int64_t columns) const {
    return batch * num_kv_heads * columns * v_head_dim * kv_element;
  }
};
ScheduleSizes schedule_sizes(const Spec& spec, const Shape& shape);

/// What one rank does in one call. Merges point into steps, so it moves and is not copied.
struct Schedule {
  Schedule() = default;
  Schedule(Schedule&&) = default;
  Schedule& operator=(Schedule&&) = default;

  std::vector<Step> steps;  ///< step 0, then those with an exchange, rising
  std::vector<MergedRows> merges;
  std::int64_t receive_bytes = 0;  ///< of the workspace, at its begin: columns of peers
  std::int64_t workspace_bytes = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;

  std::int64_t calls() const;
};

/// Each shard of k and v goes straight to the ranks that need some of it, cut to the columns that
/// they need; pairs of shards that do not meet are left out. Rows are cut too where that leaves out
/// a quarter. In step d each rank sends to the one d after it, and receives from the one d before.
Schedule make_schedule(const ShardList& list, const Meetings& meetings, const ScheduleSizes& sizes,
                       int rank, int ranks);

}  // namespace tilewright::parallel
