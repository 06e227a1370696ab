// Context parallel: ranks that differ, ranks that are gone, and tensors that do not fit.
#include <chrono>
#include <string>

#include "tests/support/divided_call.hpp"
#include "tests/support/refusal.hpp"

namespace tilewright {
namespace {

using test::Rank;
using test::RankTensors;
using test::WholeCall;
using Clock = std::chrono::steady_clock;

Spec plain() {
  return {.dtype = f32, .head_dim = 16, .outputs = {.lse = true}};
}

Shape shape_of(std::int64_t length) {
  return {.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = length, .kv_len = length};
}

// What each of three ranks says after the last of them did something else.
std::vector<std::string> errors_of(
    const std::function<void(const ContextParallel&, const WholeCall&, Rank&)>& body) {
  const WholeCall whole(plain(), shape_of(48));
  return test::run_ranks(3, [&](Rank& rank) { body(rank.context(plain()), whole, rank); });
}

void call(const ContextParallel& context, const WholeCall& whole, const Shape& shape) {
  const ContextPlan plan = context.plan(shape);
  const RankTensors own(whole, plan);
  packed_calls::Workspace workspace(context.workspace_size(plan));
  context.forward(own.tensors(), plan, {}, {.workspace = workspace.view()});
}

std::int64_t milliseconds_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
}

}  // namespace

TEST_CASE("context parallel: ranks with different specs") {
  const std::vector<std::string> errors = test::run_ranks(3, [](Rank& rank) {
    Spec spec = plain();
    if (rank.rank == 2) spec.head_dim = 32;
    rank.context(spec);
  });
  for (int rank = 0; rank < 3; ++rank) {
    CHECK_THAT(errors[static_cast<std::size_t>(rank)],
               Catch::Contains("error[spec]: rank " + std::to_string(rank) +
                               ": head_dim is 16 on rank 0 and 32 on rank 2"));
  }
}

TEST_CASE("context parallel: ranks with different shapes, options and scalars") {
  for (const std::string& error : errors_of([](const auto&context, const auto&, Rank&rank) {
         context.plan(shape_of(rank.rank == 1 ? 64 : 48));
       })) {
    CHECK_THAT(error, Catch::Contains("kv_len is 48 on rank 0 and 64 on rank 1"));
  }
  for (const std::string& error : errors_of([](const auto&context, const auto&, Rank&rank) {
         context.plan(shape_of(48), {},
                      {.sharding = rank.rank == 1 ? Sharding::zigzag : Sharding::contiguous});
       })) {
    CHECK_THAT(error, Catch::Contains("sharding is contiguous on rank 0 and zigzag on rank 1"));
  }
  const Spec windowed = {.dtype = f32,
                         .head_dim = 16,
                         .mask_mod = "q_idx - kv_idx < width",
                         .scalars = {{"width", {.dtype = i32}}}};
  for (
      const std::string& error : test::run_ranks(2, [&](Rank& rank) {
        const ContextParallel context = rank.context(windowed);
        context.plan(shape_of(48), context.bind(shape_of(48), {.scalars = {{"width", rank.rank}}}));
      })) {
    CHECK_THAT(error, Catch::Contains("scalar \"width\" is 0 on rank 0 and 1 on rank 1"));
  }
  const Spec biased = {.dtype = f32,
                       .head_dim = 16,
                       .score_mod = "cap * score + bias[kv_idx - q_idx + 48]",
                       .buffers = {{"bias", {.dtype = f32, .shape = {FreeDim{}}}}},
                       .scalars = {{"cap", {.dtype = f32, .default_value = 2}}}};
  const auto plan_of = [&](Rank& rank, std::int64_t length, double cap) {
    const ContextParallel context = rank.context(biased);
    const Tensor bias = Tensor::zeros(f32, {length});
    const SnippetInputs inputs = {.buffers = {{"bias", bias}}, .scalars = {{"cap", cap}}};
    context.plan(shape_of(48), context.bind(shape_of(48), inputs));
  };
  for (const std::string& error :
       test::run_ranks(2, [&](Rank& rank) { plan_of(rank, rank.rank == 0 ? 96 : 97, 2); })) {
    CHECK_THAT(error,
               Catch::Contains("buffer \"bias\" is f32 [96] on rank 0 and f32 [97] on rank 1"));
  }
  for (const std::string& error :
       test::run_ranks(2, [&](Rank& rank) { plan_of(rank, 96, rank.rank == 0 ? 2 : 3); })) {
    CHECK_THAT(error, Catch::Contains("scalar \"cap\" is 2 on rank 0 and 3 on rank 1"));
  }
}

TEST_CASE("context parallel: a rank that dies is an error at once on every rank") {
  const int exchanges = GENERATE(0, 1);  // that it takes part in
  const auto start = Clock::now();
  const std::vector<std::string> errors =
      errors_of([&](const auto& context, const auto& whole, Rank& rank) {
        if (rank.rank == 2) rank.loopback->die_after(exchanges);
        call(context, whole, shape_of(48));
        // Rank 0 has all of rank 2's columns after the first exchange, so its next call fails.
        call(context, whole, shape_of(48));
      });
  for (const std::size_t rank : {0, 1}) {
    CHECK_THAT(errors[rank], Catch::Contains("error[device]: rank " + std::to_string(rank)));
    CHECK_THAT(errors[rank], Catch::Contains("is gone"));
  }
  CHECK_THAT(errors[2], Catch::Contains("rank 2: this rank dies"));
  CHECK(milliseconds_since(start) < 30000);
}

TEST_CASE("context parallel: a rank that stays away is an error within the time-out") {
  const WholeCall whole(plain(), shape_of(48));
  std::vector<std::int64_t> waited(3);
  const std::vector<std::string> errors = test::run_ranks(
      3,
      [&](Rank& rank) {
        const ContextParallel context = rank.context(plain());
        const ContextPlan plan = context.plan(shape_of(48));
        const RankTensors own(whole, plan);
        packed_calls::Workspace workspace(context.workspace_size(plan));
        const auto start = Clock::now();
        if (rank.rank == 1) {
          std::this_thread::sleep_for(std::chrono::seconds(3));
          return;
        }
        try {
          context.forward(own.tensors(), plan, {}, {.workspace = workspace.view()});
        } catch (const Error&) {
          waited[static_cast<std::size_t>(rank.rank)] = milliseconds_since(start);
          throw;
        }
      },
      std::chrono::milliseconds(1000));
  CHECK(errors[1] == "");
  for (const std::size_t rank : {0, 2}) {
    CHECK_THAT(errors[rank], Catch::Contains("within 1000 ms") || Catch::Contains("is gone"));
    CHECK(waited[rank] < 2900);
  }
}

TEST_CASE("context parallel: tensors that do not fit name the rank") {
  const std::vector<std::string> errors =
      errors_of([](const auto& context, const auto& whole, Rank& rank) {
        const ContextPlan plan = context.plan(shape_of(48));
        RankTensors own(whole, plan);
        packed_calls::Workspace workspace(context.workspace_size(plan));
        ForwardTensors tensors = own.tensors();
        ContextCallOptions options = {.workspace = workspace.view()};
        if (rank.rank == 0) tensors.q.shape[2] = 15;
        if (rank.rank == 1) options.workspace.shape[0] = 1024;
        if (rank.rank == 2) tensors.out = tensors.q;
        context.forward(tensors, plan, {}, options);
      });
  CHECK_THAT(errors[0],
             Catch::Contains("error[tensor]: rank 0: q has q_len 15") && Catch::Contains("16"));
  CHECK_THAT(errors[1],
             Catch::Contains("rank 1: the workspace has 1024 bytes, and the plan needs"));
  CHECK_THAT(errors[2], Catch::Contains("rank 2: out overlaps q in memory"));

  const std::vector<std::string> others =
      errors_of([](const auto& context, const auto& whole, Rank& rank) {
        const ContextPlan plan = context.plan(shape_of(48));
        RankTensors own(whole, plan);
        packed_calls::Workspace workspace(context.workspace_size(plan) + 256);
        ForwardTensors tensors = own.tensors();
        ContextCallOptions options = {.workspace = workspace.view()};
        if (rank.rank == 0) tensors.lse.reset();
        if (rank.rank == 1) {
          options.workspace.data = static_cast<std::byte*>(options.workspace.data) + 16;
        }
        if (rank.rank == 2) tensors.k.strides[2] = 0;
        context.forward(tensors, plan, {}, options);
      });
  CHECK_THAT(others[0], Catch::Contains("rank 0: lse is missing"));
  CHECK_THAT(others[1], Catch::Contains("rank 1: the workspace begins between multiples of 256"));
  CHECK_THAT(others[2], Catch::Contains("rank 2: k is sent to other ranks, and its rows are not "
                                        "dense within a head"));
}

TEST_CASE("context parallel: no communicator, options of another use, a foreign plan") {
  CHECK_THAT(test::refusal([] { ContextParallel(plain(), nullptr); }),
             Catch::Contains("was given no communicator"));
  const std::vector<std::string> errors = test::run_ranks(1, [](Rank& rank) {
    const ContextParallel context = rank.context(plain());
    const ContextParallel other = rank.context(plain());
    other.workspace_size(context.plan(shape_of(48)));
  });
  CHECK_THAT(errors[0], Catch::Contains("the plan belongs to another ContextParallel"));
  const std::vector<std::string> refused = test::run_ranks(1, [](Rank& rank) {
    ContextParallel(plain(), rank.loopback, {.device = Device::cpu(), .masks_only = true});
  });
  CHECK_THAT(refused[0], Catch::Contains("options of another use"));
}

TEST_CASE("context parallel: a window sends the columns that its neighbour needs") {
  const Spec spec = {.dtype = f32,
                     .head_dim = 16,
                     .mask_mod = "q_idx >= kv_idx && q_idx - kv_idx < 32",
                     .block = {16, 16}};
  std::vector<ContextTraffic> traffic(4);
  for (const std::string& error : test::run_ranks(4, [&](Rank& rank) {
         const ContextParallel context = rank.context(spec);
         const ContextPlan plan = context.plan(shape_of(4096));
         traffic[static_cast<std::size_t>(rank.rank)] = plan.traffic();
       })) {
    REQUIRE(error == "");
  }
  for (const std::size_t rank : {0, 1, 2}) {
    CHECK(traffic[rank].bytes_sent == 32 * 2 * 16 * 4);
    CHECK(traffic[rank].bytes_sent * 20 < traffic[rank].bytes_of_full_ring);
  }
  CHECK(traffic[3].bytes_sent == 0);
  CHECK(traffic[0].bytes_received == 0);
}

}  // namespace tilewright
