#include "runtime/parallel/gradient_schedule.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ceil_div.hpp"
#include "generator/spec/gradients.hpp"

namespace tilewright::parallel {
namespace {

constexpr std::int64_t kSumElement = sizeof(float);

class GradientScheduler {
 public:
  GradientScheduler(const Spec& spec, const ShardList& list, const Schedule& forward,
                    const ScheduleSizes& sizes, int rank, int ranks)
      : spec_(spec),
        list_(list),
        forward_(forward),
        sizes_(sizes),
        rank_(rank),
        ranks_(ranks),
        end_(forward.receive_bytes) {}

  GradientSchedule run(BufferGradients buffers, const KernelBytes& kernel_bytes) {
    schedule_.has_q = has_gradient(spec_, "q");
    schedule_.has_k = has_gradient(spec_, "k");
    schedule_.has_v = has_gradient(spec_, "v");
    schedule_.buffers = std::move(buffers);
    add_steps();
    find_summed_rows();
    place_sums();
    place_buffers();
    place_rows();
    place_parts(&GradientStep::parts);
    place_parts(&GradientStep::returned);
    schedule_.kernel_bytes = kernel_bytes;
    schedule_.kernel_offset = end_;
    return std::move(schedule_);
  }

 private:
  const Step& step(const GradientStep& of) const {
    return forward_.steps[static_cast<std::size_t>(of.step)];
  }

  void add_steps() {
    schedule_.bytes_sent = forward_.bytes_sent;
    schedule_.bytes_received = forward_.bytes_received;
    schedule_.steps.resize(static_cast<std::size_t>(ranks_));
    for (std::size_t i = 0; i < forward_.steps.size(); ++i) {
      const Step& step = forward_.steps[i];
      GradientStep& made = schedule_.steps[static_cast<std::size_t>(step.distance)];
      made.step = static_cast<int>(i);
      made.parts.resize(step.calls.size());
      made.returned.resize(step.returns.size());
      if (step.distance == 0) continue;
      for (const PairCall& call : step.calls) schedule_.bytes_sent += bytes_of(call);
      for (const PairCall& call : step.returns) schedule_.bytes_received += bytes_of(call);
    }
    schedule_.bytes_sent += schedule_.buffers.bytes_sent(rank_, ranks_);
    schedule_.bytes_received += schedule_.buffers.bytes_received(rank_, ranks_);
  }

  std::int64_t k_bytes(const PairCall& call) const {
    return schedule_.has_k ? sizes_.k_bytes(call.columns) : 0;
  }
  std::int64_t v_bytes(const PairCall& call) const {
    return schedule_.has_v ? sizes_.v_bytes(call.columns) : 0;
  }
  std::int64_t bytes_of(const PairCall& call) const { return k_bytes(call) + v_bytes(call); }

  void find_summed_rows() {
    RowRange rows, columns;
    for (const int shard : list_.of_rank(rank_)) {
      rows.end += list_.shards[static_cast<std::size_t>(shard)].shard.q_len;
      columns.end += list_.shards[static_cast<std::size_t>(shard)].shard.kv_len;
    }
    schedule_.first_is_whole = is_first_whole(rows.count(), columns.count());
    if (!schedule_.first_is_whole) {
      schedule_.summed_q = rows;
      schedule_.summed_kv = columns;
      return;
    }
    for (const GradientStep& of : schedule_.steps) {
      if (of.step < 0 || step(of).distance == 0) continue;
      for (const PairCall& call : step(of).calls) {
        schedule_.summed_q.include(call.first_row, call.rows);
      }
      for (const PairCall& call : step(of).returns) {
        schedule_.summed_kv.include(call.first_column, call.columns);
      }
    }
  }

  // Of one shard, whose rows are the rank's from 0 on. A packed call leaves out rows of no
  // sequence.
  bool is_first_whole(std::int64_t rows, std::int64_t columns) const {
    if (spec_.is_packed() || list_.of_rank(rank_).size() != 1) return false;
    const GradientStep& own = schedule_.steps.front();
    if (own.step < 0 || step(own).calls.size() != 1) return false;
    const PairCall& call = step(own).calls.front();
    return call.rows == rows && call.columns == columns;
  }

  void place_sums() {
    const std::int64_t rows = schedule_.summed_q.count() * sizes_.batch * sizes_.num_q_heads;
    const std::int64_t columns = schedule_.summed_kv.count() * sizes_.batch * sizes_.num_kv_heads;
    if (schedule_.has_q) schedule_.q_sum_offset = take(rows * sizes_.head_dim * kSumElement);
    if (schedule_.has_k) schedule_.k_sum_offset = take(columns * sizes_.head_dim * kSumElement);
    if (schedule_.has_v) schedule_.v_sum_offset = take(columns * sizes_.v_head_dim * kSumElement);
  }

  void place_buffers() {
    BufferGradients& buffers = schedule_.buffers;
    buffers.part_offset = take(buffers.share_bytes());
    buffers.share_offset = take(buffers.share_bytes());
    if (ranks_ > 1) buffers.received_offset = take(buffers.received_bytes(ranks_));
  }

  // Calls run one after another, and what only one of them needs is used again.
  void place_rows() {
    std::int64_t most = 0;
    for (const Step& step : forward_.steps) {
      for (const PairCall& call : step.calls) most = std::max(most, call.rows);
    }
    most *= sizes_.batch * sizes_.num_q_heads;
    schedule_.lse_offset = take(most * kSumElement);
    schedule_.dlse_offset = take(most * kSumElement);
    if (!schedule_.has_q) return;
    schedule_.q_part_offset =
        take(most * sizes_.head_dim * static_cast<std::int64_t>(size_of(spec_.dtype)));
  }

  // Parts of a distance travel while those of the next one are made, so two places take turns. The
  // rank's own are added up at once, call by call.
  void place_parts(std::vector<GradientPart> GradientStep::*which) {
    std::array<std::int64_t, 2> sizes = {};
    for (const bool places : {false, true}) {
      for (std::size_t distance = 0; distance < schedule_.steps.size(); ++distance) {
        GradientStep& of = schedule_.steps[distance];
        if (of.step < 0) continue;
        const std::vector<PairCall>& calls =
            which == &GradientStep::parts ? step(of).calls : step(of).returns;
        const std::int64_t begin = end_ + (distance % 2 == 0 ? 0 : sizes[0]);
        std::int64_t end = begin;
        for (std::size_t c = 0; c < calls.size(); ++c) {
          if (distance == 0) end = begin;
          if (places) (of.*which)[c].k_offset = end;
          end += round_up(k_bytes(calls[c]), kAlignment);
          if (places) (of.*which)[c].v_offset = end;
          end += round_up(v_bytes(calls[c]), kAlignment);
          if (!places) sizes[distance % 2] = std::max(sizes[distance % 2], end - begin);
        }
      }
    }
    end_ += sizes[0] + sizes[1];
  }

  std::int64_t take(std::int64_t bytes) {
    const std::int64_t begin = end_;
    end_ += round_up(bytes, kAlignment);
    return begin;
  }

  const Spec& spec_;
  const ShardList& list_;
  const Schedule& forward_;
  const ScheduleSizes& sizes_;
  int rank_;
  int ranks_;
  std::int64_t end_;
  GradientSchedule schedule_;
};

}  // namespace

void RowRange::include(std::int64_t first, std::int64_t count) {
  if (count == 0) return;
  const bool is_empty = this->count() == 0;
  begin = is_empty ? first : std::min(begin, first);
  end = is_empty ? first + count : std::max(end, first + count);
}

std::int64_t GradientSchedule::workspace_bytes(bool deterministic) const {
  return kernel_offset + round_up(kernel_bytes.of(deterministic), kAlignment);
}

GradientSchedule make_gradient_schedule(const Spec& spec, const ShardList& list,
                                        const Schedule& forward, const ScheduleSizes& sizes,
                                        int rank, int ranks, BufferGradients buffers,
                                        const KernelBytes& kernel_bytes) {
  return GradientScheduler(spec, list, forward, sizes, rank, ranks)
      .run(std::move(buffers), kernel_bytes);
}

}  // namespace tilewright::parallel
