// tw_context_parallel: two ranks that are threads, over a transport of the program's own, against
// the undivided call.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/c/calls.hpp"

namespace tilewright::c_abi {
namespace {

using CommunicatorHandle = std::unique_ptr<tw_communicator, Destroy<tw_communicator_destroy>>;
using ContextHandle = std::unique_ptr<tw_context_parallel, Destroy<tw_context_parallel_destroy>>;
using ContextPlanHandle = std::unique_ptr<tw_context_plan, Destroy<tw_context_plan_destroy>>;

constexpr std::int64_t kLength = 48, kHeads = 2, kWidth = 16;
constexpr const char* kSpec =
    R"({"dtype": "f32", "head_dim": 16, "mask_mod": "q_idx >= kv_idx", "block": [16, 16], )"
    R"("score_mod": "tanh(score / cap) * cap", "scalars": {"cap": {"dtype": "f32", "default": 2}}, )"
    R"("outputs": ["out", "lse"], "gradients": ["q", "k", "v", "cap"]})";

// Bytes on their way between the ranks of a group.
class Ways {
 public:
  void send(int from, int to, const void* data, std::int64_t bytes) {
    const auto* const begin = static_cast<const char*>(data);
    const std::lock_guard lock(mutex_);
    ways_[{from, to}].emplace_back(begin, begin + bytes);
    changed_.notify_all();
  }

  // False where nothing comes.
  bool receive(int from, int to, void* data, std::int64_t bytes) {
    std::unique_lock lock(mutex_);
    std::deque<std::vector<char>>& way = ways_[{from, to}];
    const auto is_there = [&] { return !way.empty(); };
    if (!changed_.wait_for(lock, std::chrono::seconds(20), is_there)) return false;
    if (static_cast<std::int64_t>(way.front().size()) != bytes) return false;
    if (bytes > 0) std::memcpy(data, way.front().data(), static_cast<std::size_t>(bytes));
    way.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> ways_;
};

struct Rank {
  Ways* ways = nullptr;
  int rank = 0;
  bool fails = false;  // its exchanges

  tw_transport transport() {
    auto made = sized<tw_transport>();
    made.rank = rank;
    made.size = 2;
    made.user = this;
    made.all_gather = [](void* user, const void* mine, void* all, std::int64_t bytes) {
      const Rank& self = *static_cast<Rank*>(user);
      for (const int to : {0, 1}) self.ways->send(self.rank, to, mine, bytes);
      for (const int from : {0, 1}) {
        char* const place = static_cast<char*>(all) + from * bytes;
        if (!self.ways->receive(from, self.rank, place, bytes)) return 1;
      }
      return 0;
    };
    made.exchange = [](void* user, const tw_message* sends, std::size_t send_count,
                       const tw_message* receives, std::size_t receive_count, void*) {
      const Rank& self = *static_cast<Rank*>(user);
      if (self.fails) return 7;
      for (std::size_t i = 0; i < send_count; ++i) {
        self.ways->send(self.rank, sends[i].peer, sends[i].data, sends[i].bytes);
      }
      for (std::size_t i = 0; i < receive_count; ++i) {
        const tw_message& message = receives[i];
        if (!self.ways->receive(message.peer, self.rank, message.data, message.bytes)) return 1;
      }
      return 0;
    };
    made.describe = [](void*, std::int32_t status) {
      return status == 7 ? "the cable is cut" : static_cast<const char*>(nullptr);
    };
    return made;
  }
};

// The whole sequence's tensors, or a rank's rows of them: [1, heads, rows, width].
struct Tensors {
  std::int64_t rows;
  std::vector<float> q, k, v, out, lse, dout, dq, dk, dv;
  std::vector<float> d_cap = {-9.0f};
  tw_buffer named = {};  // of a call of backward

  explicit Tensors(std::int64_t count) : rows(count) {
    const std::int64_t all = kHeads * rows * kWidth;
    q = numbers(all, 1);
    k = numbers(all, 2);
    v = numbers(all, 3);
    dout = numbers(all, 4);
    out = dq = dk = dv = std::vector<float>(static_cast<std::size_t>(all), -9.0f);
    lse.assign(static_cast<std::size_t>(kHeads * rows), -9.0f);
  }

  tw_tensor view(std::vector<float>& of) const { return tensor(of, {1, kHeads, rows, kWidth}); }
  tw_tensor lse_view() { return tensor(lse, {1, kHeads, rows}); }

  tw_call call() {
    auto made = sized<tw_call>();
    made.q = view(q);
    made.k = view(k);
    made.v = view(v);
    made.out = view(out);
    made.lse = lse_view();
    return made;
  }

  tw_backward_call backward_call() {
    auto made = sized<tw_backward_call>();
    made.q = view(q);
    made.k = view(k);
    made.v = view(v);
    made.out = view(out);
    made.lse = lse_view();
    made.dout = view(dout);
    made.dq = view(dq);
    made.dk = view(dk);
    made.dv = view(dv);
    named = {"cap", tensor(d_cap, {1})};
    made.gradients = &named;
    made.gradient_count = 1;
    return made;
  }

  // Rows of the whole that a shard has.
  void take(const Tensors& whole, const tw_shard& shard, std::int64_t to) {
    for (const auto of : {&Tensors::q, &Tensors::k, &Tensors::v, &Tensors::dout}) {
      for (std::int64_t h = 0; h < kHeads; ++h) {
        std::copy_n((whole.*of).begin() + (h * kLength + shard.q_begin) * kWidth,
                    shard.q_len * kWidth, (this->*of).begin() + (h * rows + to) * kWidth);
      }
    }
  }

  // The greatest distance of some tensors' rows from those of the whole.
  double distance(const Tensors& whole, const tw_shard& shard, std::int64_t at,
                  std::initializer_list<std::vector<float> Tensors::*> tensors) const {
    double greatest = 0;
    for (const auto of : tensors) {
      for (std::int64_t h = 0; h < kHeads; ++h) {
        for (std::int64_t i = 0; i < shard.q_len * kWidth; ++i) {
          const auto mine = static_cast<std::size_t>((h * rows + at) * kWidth + i);
          const auto its = static_cast<std::size_t>((h * kLength + shard.q_begin) * kWidth + i);
          greatest =
              std::max(greatest, std::fabs(double{(this->*of)[mine]} - double{(whole.*of)[its]}));
        }
      }
    }
    return greatest;
  }
};

tw_shape whole_shape() {
  return shape(kHeads, kLength, kLength);
}

Tensors undivided() {
  Tensors whole(kLength);
  const AttentionHandle made = attention(kSpec);
  const tw_shape of = whole_shape();
  auto options = sized<tw_mask_options>();
  options.transposed = 1;
  const auto mask = make<MaskHandle>(tw_mask_create, made.get(), &of,
                                     static_cast<tw_bindings*>(nullptr), &options);
  tw_call call = whole.call();
  call.mask = mask.get();
  succeed(tw_forward, made.get(), &call);
  tw_backward_call backward = whole.backward_call();
  backward.mask = mask.get();
  succeed(tw_backward, made.get(), &backward);
  return whole;
}

// Statuses of what a rank did, which Catch must see in its own thread.
struct Outcome {
  std::vector<std::string> errors;
  double of_rows = 0;     // the greatest distance of out and dq
  double of_columns = 0;  // of dk and dv
  double of_cap = 0;      // as a share of its gradient
  std::int64_t sent = 0;

  template <typename Function, typename... Arguments>
  bool run(Function function, Arguments... arguments) {
    tw_error* error = nullptr;
    const tw_status status = function(arguments..., &error);
    const ErrorHandle ends(error);
    if (status != TW_OK) errors.emplace_back(tw_error_report(error));
    return status == TW_OK;
  }
};

void run_rank(Rank& rank, const Tensors& whole, Outcome& outcome) {
  const tw_transport transport = rank.transport();
  tw_communicator* communicator = nullptr;
  outcome.run(tw_communicator_from_transport, &transport, &communicator);
  const CommunicatorHandle own_communicator(communicator);
  const tw_options options = cpu_options();
  tw_context_parallel* context = nullptr;
  if (!outcome.run(tw_context_parallel_create, kSpec, communicator, &options, &context)) {
    return;
  }
  const ContextHandle own_context(context);
  auto plan_options = sized<tw_context_plan_options>();
  plan_options.sharding = TW_SHARDING_ZIGZAG;
  const tw_shape of = whole_shape();
  tw_context_plan* plan = nullptr;
  if (!outcome.run(tw_context_plan_create, context, &of, static_cast<const tw_bindings*>(nullptr),
                   &plan_options, &plan)) {
    return;
  }
  const ContextPlanHandle own_plan(plan);
  auto info = sized<tw_context_plan_info>();
  outcome.run(tw_context_plan_describe, context, plan, &info);
  outcome.sent = info.backward_bytes_sent;
  Tensors own(info.q_rows);
  std::int64_t row = 0;
  for (int i = 0; i < info.shard_count; row += info.shards[i++].q_len) {
    own.take(whole, info.shards[i], row);
  }
  const std::int64_t bytes = std::max(info.workspace_bytes, info.backward_workspace_bytes);
  std::vector<char> memory(static_cast<std::size_t>(bytes + 256));
  char* const begin = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256);
  tw_call call = own.call();
  call.workspace = begin;
  call.workspace_bytes = bytes;
  if (!outcome.run(tw_context_parallel_forward, context, plan, &call)) return;
  tw_backward_call backward = own.backward_call();
  backward.workspace = begin;
  backward.workspace_bytes = bytes;
  if (!outcome.run(tw_context_parallel_backward, context, plan, &backward)) return;
  outcome.run(tw_context_parallel_wait, context, static_cast<void*>(nullptr));
  outcome.of_cap = std::fabs(double{own.d_cap[0]} / double{whole.d_cap[0]} - 1);
  row = 0;
  for (int i = 0; i < info.shard_count; row += info.shards[i++].q_len) {
    outcome.of_rows = std::max(
        outcome.of_rows, own.distance(whole, info.shards[i], row, {&Tensors::out, &Tensors::dq}));
    outcome.of_columns = std::max(
        outcome.of_columns, own.distance(whole, info.shards[i], row, {&Tensors::dk, &Tensors::dv}));
  }
}

std::vector<Outcome> run_ranks(const Tensors& whole, bool first_fails) {
  Ways ways;
  std::vector<Outcome> outcomes(2);
  std::vector<std::thread> threads;
  std::vector<Rank> ranks = {{&ways, 0, first_fails}, {&ways, 1, first_fails}};
  for (std::size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] { run_rank(ranks[i], whole, outcomes[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

// A rank's part of a packed call in which every v is 1, so that out is 1 too.
void run_packed(Rank& rank, Outcome& outcome, std::vector<tw_shard>& shards) {
  const tw_transport transport = rank.transport();
  tw_communicator* communicator = nullptr;
  outcome.run(tw_communicator_from_transport, &transport, &communicator);
  const CommunicatorHandle own_communicator(communicator);
  const tw_options options = cpu_options();
  tw_context_parallel* context = nullptr;
  const char* const spec =
      R"({"dtype": "f32", "head_dim": 16, "layout": "packed", "mask_mod": "q_idx >= kv_idx - gap", )"
      R"("scalars": {"gap": {"dtype": "i32"}}})";
  if (!outcome.run(tw_context_parallel_create, spec, communicator, &options, &context)) return;
  const ContextHandle own_context(context);
  const std::int64_t begins[] = {0, 3, 3, 45};
  auto whole = sized<tw_shared_sequences>();
  whole.batch = 3;
  whole.num_q_heads = whole.num_kv_heads = kHeads;
  whole.q_begin = begins;
  const tw_scalar gap = {"gap", 0};
  tw_bindings* bindings = nullptr;
  if (!outcome.run(tw_context_parallel_bind_packed, context, &whole,
                   static_cast<const tw_buffer*>(nullptr), std::size_t{0}, &gap, std::size_t{1},
                   &bindings)) {
    return;
  }
  const BindingsHandle own_bindings(bindings);
  auto plan_options = sized<tw_context_plan_options>();
  plan_options.sharding = TW_SHARDING_ZIGZAG;
  tw_context_plan* plan = nullptr;
  if (!outcome.run(tw_context_plan_create_packed, context, &whole,
                   static_cast<const tw_bindings*>(bindings), &plan_options, &plan)) {
    return;
  }
  const ContextPlanHandle own_plan(plan);
  std::size_t count = 0;
  outcome.run(tw_context_plan_shards, plan, static_cast<tw_shard*>(nullptr), &count);
  shards.resize(count);
  outcome.run(tw_context_plan_shards, plan, shards.data(), &count);
  auto info = sized<tw_context_plan_info>();
  outcome.run(tw_context_plan_describe, context, plan, &info);
  if (info.shard_count != static_cast<std::int32_t>(count)) outcome.errors.emplace_back("count");
  count = 1;
  tw_error* error = nullptr;
  if (tw_context_plan_shards(plan, shards.data(), &count, &error) != TW_USAGE) {
    outcome.errors.emplace_back("too little room is no error");
  }
  tw_error_destroy(error);
  const auto all = static_cast<std::size_t>(info.q_rows * kHeads * kWidth);
  std::vector<float> q = numbers(static_cast<std::int64_t>(all), 1), v(all, 1.0f), out(all, -9.0f);
  auto call = sized<tw_call>();
  call.q = call.k = tensor(q, {info.q_rows, kHeads, kWidth});
  call.v = tensor(v, {info.q_rows, kHeads, kWidth});
  call.out = tensor(out, {info.q_rows, kHeads, kWidth});
  call.bindings = bindings;
  std::vector<char> memory(static_cast<std::size_t>(info.workspace_bytes + 256));
  call.workspace = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256);
  call.workspace_bytes = info.workspace_bytes;
  outcome.run(tw_context_parallel_forward, context, plan, &call);
  for (const float x : out) outcome.of_rows = std::max(outcome.of_rows, std::fabs(double{x} - 1));
}

}  // namespace

TEST_CASE("C: packed sequences that two ranks share") {
  Ways ways;
  std::vector<Outcome> outcomes(2);
  std::vector<std::vector<tw_shard>> shards(2);
  std::vector<Rank> ranks = {{&ways, 0}, {&ways, 1}};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] { run_packed(ranks[i], outcomes[i], shards[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    for (const std::string& error : outcomes[i].errors) FAIL_CHECK(error);
    CHECK(outcomes[i].of_rows < 1e-6);
    for (const tw_shard& shard : shards[i]) rows += shard.q_len;
  }
  CHECK(rows == 45);
  CHECK(shards[0].size() + shards[1].size() == 3 + 4);
}

// tests/support/divided_gradients.hpp counts roundings: 1.2e-3 for dq, and as much for each of the
// 48 rows that may read a column.
TEST_CASE("C: forward and backward of a sequence that two ranks share") {
  const Tensors whole = undivided();
  for (const Outcome& outcome : run_ranks(whole, false)) {
    for (const std::string& error : outcome.errors) FAIL_CHECK(error);
    CHECK(outcome.of_rows < 1.2e-3);
    CHECK(outcome.of_columns < 48 * 1.2e-3);
    CHECK(outcome.of_cap < 1e-3);
    CHECK(outcome.sent > 0);
  }
}

TEST_CASE("C: a transport that fails is an error with the rank and the program's words") {
  const std::vector<Outcome> outcomes = run_ranks(Tensors(kLength), true);
  for (std::size_t rank : {std::size_t{0}, std::size_t{1}}) {
    REQUIRE(outcomes[rank].errors.size() == 1);
    CHECK_THAT(outcomes[rank].errors[0],
               Catch::Matchers::ContainsSubstring("error[device]: rank " + std::to_string(rank)) &&
                   Catch::Matchers::ContainsSubstring("the cable is cut"));
  }
}

TEST_CASE("C: context parallel refuses what makes no sense") {
  tw_communicator* made = nullptr;
  auto transport = sized<tw_transport>();
  transport.size = 1;
  fail(TW_USAGE, tw_communicator_from_transport, &transport, &made);
  Ways ways;
  Rank rank{&ways, 0};
  transport = rank.transport();
  transport.rank = 2;
  const ErrorHandle outside = fail(TW_USAGE, tw_communicator_from_transport, &transport, &made);
  CHECK_THAT(tw_error_message(outside.get()),
             Catch::Matchers::ContainsSubstring("has rank 2 of 2"));
  CHECK(made == nullptr);
  const tw_options options = cpu_options();
  tw_context_parallel* context = nullptr;
  fail(TW_USAGE, tw_context_parallel_create, kSpec, static_cast<tw_communicator*>(nullptr),
       &options, &context);
  fail(TW_USAGE, tw_communicator_from_nccl, static_cast<void*>(nullptr), "cuda:0", std::int64_t{0},
       &made);
  tw_communicator_destroy(nullptr);
  tw_context_parallel_destroy(nullptr);
  tw_context_plan_destroy(nullptr);
}

}  // namespace tilewright::c_abi
