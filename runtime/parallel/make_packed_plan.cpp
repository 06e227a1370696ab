#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/spec/gradients.hpp"
#include "runtime/parallel/make_plan.hpp"
#include "runtime/parallel/packed_meetings.hpp"
#include "runtime/parallel/plan_parts.hpp"

namespace tilewright::parallel {
namespace {

class PackedPlanMaker {
 public:
  PackedPlanMaker(const Attention& attention, Communicator& communicator,
                  const SharedSequences& whole, const Bindings& bindings,
                  const ContextPlanOptions& options)
      : attention_(attention),
        spec_(attention.spec()),
        communicator_(communicator),
        whole_(completed(whole)),
        bindings_(bindings),
        options_(options) {}

  std::shared_ptr<ContextPlanState> run() {
    auto state = std::make_shared<ContextPlanState>();
    state->whole = whole_of(whole_);
    state->rank = communicator_.rank();
    state->packed.emplace().sequences = whole_;
    validate(shape());
    require_agreement(communicator_, facts(*state), ErrorCode::tensor);
    PackedShards shards = chosen_shards();
    state->packed->shards = std::move(shards.shards);
    state->list = std::move(shards.list);
    const Meetings meetings = meetings_of(*state);
    const ScheduleSizes sizes = schedule_sizes(spec_, state->whole);
    state->schedule =
        make_schedule(state->list, meetings, sizes, communicator_.rank(), communicator_.size());
    add_calls(*state);
    if (!spec_.gradients.empty()) {
      add_gradients(*state, spec_, bindings_, sizes, communicator_.size(), kernel_bytes(*state));
    }
    complete_plan(*state, attention_, meetings, sizes, communicator_.size());
    return state;
  }

 private:
  PackedShape shape() const {
    return {.batch = std::ssize(whole_.q_begin) - 1,
            .num_q_heads = whole_.num_q_heads,
            .num_kv_heads = whole_.num_kv_heads,
            .total_q = whole_.q_begin.back(),
            .total_kv = whole_.kv_begin.back()};
  }

  std::vector<Fact> facts(const ContextPlanState& state) const {
    std::vector<Fact> facts = {{"num_q_heads", std::to_string(whole_.num_q_heads)},
                               {"num_kv_heads", std::to_string(whole_.num_kv_heads)},
                               {"batch", std::to_string(shape().batch)}};
    const auto add_list = [&](std::string_view name, const std::vector<std::int64_t>& numbers) {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        facts.push_back({fmt::format("{}[{}]", name, i), std::to_string(numbers[i])});
      }
    };
    add_list("q_begin", whole_.q_begin);
    add_list("kv_begin", whole_.kv_begin);
    add_list("q_offset", whole_.q_offset);
    add_list("kv_offset", whole_.kv_offset);
    add_facts(facts, attention_, bindings_, state.bound_shape(), options_);
    return facts;
  }

  PackedShards chosen_shards() const {
    const int ranks = communicator_.size();
    if (!options_.q_lengths.empty() || !options_.kv_lengths.empty()) {
      if (options_.sharding == Sharding::zigzag) {
        throw Error(ErrorCode::usage, "lengths of shards were given for zigzag shards",
                    "leave them out, or ask for contiguous shards");
      }
      return packed_shards_of_lengths(whole_, options_.q_lengths, options_.kv_lengths, ranks);
    }
    const Sharding sharding = chosen();
    return packed_shards(whole_, half_shards(whole_, sharding, ranks), sharding);
  }

  // Each rank counts the tiles of two parts of either sharding.
  Sharding chosen() const {
    if (options_.sharding != Sharding::automatic) return options_.sharding;
    const int ranks = communicator_.size();
    if (ranks == 1) return Sharding::contiguous;
    const PackedShard columns = all_columns(whole_);
    std::vector<std::int64_t> mine;
    for (const Sharding sharding : {Sharding::contiguous, Sharding::zigzag}) {
      const std::vector<PackedShard> halves = half_shards(whole_, sharding, ranks);
      for (int half = 2 * communicator_.rank(); half < 2 * communicator_.rank() + 2; ++half) {
        mine.push_back(
            packed_tiles(call_of(halves[static_cast<std::size_t>(half)], columns), spec_.block));
      }
    }
    const std::vector<std::int64_t> all = gather_numbers(communicator_, mine);
    std::vector<std::int64_t> contiguous, zigzag;
    for (std::size_t i = 0; i < all.size(); i += 4) {
      contiguous.insert(contiguous.end(), {all[i], all[i + 1]});
      zigzag.insert(zigzag.end(), {all[i + 2], all[i + 3]});
    }
    return cheaper_sharding(contiguous, zigzag);
  }

  Meetings meetings_of(const ContextPlanState& state) const {
    const std::vector<PackedShard>& shards = state.packed->shards;
    return gather_meetings(communicator_, state.list, [&](int i, int j) {
      const PackedShard& rows = shards[static_cast<std::size_t>(i)];
      const PackedShard& columns = shards[static_cast<std::size_t>(j)];
      if (!share_sequences(rows, columns)) return Meeting{};
      return packed_meeting(call_of(rows, columns), rows, columns, spec_.block);
    });
  }

  PackedCall call_of(const PackedShard& rows, const PackedShard& columns) const {
    return call_of_shards(attention_, whole_, rows, columns, bindings_, options_.stream);
  }

  void add_calls(ContextPlanState& state) const {
    const std::vector<PackedShard>& shards = state.packed->shards;
    for (const Step& step : state.schedule.steps) {
      std::vector<PackedCall>& calls = state.packed->calls.emplace_back();
      for (const PairCall& call : step.calls) {
        const PackedBox box = {.rows = &shards[static_cast<std::size_t>(call.q_shard)],
                               .columns = &shards[static_cast<std::size_t>(call.kv_shard)],
                               .first_row = call.first_row,
                               .row_count = call.rows,
                               .first_column = call.first_column,
                               .column_count = call.columns};
        calls.emplace_back(attention_, whole_, box, bindings_, !spec_.gradients.empty(),
                           options_.stream);
      }
    }
  }

  KernelBytes kernel_bytes(const ContextPlanState& state) const {
    const bool of_buffers = !gradient_names(spec_).empty();
    if (of_buffers) bindings_.check(spec_, state.bound_shape());
    KernelBytes bytes;
    for (const std::vector<PackedCall>& calls : state.packed->calls) {
      for (const PackedCall& call : calls) {
        bytes.add(attention_.workspace_size(call.shape(), Pass::backward), false);
        if (!of_buffers) continue;
        bytes.add(attention_.workspace_size(call.shape(), Pass::backward, bindings_, true), true);
      }
    }
    return bytes;
  }

  const Attention& attention_;
  const Spec& spec_;
  Communicator& communicator_;
  SharedSequences whole_;
  const Bindings& bindings_;
  const ContextPlanOptions& options_;
};

}  // namespace

std::shared_ptr<ContextPlanState> make_packed_plan(const Attention& attention,
                                                   Communicator& communicator,
                                                   const SharedSequences& whole,
                                                   const Bindings& bindings,
                                                   const ContextPlanOptions& options) {
  return PackedPlanMaker(attention, communicator, whole, bindings, options).run();
}

}  // namespace tilewright::parallel
