#include "runtime/parallel/plan_state.hpp"

namespace tilewright {
namespace {

std::int64_t rows_before(const parallel::ShardList& list, int shard, std::int64_t Shard::*length) {
  const int rank = list.shards[static_cast<std::size_t>(shard)].rank;
  std::int64_t rows = 0;
  for (const int i : list.of_rank(rank)) {
    if (i < shard) rows += list.shards[static_cast<std::size_t>(i)].shard.*length;
  }
  return rows;
}

std::int64_t rows_of_rank(const ContextPlanState& state, std::int64_t Shard::*length) {
  std::int64_t rows = 0;
  for (const int i : state.list.of_rank(state.rank)) rows += state.shard(i).*length;
  return rows;
}

// Where a shard's ranges lie in the whole's tensors.
void append_ranges(std::vector<Shard>& shards, const parallel::PackedPlanState& packed,
                   std::size_t shard) {
  for (std::size_t b = 0; b < packed.shards[shard].size(); ++b) {
    const parallel::SequenceRange& range = packed.shards[shard][b];
    if (range.q_len == 0 && range.kv_len == 0) continue;
    shards.push_back({.q_begin = packed.sequences.q_begin[b] + range.q_first,
                      .q_len = range.q_len,
                      .kv_begin = packed.sequences.kv_begin[b] + range.kv_first,
                      .kv_len = range.kv_len});
  }
}

}  // namespace

Shape ContextPlanState::bound_shape() const {
  Shape shape = whole;
  if (packed) shape.batch = std::ssize(packed->sequences.q_begin) - 1;
  return shape;
}

std::int64_t ContextPlanState::q_row(int shard) const {
  return rows_before(list, shard, &Shard::q_len);
}

std::int64_t ContextPlanState::kv_row(int shard) const {
  return rows_before(list, shard, &Shard::kv_len);
}

std::int64_t ContextPlanState::q_rows() const {
  return rows_of_rank(*this, &Shard::q_len);
}

std::int64_t ContextPlanState::kv_rows() const {
  return rows_of_rank(*this, &Shard::kv_len);
}

const Shape& ContextPlan::shape() const {
  return state_->whole;
}

Sharding ContextPlan::sharding() const {
  return state_->list.sharding;
}

std::vector<Shard> ContextPlan::shards() const {
  std::vector<Shard> own;
  for (const int i : state_->list.of_rank(state_->rank)) {
    if (state_->packed && sharding() == Sharding::zigzag) {
      append_ranges(own, *state_->packed, static_cast<std::size_t>(i));
    } else {
      own.push_back(state_->shard(i));
    }
  }
  return own;
}

std::int64_t ContextPlan::q_rows() const {
  return state_->q_rows();
}

std::int64_t ContextPlan::kv_rows() const {
  return state_->kv_rows();
}

ContextTraffic ContextPlan::traffic() const {
  return state_->traffic;
}

std::string_view to_string(Sharding sharding) {
  switch (sharding) {
    case Sharding::automatic:
      return "automatic";
    case Sharding::contiguous:
      return "contiguous";
    case Sharding::zigzag:
      return "zigzag";
  }
  return "unknown";
}

}  // namespace tilewright
