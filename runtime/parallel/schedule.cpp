#include "runtime/parallel/schedule.hpp"

#include <algorithm>
#include <array>

#include "base/ceil_div.hpp"

namespace tilewright::parallel {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return round_up(bytes, kAlignment);
}

class Scheduler {
 public:
  Scheduler(const ShardList& list, const Meetings& meetings, const ScheduleSizes& sizes, int rank,
            int ranks)
      : list_(list), meetings_(meetings), sizes_(sizes), rank_(rank), ranks_(ranks) {}

  Schedule run() {
    add_own_step();
    for (int distance = 1; distance < ranks_; ++distance) add_step(distance);
    place_receives();
    for (Step& step : schedule_.steps) place_results(step);
    for (const int shard : list_.of_rank(rank_)) add_merges(shard);
    schedule_.workspace_bytes = end_;
    return std::move(schedule_);
  }

 private:
  const Meeting& meeting(int q_shard, int kv_shard) const {
    return meetings_[static_cast<std::size_t>(q_shard) * list_.shards.size() +
                     static_cast<std::size_t>(kv_shard)];
  }
  const Shard& shard(int i) const { return list_.shards[static_cast<std::size_t>(i)].shard; }

  void add_own_step() {
    Step step;
    for (const int i : list_.of_rank(rank_)) step.calls.push_back(call_that_writes_out(i));
    for (const int i : list_.of_rank(rank_)) {
      for (const int j : list_.of_rank(rank_)) {
        if (i != j && meeting(i, j).tiles > 0) step.calls.push_back(call_of_part(i, j));
      }
    }
    schedule_.steps.push_back(std::move(step));
  }

  // Rows with nothing kept need their zeros, so it has all rows.
  PairCall call_that_writes_out(int i) const {
    const Meeting& met = meeting(i, i);
    PairCall call{.q_shard = i, .kv_shard = i, .rows = shard(i).q_len, .writes_out = true};
    call.first_column = met.tiles > 0 ? met.column_begin : 0;
    call.columns = met.tiles > 0 ? met.columns() : shard(i).kv_len;
    return call;
  }

  PairCall call_of_part(int i, int j) const {
    const Meeting& met = meeting(i, j);
    PairCall call{.q_shard = i, .kv_shard = j, .rows = shard(i).q_len};
    if (met.rows() <= shard(i).q_len - shard(i).q_len / 4) {
      call.first_row = met.row_begin;
      call.rows = met.rows();
    }
    call.first_column = met.column_begin;
    call.columns = met.columns();
    return call;
  }

  void add_step(int distance) {
    const int to = (rank_ + distance) % ranks_;
    const int from = (rank_ + ranks_ - distance) % ranks_;
    Step step{.distance = distance, .sends = {}, .receives = {}, .calls = {}, .returns = {}};
    for (const int j : list_.of_rank(rank_)) {
      if (!add_transfer(step.sends, to, to, j)) continue;
      for (const int i : list_.of_rank(to)) {
        if (meeting(i, j).tiles > 0) step.returns.push_back(call_of_part(i, j));
      }
    }
    for (const int j : list_.of_rank(from)) {
      if (!add_transfer(step.receives, rank_, from, j)) continue;
      for (const int i : list_.of_rank(rank_)) {
        if (meeting(i, j).tiles == 0) continue;
        step.calls.push_back(call_of_part(i, j));
        step.calls.back().transfer = static_cast<int>(step.receives.size()) - 1;
      }
    }
    if (!step.sends.empty() || !step.receives.empty()) schedule_.steps.push_back(std::move(step));
  }

  // Columns of shard j that a reader's rows need.
  bool add_transfer(std::vector<Transfer>& transfers, int reader, int peer, int j) const {
    std::int64_t begin = shard(j).kv_len;
    std::int64_t end = 0;
    for (const int i : list_.of_rank(reader)) {
      if (meeting(i, j).tiles == 0) continue;
      begin = std::min(begin, meeting(i, j).column_begin);
      end = std::max(end, meeting(i, j).column_end);
    }
    if (begin >= end) return false;
    transfers.push_back({.peer = peer, .shard = j, .first_column = begin, .columns = end - begin});
    return true;
  }

  // What a step receives arrives while the step before computes, so two places take turns.
  void place_receives() {
    std::array<std::int64_t, 2> sizes = {};
    std::size_t turn = 0;
    for (Step& step : schedule_.steps) {
      for (const Transfer& sent : step.sends) schedule_.bytes_sent += bytes(sent);
      if (step.receives.empty()) continue;
      std::int64_t end = 0;
      for (Transfer& received : step.receives) {
        received.k_offset = end;
        received.v_offset = end + aligned(sizes_.k_bytes(received.columns));
        end = received.v_offset + aligned(sizes_.v_bytes(received.columns));
        schedule_.bytes_received += bytes(received);
      }
      sizes[turn] = std::max(sizes[turn], end);
      turn = 1 - turn;
    }
    turn = 0;
    for (Step& step : schedule_.steps) {
      if (step.receives.empty()) continue;
      for (Transfer& received : step.receives) {
        received.k_offset += turn == 0 ? 0 : sizes[0];
        received.v_offset += turn == 0 ? 0 : sizes[0];
      }
      turn = 1 - turn;
    }
    end_ = sizes[0] + sizes[1];
    schedule_.receive_bytes = end_;
  }

  std::int64_t bytes(const Transfer& transfer) const {
    return sizes_.k_bytes(transfer.columns) + sizes_.v_bytes(transfer.columns);
  }

  void place_results(Step& step) {
    for (PairCall& call : step.calls) {
      const std::int64_t rows = sizes_.batch * sizes_.num_q_heads * call.rows;
      call.lse_offset = take(rows * std::int64_t{sizeof(float)});
      if (!call.writes_out) {
        call.out_offset = take(rows * sizes_.v_head_dim * sizes_.out_element);
      }
    }
  }

  std::int64_t take(std::int64_t bytes) {
    const std::int64_t begin = end_;
    end_ += aligned(bytes);
    return begin;
  }

  void place_lse(MergedRows& merged, std::int64_t rows_of_call) {
    const std::int64_t rows = sizes_.batch * sizes_.num_q_heads * merged.rows;
    merged.lse_offsets.push_back(
        rows_of_call == merged.rows ? -1 : take(rows * std::int64_t{sizeof(float)}));
  }

  void add_merges(int q_shard) {
    std::vector<const PairCall*> parts;
    std::vector<std::int64_t> bounds;
    for (const Step& step : schedule_.steps) {
      for (const PairCall& call : step.calls) {
        if (call.q_shard != q_shard || call.writes_out) continue;
        parts.push_back(&call);
        bounds.insert(bounds.end(), {call.first_row, call.first_row + call.rows});
      }
    }
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      MergedRows merged{.q_shard = q_shard,
                        .first_row = bounds[i],
                        .rows = bounds[i + 1] - bounds[i],
                        .parts = {},
                        .lse_offsets = {}};
      for (const PairCall* part : parts) {
        if (part->first_row <= bounds[i] && part->first_row + part->rows > bounds[i]) {
          merged.parts.push_back(part);
        }
      }
      if (merged.parts.empty()) continue;
      place_lse(merged, shard(q_shard).q_len);
      for (const PairCall* part : merged.parts) place_lse(merged, part->rows);
      schedule_.merges.push_back(std::move(merged));
    }
  }

  const ShardList& list_;
  const Meetings& meetings_;
  const ScheduleSizes& sizes_;
  int rank_;
  int ranks_;
  std::int64_t end_ = 0;
  Schedule schedule_;
};

}  // namespace

ScheduleSizes schedule_sizes(const Spec& spec, const Shape& shape) {
  return {.batch = shape.batch,
          .num_q_heads = shape.num_q_heads,
          .num_kv_heads = shape.num_kv_heads,
          .head_dim = spec.head_dim,
          .v_head_dim = spec.value_head_dim(),
          .kv_element = static_cast<std::int64_t>(size_of(spec.key_value_dtype())),
          .out_element = static_cast<std::int64_t>(size_of(spec.output_dtype()))};
}

std::int64_t Schedule::calls() const {
  std::int64_t count = 0;
  for (const Step& step : steps) count += std::ssize(step.calls);
  return count;
}

Schedule make_schedule(const ShardList& list, const Meetings& meetings, const ScheduleSizes& sizes,
                       int rank, int ranks) {
  return Scheduler(list, meetings, sizes, rank, ranks).run();
}

}  // namespace tilewright::parallel
