#include "runtime/parallel/make_plan.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "generator/spec/gradients.hpp"
#include "runtime/parallel/plan_parts.hpp"

namespace tilewright::parallel {
namespace {

class PlanMaker {
 public:
  PlanMaker(const Attention& attention, Communicator& communicator, const Shape& whole,
            const Bindings& bindings, const ContextPlanOptions& options)
      : attention_(attention),
        communicator_(communicator),
        whole_(whole),
        bindings_(bindings),
        options_(options) {}

  std::shared_ptr<ContextPlanState> run() {
    validate(whole_);
    require_agreement(communicator_, facts(), ErrorCode::tensor);
    auto state = std::make_shared<ContextPlanState>();
    state->whole = whole_;
    state->rank = communicator_.rank();
    state->list = shard_list();
    const Meetings meetings = gather_meetings(communicator_, state->list, [&](int i, int j) {
      return meet(state->shard(i), state->shard(j));
    });
    const ScheduleSizes sizes = schedule_sizes(attention_.spec(), whole_);
    state->schedule =
        make_schedule(state->list, meetings, sizes, communicator_.rank(), communicator_.size());
    add_masks(*state);
    if (has_gradients()) {
      add_gradients(*state, attention_.spec(), bindings_, sizes, communicator_.size(),
                    kernel_bytes(*state));
    }
    complete_plan(*state, attention_, meetings, sizes, communicator_.size());
    return state;
  }

 private:
  std::vector<Fact> facts() const {
    std::vector<Fact> facts = {{"batch", std::to_string(whole_.batch)},
                               {"q_len", std::to_string(whole_.q_len)},
                               {"kv_len", std::to_string(whole_.kv_len)},
                               {"num_q_heads", std::to_string(whole_.num_q_heads)},
                               {"num_kv_heads", std::to_string(whole_.num_kv_heads)},
                               {"q_offset", std::to_string(whole_.q_offset)},
                               {"kv_offset", std::to_string(whole_.kv_offset)}};
    if (has_mask()) bindings_.check(attention_.spec(), whole_);
    add_facts(facts, attention_, bindings_, whole_, options_);
    return facts;
  }

  bool has_gradients() const { return !attention_.spec().gradients.empty(); }
  bool has_mask() const { return !attention_.spec().mask_mod.empty(); }

  ShardList shard_list() const {
    if (!options_.q_lengths.empty() || !options_.kv_lengths.empty()) {
      if (options_.sharding == Sharding::zigzag) {
        throw Error(ErrorCode::usage, "lengths of shards were given for zigzag shards",
                    "leave them out, or ask for contiguous shards");
      }
      return shards_of_lengths(whole_, options_.q_lengths, options_.kv_lengths,
                               communicator_.size());
    }
    const std::vector<Shard> halves =
        half_shards(whole_, attention_.spec().block, communicator_.size());
    return chosen(halves) == Sharding::zigzag ? zigzag_shards(halves) : contiguous_shards(halves);
  }

  Sharding chosen(const std::vector<Shard>& halves) const {
    if (options_.sharding != Sharding::automatic) return options_.sharding;
    if (!has_mask() || communicator_.size() == 1) return Sharding::contiguous;
    // Each rank counts the tiles of two parts.
    std::vector<std::int64_t> mine;
    for (int half = 2 * communicator_.rank(); half < 2 * communicator_.rank() + 2; ++half) {
      std::int64_t tiles = 0;
      for (const Shard& columns : halves) {
        tiles += meet(halves[static_cast<std::size_t>(half)], columns).tiles;
      }
      mine.push_back(tiles);
    }
    return cheaper_sharding(gather_numbers(communicator_, mine));
  }

  Meeting meet(const Shard& rows, const Shard& columns) const {
    if (!has_mask()) {
      return whole_meeting(rows.q_len, columns.kv_len, attention_.spec().block);
    }
    const BlockMask mask =
        attention_.block_mask(shape_of(rows.q_begin, rows.q_len, columns.kv_begin, columns.kv_len),
                              bindings_, options_.stream);
    return meeting_of(mask, rows.q_len, columns.kv_len);
  }

  Shape shape_of(std::int64_t row, std::int64_t rows, std::int64_t column,
                 std::int64_t columns) const {
    Shape shape = whole_;
    shape.q_len = rows;
    shape.kv_len = columns;
    shape.q_offset += row;
    shape.kv_offset += column;
    return shape;
  }

  void add_masks(ContextPlanState& state) const {
    const BlockMaskOptions mask_options = {.stream = options_.stream,
                                           .transposed = has_gradients()};
    for (const Step& step : state.schedule.steps) {
      std::vector<std::optional<BlockMask>>& masks = state.masks.emplace_back();
      for (const PairCall& call : step.calls) {
        masks.emplace_back();
        if (!has_mask()) continue;
        const std::int64_t row = state.shard(call.q_shard).q_begin + call.first_row;
        const std::int64_t column = state.shard(call.kv_shard).kv_begin + call.first_column;
        masks.back() = attention_.block_mask(shape_of(row, call.rows, column, call.columns),
                                             bindings_, mask_options);
      }
    }
  }

  KernelBytes kernel_bytes(const ContextPlanState& state) const {
    const bool of_buffers = !gradient_names(attention_.spec()).empty();
    if (of_buffers) bindings_.check(attention_.spec(), whole_);
    KernelBytes bytes;
    for (const Step& step : state.schedule.steps) {
      for (const PairCall& call : step.calls) {
        const Shape shape = shape_of(0, call.rows, 0, call.columns);
        bytes.add(attention_.workspace_size(shape, Pass::backward), false);
        if (!of_buffers) continue;
        bytes.add(attention_.workspace_size(shape, Pass::backward, bindings_, true), true);
      }
    }
    return bytes;
  }

  const Attention& attention_;
  Communicator& communicator_;
  const Shape& whole_;
  const Bindings& bindings_;
  const ContextPlanOptions& options_;
};

}  // namespace

std::shared_ptr<ContextPlanState> make_plan(const Attention& attention, Communicator& communicator,
                                            const Shape& whole, const Bindings& bindings,
                                            const ContextPlanOptions& options) {
  return PlanMaker(attention, communicator, whole, bindings, options).run();
}

}  // namespace tilewright::parallel
