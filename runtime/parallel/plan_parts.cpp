#include "runtime/parallel/plan_parts.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable_number.hpp"
#include "generator/spec/gradients.hpp"
#include "runtime/parallel/views.hpp"

namespace tilewright::parallel {
namespace {

void add_traffic(ContextPlanState& state, const Meetings& meetings, const ScheduleSizes& sizes,
                 int ranks) {
  std::int64_t own = 0;
  state.traffic.tiles.resize(static_cast<std::size_t>(ranks));
  for (int i = 0; i < state.list.count(); ++i) {
    const OwnedShard& owned = state.list.shards[static_cast<std::size_t>(i)];
    if (owned.rank == state.rank) own += owned.shard.kv_len;
    for (int j = 0; j < state.list.count(); ++j) {
      state.traffic.tiles[static_cast<std::size_t>(owned.rank)] +=
          meetings[static_cast<std::size_t>(i) * state.list.shards.size() +
                   static_cast<std::size_t>(j)]
              .tiles;
    }
  }
  state.traffic.bytes_sent = state.schedule.bytes_sent;
  state.traffic.bytes_received = state.schedule.bytes_received;
  state.traffic.bytes_of_full_ring = (ranks - 1) * (sizes.k_bytes(own) + sizes.v_bytes(own));
  if (state.gradients) {
    state.traffic.backward_bytes_sent = state.gradients->bytes_sent;
    state.traffic.backward_bytes_received = state.gradients->bytes_received;
  }
  state.traffic.calls = state.schedule.calls();
}

void reserve_messages(ContextPlanState& state, const Spec& spec, int ranks) {
  const auto of_transfer = static_cast<std::size_t>(
      2 * count_messages(spec.key_value_layout(), state.whole.batch, state.whole.num_kv_heads));
  std::size_t transfers = 0;
  std::size_t parts = 0;
  for (const Step& step : state.schedule.steps) {
    transfers = std::max({transfers, step.sends.size(), step.receives.size()});
    parts = std::max({parts, step.calls.size(), step.returns.size()});
  }
  const std::size_t of_gradients = spec.gradients.empty() ? 0 : 2 * parts;
  const std::size_t most =
      std::max(transfers * of_transfer + of_gradients, static_cast<std::size_t>(ranks));
  state.sends.reserve(most);
  state.receives.reserve(most);
}

}  // namespace

void add_facts(std::vector<Fact>& facts, const Attention& attention, const Bindings& bindings,
               const Shape& shape, const ContextPlanOptions& options) {
  facts.insert(facts.end(),
               {{"sharding", std::string(to_string(options.sharding))},
                {"q_lengths", fmt::format("[{}]", fmt::join(options.q_lengths, ", "))},
                {"kv_lengths", fmt::format("[{}]", fmt::join(options.kv_lengths, ", "))}});
  const Spec& spec = attention.spec();
  const bool is_bound = !bindings.is_default();
  if (is_bound) bindings.check(spec, shape);
  std::size_t buffer = 0;
  for (const auto& [name, declared] : spec.buffers) {
    if (!is_bound) break;
    facts.push_back({fmt::format("buffer \"{}\"", name), bindings.buffers()[buffer++].describe()});
  }
  std::size_t scalar = 0;
  for (const auto& [name, declared] : spec.scalars) {
    const std::optional<double> value =
        is_bound ? bindings.scalars()[scalar++] : declared.default_value;
    if (value)
      facts.push_back({fmt::format("scalar \"{}\"", name), fmt::format("{}", printable(*value))});
  }
}

void add_gradients(ContextPlanState& state, const Spec& spec, const Bindings& bindings,
                   const ScheduleSizes& sizes, int ranks, const KernelBytes& kernel_bytes) {
  BufferGradients buffers;
  if (!gradient_names(spec).empty()) {
    buffers = buffer_gradients(spec, bindings, ranks);
  }
  state.gradients = make_gradient_schedule(spec, state.list, state.schedule, sizes, state.rank,
                                           ranks, std::move(buffers), kernel_bytes);
}

void complete_plan(ContextPlanState& state, const Attention& attention, const Meetings& meetings,
                   const ScheduleSizes& sizes, int ranks) {
  add_traffic(state, meetings, sizes, ranks);
  state.lane = TransferLane::make(attention.device());
  reserve_messages(state, attention.spec(), ranks);
}

}  // namespace tilewright::parallel
