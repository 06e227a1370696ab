// Context parallel over NCCL, with ranks that are threads, all on the emulated GPU.
#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "runtime/api/nccl.hpp"
#include "runtime/parallel/row_sums.hpp"
#include "tests/support/divided_packed.hpp"

namespace tilewright {
namespace {

using test::RankGradients;
using test::RankTensors;
using test::WholeCall;
using test::WholeGradients;

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
          "[every-kind]") {
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

TEST_CASE("context parallel on a GPU: gradients, against the undivided call", "[every-kind]") {
  const Spec spec = {.dtype = f32,
                     .head_dim = 16,
                     .mask_mod = "q_idx >= kv_idx",
                     .block = {16, 16},
                     .outputs = {.lse = true},
                     .gradients = {"q", "k", "v"}};
  const Shape shape = {
      .batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 100, .kv_len = 100};
  const Attention undivided(spec, {.device = kGpu});
  const BlockMask mask = undivided.block_mask(shape, {}, {.transposed = true});
  WholeCall call(spec, shape);
  undivided.forward(call.tensors(), mask);
  packed_calls::Workspace memory(undivided.workspace_size(shape, Pass::backward));
  const auto backward = [&](WholeGradients& gradients) {
    undivided.backward(gradients.tensors(call), mask, {}, {}, {.workspace = memory.view()});
  };
  WholeGradients ones(call), wanted(call), got(call);
  packed_calls::fill(ones.dout, 1);
  backward(ones);  // whose dv is the sum of P
  backward(wanted);
  for (const std::string& error : on_gpus(3, {}, [&](int, const auto& communicator) {
         const ContextParallel context(spec, communicator, {.device = kGpu});
         const ContextPlan plan = context.plan(shape, {}, {.sharding = Sharding::zigzag});
         const RankTensors own(call, plan);
         const RankGradients gradients(call, got, own, plan);
         packed_calls::Workspace forward(context.workspace_size(plan));
         context.forward(own.tensors(), plan, {}, {.workspace = forward.view()});
         packed_calls::Workspace more(context.workspace_size(plan, Pass::backward));
         context.backward(gradients.tensors(own), plan, {}, {}, {.workspace = more.view()});
         context.wait();
         gradients.put_into(call, got, plan);
       })) {
    CHECK(error == "");
  }
  const test::GradientBounds bounds(spec, shape, test::greatest(ones.dv));
  CHECK(test::distance(got.dq, wanted.dq) <= bounds.dq);
  CHECK(test::distance(got.dk, wanted.dk) <= bounds.dk);
  CHECK(test::distance(got.dv, wanted.dv) <= bounds.dv);
}

TEST_CASE("context parallel on a GPU: packed sequences and gradients of a buffer", "[every-kind]") {
  const Spec spec = {.dtype = f32,
                     .head_dim = 16,
                     .layout = Layout::packed,
                     .score_mod = "score + slopes[h] * 0.01f * (kv_idx - q_idx)",
                     .mask_mod = "q_idx >= kv_idx",
                     .buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}},
                     .block = {16, 16},
                     .outputs = {.lse = true},
                     .gradients = {"q", "k", "v", "slopes"}};
  const SharedSequences whole = test::sequences_of({{0, 0}, {70, 70}, {3, 3}, {20, 50}, {40, 0}});
  const Tensor slopes = packed_calls::random_tensor({4}, 11);
  const SnippetInputs inputs = {.buffers = {{"slopes", slopes}}};
  const Attention undivided(spec, {.device = kGpu});
  Tensor d_slopes = Tensor::zeros(f32, {4});
  const test::UndividedPacked wanted(undivided, whole, undivided.bind(inputs),
                                     {{"slopes", d_slopes}});
  for (const Sharding sharding : {Sharding::zigzag, Sharding::contiguous}) {
    test::PackedTensors got(spec, whole);
    std::vector<Tensor> of_ranks;
    for (int rank = 0; rank < 3; ++rank) of_ranks.push_back(Tensor::zeros(f32, {4}));
    for (const std::string& error : on_gpus(3, {}, [&](int rank, const auto&communicator) {
           const ContextParallel context(spec, communicator, {.device = kGpu});
           const Bindings bindings = context.bind(whole, inputs);
           const ContextPlan plan = context.plan(whole, bindings, {.sharding = sharding});
           const test::PackedTensors own(spec, whole, wanted.tensors, plan);
           packed_calls::Workspace forward(context.workspace_size(plan));
           context.forward(own.forward(), plan, bindings, {.workspace = forward.view()});
           packed_calls::Workspace more(context.workspace_size(plan, Pass::backward, true));
           context.backward(own.backward(), plan, bindings,
                            {{"slopes", of_ranks[static_cast<std::size_t>(rank)]}},
                            {.workspace = more.view(), .deterministic = true});
           context.wait();
           own.put_into(got, plan);
         })) {
      CHECK(error == "");
    }
    const Shape longest = {.num_q_heads = 4, .num_kv_heads = 2, .q_len = 133, .kv_len = 123};
    const test::GradientBounds bounds(spec, longest, wanted.weight);
    CHECK(test::distance(got.out, wanted.tensors.out) <= 2 * 143 * 0x1p-24 * 1.5);
    CHECK(test::distance(got.lse, wanted.tensors.lse) <= 2 * 4e-5 * 10);
    CHECK(test::distance(got.dq, wanted.tensors.dq) <= bounds.dq);
    CHECK(test::distance(got.dk, wanted.tensors.dk) <= bounds.dk);
    CHECK(test::distance(got.dv, wanted.tensors.dv) <= bounds.dv);
    const double greatest = test::distance(d_slopes, Tensor::zeros(f32, {4}));
    for (const Tensor& of_rank : of_ranks) {
      CHECK(test::distance(of_rank, d_slopes) <= 0x1p-10 * greatest);
      CHECK(std::memcmp(of_rank.data(), of_ranks[0].data(), 16) == 0);
    }
  }
}

TEST_CASE("context parallel on a GPU: rows are added up and converted as on a CPU",
          "[every-kind]") {
  const Attention attention({.dtype = f32, .head_dim = 16}, {.device = kGpu});
  const std::vector<std::byte> kernel = parallel::RowSums::compile(attention, {});
  const auto on_gpu = parallel::RowSums::make(kGpu, kernel, nullptr);
  const auto on_cpu = parallel::RowSums::make(Device::cpu(), {}, nullptr);
  const std::vector<std::int64_t> dims = {2, 3, 5, 40};
  for (const DType from : {f32, f16, bf16}) {
    for (const DType to : {f32, f16, bf16}) {
      for (const bool adds : {false, true}) {
        const Tensor added = packed_calls::in_dtype(packed_calls::random_tensor(dims, 1), from);
        Tensor got = packed_calls::in_dtype(packed_calls::random_tensor(dims, 2), to);
        Tensor wanted = packed_calls::in_dtype(packed_calls::random_tensor(dims, 2), to);
        // Rows in another order, and a part of each row.
        const auto part = [](TensorView view) {
          std::swap(view.shape[1], view.shape[2]);
          std::swap(view.strides[1], view.strides[2]);
          view.shape[3] = 33;
          return view;
        };
        on_gpu->add(part(added), part(got), adds, nullptr);
        on_cpu->add(part(added), part(wanted), adds, nullptr);
        CAPTURE(to_string(from), to_string(to), adds);
        CHECK(std::memcmp(got.data(), wanted.data(), static_cast<std::size_t>(got.bytes())) == 0);
      }
    }
  }
  Tensor cleared = packed_calls::random_tensor(dims, 3);
  on_gpu->add({}, cleared, false, nullptr);
  CHECK(test::distance(cleared, Tensor::zeros(f32, dims)) == 0);
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
