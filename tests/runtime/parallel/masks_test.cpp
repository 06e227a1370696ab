// Context parallel on a CPU, with ranks that are threads, against the undivided call.
#include <string>

#include "tests/support/divided_call.hpp"
#include "tests/support/many_masks.hpp"

namespace tilewright {
namespace {

using test::documents;
using test::kMasks;
using test::many_masks;
using test::Rank;
using test::RankTensors;
using test::WholeCall;

// |v| is at most 1.5 and its weights add up to 1. Sums of 403 products in f32 lose at most
// 403 * 2^-24 * 1.5 in either call, and a merge's weights and sums 20 * 2^-24 * 1.5.
constexpr double kOutBound = 2 * 423 * 0x1p-24 * 1.5;
// verify/judge.hpp, for each of the two.
constexpr double kLseBound = 2 * 4e-5 * 10;

}  // namespace

TEST_CASE("context parallel: eleven masks over 2, 3, 4 and 8 ranks") {
  const int size = GENERATE(2, 3, 4, 8);
  const Spec spec = many_masks();
  const Shape shape = {
      .batch = 1, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 403, .kv_len = 403};
  const Tensor doc = documents(shape.kv_len);
  const Attention undivided(spec, {.device = Device::cpu()});

  std::vector<WholeCall> wanted, got;
  for (int mask = 0; mask < kMasks; ++mask) {
    WholeCall& call = wanted.emplace_back(spec, shape);
    got.emplace_back(spec, shape);
    const Bindings bindings = undivided.bind(
        {.buffers = {{"doc", doc}}, .scalars = {{"kind", static_cast<double>(mask)}}});
    undivided.forward(call.tensors(), undivided.block_mask(shape, bindings), bindings);
  }
  std::vector<std::int64_t> sharding_of(kMasks);
  for (const Sharding sharding : {Sharding::automatic, Sharding::zigzag, Sharding::contiguous}) {
    const std::vector<std::string> errors = test::run_ranks(size, [&](Rank& rank) {
      const ContextParallel context = rank.context(spec);
      for (int mask = 0; mask < kMasks; ++mask) {
        WholeCall& whole = got[static_cast<std::size_t>(mask)];
        const Bindings bindings = context.bind(
            shape, {.buffers = {{"doc", doc}}, .scalars = {{"kind", static_cast<double>(mask)}}});
        const ContextPlan plan = context.plan(shape, bindings, {.sharding = sharding});
        RankTensors own(whole, plan);
        packed_calls::Workspace workspace(context.workspace_size(plan));
        const std::int64_t before = rank.loopback->sent();
        context.forward(own.tensors(), plan, bindings, {.workspace = workspace.view()});
        if (rank.loopback->sent() - before != plan.traffic().bytes_sent) {
          throw std::runtime_error("the plan counts other bytes than were sent");
        }
        own.put_into(whole, plan);
        if (rank.rank == 0 && sharding == Sharding::automatic) {
          sharding_of[static_cast<std::size_t>(mask)] = static_cast<int>(plan.sharding());
        }
      }
    });
    for (const std::string& error : errors) REQUIRE(error == "");
    for (int mask = 0; mask < kMasks; ++mask) {
      CAPTURE(size, mask, to_string(sharding));
      const auto i = static_cast<std::size_t>(mask);
      CHECK(test::distance(got[i].out, wanted[i].out) <= kOutBound);
      CHECK(test::distance(got[i].lse, wanted[i].lse) <= kLseBound);
    }
  }
  CHECK(sharding_of[0] == static_cast<int>(Sharding::contiguous));
  CHECK(sharding_of[1] == static_cast<int>(Sharding::zigzag));
}

TEST_CASE("context parallel: an opaque mask by batch and head, a score_mod, bshd and bf16") {
  const Spec spec = {.dtype = bf16,
                     .head_dim = 32,
                     .v_head_dim = 16,
                     .layout = Layout::bshd,
                     .score_mod = "score + slopes[h] * (kv_idx - q_idx) / q_len",
                     .mask_mod = R"(
                       int at = q_idx;
                       for (int i = 0; i < 3; ++i) at = at / 2 + b;
                       return (kv_idx ^ at) % (h + 2) != 1;)",
                     .buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}},
                     .block = {32, 16},
                     .outputs = {.lse = true}};
  const Shape shape = {
      .batch = 2, .num_q_heads = 3, .num_kv_heads = 1, .q_len = 150, .kv_len = 230};
  Tensor slopes = packed_calls::random_tensor({3}, 9);
  const Attention undivided(spec, {.device = Device::cpu()});
  const Bindings bindings = undivided.bind({.buffers = {{"slopes", slopes}}});
  WholeCall wanted(spec, shape), got(spec, shape);
  undivided.forward(wanted.tensors(), undivided.block_mask(shape, bindings), bindings);
  for (const bool ragged : {false, true}) {
    ContextPlanOptions options;
    if (ragged) options = {.q_lengths = {1, 109, 40}, .kv_lengths = {130, 3, 97}};
    const std::vector<std::string> errors = test::run_ranks(3, [&](Rank& rank) {
      const ContextParallel context = rank.context(spec);
      const Bindings own_bindings = context.bind(shape, {.buffers = {{"slopes", slopes}}});
      const ContextPlan plan = context.plan(shape, own_bindings, options);
      RankTensors own(got, plan);
      packed_calls::Workspace workspace(context.workspace_size(plan));
      context.forward(own.tensors(), plan, own_bindings, {.workspace = workspace.view()});
      own.put_into(got, plan);
    });
    for (const std::string& error : errors) REQUIRE(error == "");
    // Both round out to bf16, and parts are rounded before they are merged: half a unit in the
    // last place each, of numbers below 2.
    CHECK(test::distance(got.out, wanted.out) <= 3 * 0x1p-8);
    CHECK(test::distance(got.lse, wanted.lse) <= 2 * (2e-3 + 0x1p-19 * 10));
  }
}

TEST_CASE("context parallel: no mask, more parts than one merge takes") {
  const Spec spec = {.dtype = f32, .head_dim = 16, .outputs = {.lse = true}};
  const Shape shape = {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 40, .kv_len = 60};
  const Attention undivided(spec, {.device = Device::cpu()});
  WholeCall wanted(spec, shape), got(spec, shape);
  undivided.forward(wanted.tensors());
  const std::vector<std::string> errors = test::run_ranks(9, [&](Rank& rank) {
    const ContextParallel context = rank.context(spec);
    const ContextPlan plan = context.plan(shape, {}, {.sharding = Sharding::zigzag});
    RankTensors own(got, plan);
    packed_calls::Workspace workspace(context.workspace_size(plan));
    context.forward(own.tensors(), plan, {}, {.workspace = workspace.view()});
    own.put_into(got, plan);
  });
  for (const std::string& error : errors) REQUIRE(error == "");
  CHECK(test::distance(got.out, wanted.out) <= kOutBound);
  CHECK(test::distance(got.lse, wanted.lse) <= kLseBound);
}

}  // namespace tilewright
