// Context parallel over NCCL, with ranks that are threads, all on the emulated GPU.
#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "runtime/api/nccl.hpp"
#include "tests/support/divided_call.hpp"

namespace tilewright {
namespace {

using test::RankTensors;
using test::WholeCall;

const Device kGpu = Device::parse("cuda");

// The spec of examples/context_parallel, so that kernels are compiled once.
Spec causal() {
  return {.dtype = bf16,
          .head_dim = 64,
          .mask_mod = "q_idx >= kv_idx",
          .block = {64, 64},
          .outputs = {.lse = true}};
}

std::vector<std::string> on_gpus(
    int size, const NcclOptions& options,
    const std::function<void(int rank, const std::shared_ptr<Communicator>&)>& body) {
  const std::vector<Device> gpus(static_cast<std::size_t>(size), kGpu);
  std::vector<std::shared_ptr<Communicator>> ranks = nccl_group(gpus, options);
  std::vector<std::string> errors(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        body(static_cast<int>(i), ranks[i]);
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace

TEST_CASE("context parallel on a GPU: NCCL, two shardings, against the undivided call",
          "[each-day]") {
  const Spec spec = causal();
  const Shape shape = {
      .batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 300, .kv_len = 300};
  WholeCall wanted(spec, shape), got(spec, shape);
  const Attention undivided(spec, {.device = kGpu});
  undivided.forward(wanted.tensors(), undivided.block_mask(shape));
  for (const Sharding sharding : {Sharding::contiguous, Sharding::zigzag}) {
    for (const std::string& error : on_gpus(3, {}, [&](int, const auto& communicator) {
           const ContextParallel context(spec, communicator, {.device = kGpu});
           const ContextPlan plan = context.plan(shape, {}, {.sharding = sharding});
           RankTensors own(got, plan);
           packed_calls::Workspace workspace(context.workspace_size(plan));
           context.forward(own.tensors(), plan, {}, {.workspace = workspace.view()});
           context.wait();
           own.put_into(got, plan);
         })) {
      CHECK(error == "");
    }
    // Two roundings of out and one of parts to bf16, and P's in each call, of numbers below 2.
    CHECK(test::distance(got.out, wanted.out) <= 5 * 0x1p-8);
    CHECK(test::distance(got.lse, wanted.lse) <= 2 * (2e-3 + 0x1p-19 * 10));
  }
}

TEST_CASE("context parallel on a GPU: a peer that stays away ends in an error, not in a hang") {
  const NcclOptions options = {.timeout = std::chrono::milliseconds(1000)};
  const Spec spec = causal();
  const Shape shape = {.q_len = 128, .kv_len = 128};
  const WholeCall whole(spec, shape);
  const std::vector<std::string> errors =
      on_gpus(2, options, [&](int rank, const auto& communicator) {
        const ContextParallel context(spec, communicator, {.device = kGpu});
        const ContextPlan plan = context.plan(shape, {}, {.sharding = Sharding::contiguous});
        if (rank == 0) return;  // whose columns rank 1 waits for
        const RankTensors own(whole, plan);
        packed_calls::Workspace workspace(context.workspace_size(plan));
        const ContextCallOptions call = {.workspace = workspace.view()};
        std::string first;
        try {
          context.forward(own.tensors(), plan, {}, call);
        } catch (const Error& error) {
          first = error.message();
        }
        if (first.find("not done after 1000 ms, so a peer is gone or late") == std::string::npos) {
          throw std::runtime_error("the first call said: " + first);
        }
        context.forward(own.tensors(), plan, {}, call);
      });
  CHECK_THAT(errors[1],
             Catch::Contains("error[device]: rank 1: the communicator was aborted after an error"));
  CHECK(errors[0] == "");
}

}  // namespace tilewright
