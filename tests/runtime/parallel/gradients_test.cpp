// Context parallel: the backward pass on a CPU, with ranks that are threads, against the undivided
// call.
#include <string>

#include "tests/support/divided_gradients.hpp"
#include "tests/support/many_masks.hpp"
#include "tests/support/refusal.hpp"

namespace tilewright {
namespace {

using test::GradientBounds;
using test::Rank;
using test::RankGradients;
using test::RankTensors;
using test::WholeCall;
using test::WholeGradients;

Spec with_gradients(Spec spec) {
  spec.outputs.lse = true;
  spec.gradients = {"q", "k", "v"};
  return spec;
}

// A forward and a backward of one mask, undivided.
struct Undivided {
  WholeCall call;
  WholeGradients gradients;
  double weight = 0;  // the greatest sum of P over the rows that read one column

  Undivided(const Attention& attention, const Shape& shape, const Bindings& bindings)
      : call(attention.spec(), shape), gradients(call) {
    const BlockMask mask = attention.block_mask(shape, bindings, {.transposed = true});
    attention.forward(call.tensors(), mask, bindings);
    // With ones in dout, dv is the sum of P.
    WholeGradients ones(call);
    packed_calls::fill(ones.dout, 1);
    attention.backward(ones.tensors(call), mask, bindings);
    weight = test::greatest(ones.dv);
    attention.backward(gradients.tensors(call), mask, bindings);
  }
};

// Forward and backward of one rank, whose gradients go into the whole's.
void run_rank(const ContextParallel& context, const ContextPlan& plan, const Bindings& bindings,
              const WholeCall& call, WholeGradients& whole) {
  RankTensors own(call, plan);
  const RankGradients gradients(call, whole, own, plan);
  packed_calls::Workspace forward(context.workspace_size(plan));
  context.forward(own.tensors(), plan, bindings, {.workspace = forward.view()});
  packed_calls::Workspace backward(context.workspace_size(plan, Pass::backward));
  std::memset(backward.view().data, 0xff, static_cast<std::size_t>(backward.view().bytes()));
  context.backward(gradients.tensors(own), plan, bindings, {}, {.workspace = backward.view()});
  gradients.put_into(call, whole, plan);
}

void check_close(const WholeGradients& got, const WholeGradients& wanted,
                 const GradientBounds& bounds) {
  CHECK(test::distance(got.dq, wanted.dq) <= bounds.dq);
  CHECK(test::distance(got.dk, wanted.dk) <= bounds.dk);
  CHECK(test::distance(got.dv, wanted.dv) <= bounds.dv);
}

}  // namespace

TEST_CASE("context parallel: gradients of eleven masks over 2, 3, 4 and 8 ranks") {
  const int size = GENERATE(2, 3, 4, 8);
  const Spec spec = with_gradients(test::many_masks());
  const Shape shape = {
      .batch = 1, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 203, .kv_len = 203};
  const Tensor doc = test::documents(shape.kv_len);
  const Attention attention(spec, {.device = Device::cpu()});
  const auto inputs = [&](int mask) {
    return SnippetInputs{.buffers = {{"doc", doc}},
                         .scalars = {{"kind", static_cast<double>(mask)}}};
  };
  std::vector<Undivided> wanted;
  std::vector<WholeGradients> got;
  for (int mask = 0; mask < test::kMasks; ++mask) {
    wanted.emplace_back(attention, shape, attention.bind(inputs(mask)));
    got.emplace_back(wanted.back().call);
  }
  for (const Sharding sharding : {Sharding::zigzag, Sharding::contiguous}) {
    const std::vector<std::string> errors = test::run_ranks(size, [&](Rank& rank) {
      const ContextParallel context = rank.context(spec);
      for (int mask = 0; mask < test::kMasks; ++mask) {
        const auto i = static_cast<std::size_t>(mask);
        const Bindings bindings = context.bind(shape, inputs(mask));
        const ContextPlan plan = context.plan(shape, bindings, {.sharding = sharding});
        const std::int64_t before = rank.loopback->sent();
        run_rank(context, plan, bindings, wanted[i].call, got[i]);
        const ContextTraffic traffic = plan.traffic();
        if (rank.loopback->sent() - before != traffic.bytes_sent + traffic.backward_bytes_sent) {
          throw std::runtime_error("the plan counts other bytes than were sent");
        }
      }
    });
    for (const std::string& error : errors) REQUIRE(error == "");
    for (int mask = 0; mask < test::kMasks; ++mask) {
      CAPTURE(size, mask, to_string(sharding));
      const auto i = static_cast<std::size_t>(mask);
      check_close(got[i], wanted[i].gradients, GradientBounds(spec, shape, wanted[i].weight));
    }
  }
}

TEST_CASE("context parallel: gradients of ragged shards, by batch and head, a score_mod and bshd") {
  const Spec spec =
      with_gradients({.dtype = f32,
                      .head_dim = 32,
                      .v_head_dim = 16,
                      .layout = Layout::bshd,
                      .score_mod = "score + slopes[h] * (kv_idx - q_idx) / q_len",
                      .mask_mod = R"(
         int at = q_idx;
         for (int i = 0; i < 3; ++i) at = at / 2 + b;
         return (kv_idx ^ at) % (h + 2) != 1;)",
                      .buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}},
                      .block = {32, 16}});
  const Shape shape = {
      .batch = 2, .num_q_heads = 3, .num_kv_heads = 1, .q_len = 150, .kv_len = 230};
  const Tensor slopes = packed_calls::random_tensor({3}, 9);
  const SnippetInputs inputs = {.buffers = {{"slopes", slopes}}};
  const Attention attention(spec, {.device = Device::cpu()});
  const Undivided wanted(attention, shape, attention.bind(inputs));
  WholeGradients got(wanted.call);
  const ContextPlanOptions ragged = {.q_lengths = {1, 109, 40}, .kv_lengths = {130, 3, 97}};
  for (const std::string& error : test::run_ranks(3, [&](Rank& rank) {
         const ContextParallel context = rank.context(spec);
         const Bindings bindings = context.bind(shape, inputs);
         run_rank(context, context.plan(shape, bindings, ragged), bindings, wanted.call, got);
       })) {
    REQUIRE(error == "");
  }
  check_close(got, wanted.gradients, GradientBounds(spec, shape, wanted.weight));
}

// Without scores each row gives a column's dv 1/8 of its dout. In bf16 255 + 2 is 256, so that sums
// of parts in another dtype than f32 give some column another number than 512/8.
TEST_CASE("context parallel: parts of 16 bits are added up in f32, and only those that are named") {
  Spec spec = {.dtype = bf16, .head_dim = 16, .outputs = {.lse = true}, .gradients = {"v"}};
  const Shape shape = {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 512, .kv_len = 8};
  WholeCall call(spec, shape);
  call.q = Tensor::zeros(bf16, call.q.shape());
  Tensor ones = Tensor::zeros(f32, call.out.shape());
  packed_calls::fill(ones, 1);
  WholeGradients whole(call);
  whole.dout = packed_calls::in_dtype(ones, bf16);
  whole.dlse = Tensor::zeros(f32, call.lse.shape());
  for (const std::string& error : test::run_ranks(4, [&](Rank& rank) {
         const ContextParallel context = rank.context(spec);
         const ContextPlan plan =
             context.plan(shape, {}, {.q_lengths = {255, 2, 253, 2}, .kv_lengths = {2, 2, 2, 2}});
         RankTensors own(call, plan);
         const RankGradients gradients(call, whole, own, plan);
         packed_calls::Workspace memory(context.workspace_size(plan));
         context.forward(own.tensors(), plan, {}, {.workspace = memory.view()});
         BackwardTensors tensors = gradients.tensors(own);
         tensors.dq.reset();
         tensors.dk.reset();
         packed_calls::Workspace more(context.workspace_size(plan, Pass::backward));
         context.backward(tensors, plan, {}, {}, {.workspace = more.view()});
         gradients.put_into(call, whole, plan);
       })) {
    REQUIRE(error == "");
  }
  Tensor dv = Tensor::zeros(f32, whole.dv.shape());
  packed_calls::read_back(whole.dv, dv);
  for (std::int64_t i = 0; i < dv.numel(); ++i) CHECK(packed_calls::floats(dv)[i] == 64);
}

TEST_CASE("context parallel: a rank that dies in backward is an error at once on every rank") {
  const Spec spec = with_gradients({.dtype = f32, .head_dim = 16});
  const Shape shape = {.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 48, .kv_len = 48};
  const WholeCall call(spec, shape);
  const int exchanges = GENERATE(0, 2);  // of backward, that rank 2 takes part in
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> errors = test::run_ranks(3, [&](Rank& rank) {
    const ContextParallel context = rank.context(spec);
    const ContextPlan plan = context.plan(shape, {}, {.sharding = Sharding::contiguous});
    if (rank.rank == 2) rank.loopback->die_after(2 + exchanges);
    WholeGradients whole(call);
    run_rank(context, plan, {}, call, whole);
    run_rank(context, plan, {}, call, whole);
  });
  for (const std::size_t rank : {0, 1}) {
    CHECK_THAT(errors[rank], Catch::Contains("error[device]: rank " + std::to_string(rank)));
    CHECK_THAT(errors[rank], Catch::Contains("is gone"));
  }
  CHECK_THAT(errors[2], Catch::Contains("rank 2: this rank dies"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
}

TEST_CASE("context parallel: backward calls that are refused name the rank") {
  const Spec spec = with_gradients({.dtype = f32, .head_dim = 16});
  const Shape shape = {.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 48, .kv_len = 48};
  const WholeCall call(spec, shape);
  const std::vector<std::string> errors = test::run_ranks(5, [&](Rank& rank) {
    const ContextParallel context = rank.context(spec);
    const ContextPlan plan = context.plan(shape);
    const RankTensors own(call, plan);
    const RankGradients gradients(call, WholeGradients(call), own, plan);
    packed_calls::Workspace memory(context.workspace_size(plan, Pass::backward));
    BackwardTensors tensors = gradients.tensors(own);
    ContextCallOptions options = {.workspace = memory.view()};
    if (rank.rank == 0) tensors.dk.reset();
    if (rank.rank == 1) options.workspace.shape[0] = 256;
    if (rank.rank == 2) tensors.dv = tensors.dk;
    if (rank.rank == 3) tensors.dout.shape[2] += 1;
    if (rank.rank == 4) tensors.lse.dtype = i32;
    context.backward(tensors, plan, {}, {}, options);
  });
  CHECK_THAT(errors[0], Catch::Contains("error[tensor]: rank 0: dk is missing"));
  CHECK_THAT(errors[1], Catch::Contains("rank 1: the workspace has 256 bytes, and the plan needs"));
  CHECK_THAT(errors[2], Catch::Contains("rank 2: dv overlaps dk in memory"));
  CHECK_THAT(errors[3], Catch::Contains("rank 3: dout has q_len"));
  CHECK_THAT(errors[4], Catch::Contains("rank 4: lse does not fit"));
  const std::vector<std::string> without = test::run_ranks(1, [&](Rank& rank) {
    const ContextParallel context =
        rank.context({.dtype = f32, .head_dim = 16, .outputs = {.lse = true}});
    context.workspace_size(context.plan(shape), Pass::backward);
  });
  CHECK_THAT(without[0], Catch::Contains("rank 0: the spec names no gradients"));
}

}  // namespace tilewright
