#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "../api/context_parallel.hpp"
#include "gradient_schedule.hpp"
#include "packed_call.hpp"
#include "row_sums.hpp"
#include "schedule.hpp"
#include "transfer_lane.hpp"

namespace tilewright {

namespace parallel {

/// Of a plan of packed sequences.
struct PackedPlanState {
  SharedSequences sequences;  ///< completed
  std::vector<PackedShard> shards;
  std::vector<std::vector<PackedCall>> calls;  ///< of each step's calls
};

}  // namespace parallel

struct ContextPlanState {
  const void* owner = nullptr;  ///< of the ContextParallel that made it
  Shape whole;                  ///< of packed sequences: in one batch
  int rank = 0;
  parallel::ShardList list;
  parallel::Schedule schedule;
  std::optional<parallel::GradientSchedule> gradients;       ///< of a spec with gradients
  std::vector<std::vector<std::optional<BlockMask>>> masks;  ///< of each step's calls
  std::optional<parallel::PackedPlanState> packed;
  ContextTraffic traffic;
  std::optional<Bindings> bindings;  ///< of calls that are given none: every scalar at its default
  std::unique_ptr<parallel::TransferLane> lane;
  std::unique_ptr<parallel::RowSums> sums;  ///< of a spec with gradients
  std::vector<Message> sends;               ///< of one exchange, with room for the longest
  std::vector<Message> receives;            ///< likewise

  const Shard& shard(int i) const { return list.shards[static_cast<std::size_t>(i)].shard; }
  /// What named dimensions of buffers have.
  Shape bound_shape() const;
  /// Rows of the rank's tensors before those of a shard.
  std::int64_t q_row(int shard) const;
  std::int64_t kv_row(int shard) const;
  /// As messages call rows of q, and of k and v.
  std::string_view q_rows_name() const { return packed ? "total_q" : "q_len"; }
  std::string_view kv_rows_name() const { return packed ? "total_kv" : "kv_len"; }
  /// Rows of the rank's tensors.
  std::int64_t q_rows() const;
  std::int64_t kv_rows() const;
};

}  // namespace tilewright
