// Calls of Hopper's kernel that run at the same time, and replays of one: its launches deal out q
// tiles by counters in global memory, which they must neither share nor leave changed.
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "runtime/call/staged_call.hpp"
#include "runtime/cuda/context.hpp"
#include "tests/gpu/driver_functions.hpp"
#include "tests/gpu/gpu_call.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"
#include "verify/random_inputs.hpp"

using namespace tilewright;

namespace {

// More q tiles than an H200 has multiprocessors.
constexpr Shape kShape{
    .batch = 1, .num_q_heads = 20, .num_kv_heads = 5, .q_len = 1100, .kv_len = 1100};

Spec causal(std::int64_t launch_counters) {
  Spec spec{.dtype = bf16, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"};
  spec.tactic = TacticSpec{.name = "hopper", .parameters = {{"launch_counters", launch_counters}}};
  return spec;
}

bool has_hopper_kernel() {
  const cuda::DeviceFacts facts = cuda::device_facts(cuda::Driver::get(), 0);
  if (facts.target() == "sm_90a") return true;
  test::say_skipped("no Hopper GPU, but " + facts.target());
  return false;
}

// A call with an output of its own.
struct OwnCall {
  explicit OwnCall(const verify::Inputs& inputs)
      : out(Tensor::zeros(bf16, {kShape.batch, kShape.num_q_heads, kShape.q_len, 64})),
        staged(gpu(),
               {.q = inputs.problem().q,
                .k = inputs.problem().k,
                .v = inputs.problem().v,
                .out = out,
                .lse = {}},
               {}) {}

  void poison(cuda::Stream stream) const { ::poison(staged.tensors().out, stream); }
  bool equals(const OwnCall& other) const {
    staged.copy_back();
    return std::memcmp(out.data(), other.out.data(), static_cast<std::size_t>(out.bytes())) == 0;
  }

  Tensor out;
  StagedCall staged;
};

}  // namespace

TEST_CASE(
    "gpu: calls at once give the bits of one alone, with a counter for each and with one for all") {
  if (gpu_is_missing() || !has_hopper_kernel()) return;
  const cuda::ContextScope scope(cuda::Driver::get(), 0);
  for (const std::int64_t counters : {1024, 1}) {
    const Attention attention(causal(counters), {.device = gpu()});
    const verify::Inputs inputs = verify::random_inputs(attention.spec(), kShape, 1);
    const BlockMask mask = attention.block_mask(kShape);
    const OwnCall alone(inputs);
    attention.forward(alone.staged.tensors(), mask);
    alone.staged.copy_back();

    constexpr int kStreams = 6;
    constexpr int kRounds = 100;
    std::vector<std::unique_ptr<TestStream>> streams;
    std::vector<std::unique_ptr<OwnCall>> calls;
    for (int i = 0; i < kStreams; ++i) {
      streams.push_back(std::make_unique<TestStream>());
      calls.push_back(std::make_unique<OwnCall>(inputs));
    }
    for (int round = 0; round < kRounds; ++round) {
      for (int i = 0; i < kStreams; ++i) {
        calls[i]->poison(streams[i]->get());
        attention.forward(calls[i]->staged.tensors(), mask, {}, {.stream = streams[i]->get()});
      }
      if (round % 10 != 0) continue;
      for (int i = 0; i < kStreams; ++i) {
        streams[i]->synchronize();
        if (!calls[i]->equals(alone))
          FAIL(counters << " counters, round " << round << ", stream " << i);
      }
    }
    for (int i = 0; i < kStreams; ++i) {
      streams[i]->synchronize();
      REQUIRE(calls[i]->equals(alone));
    }
  }
}

TEST_CASE("gpu: a graph replays Hopper's kernel with other calls beside and between") {
  if (gpu_is_missing() || !has_hopper_kernel()) return;
  const cuda::ContextScope scope(cuda::Driver::get(), 0);
  const Attention attention(causal(1), {.device = gpu()});
  const verify::Inputs inputs = verify::random_inputs(attention.spec(), kShape, 2);
  const BlockMask mask = attention.block_mask(kShape);
  const OwnCall alone(inputs), captured(inputs), beside(inputs);
  attention.forward(alone.staged.tensors(), mask);
  alone.staged.copy_back();

  const TestStream stream, other;
  const TestGraph graph(stream, TestGraph::Capture::of_thread, [&] {
    attention.forward(captured.staged.tensors(), mask, {}, {.stream = stream.get()});
  });
  for (int replay = 0; replay < 50; ++replay) {
    captured.poison(stream.get());
    beside.poison(other.get());
    graph.launch();
    attention.forward(beside.staged.tensors(), mask, {}, {.stream = other.get()});
    if (replay % 7 != 0) continue;
    stream.synchronize();
    other.synchronize();
    REQUIRE(captured.equals(alone));
    REQUIRE(beside.equals(alone));
  }
  stream.synchronize();
  other.synchronize();
  REQUIRE(captured.equals(alone));
  REQUIRE(beside.equals(alone));
}
