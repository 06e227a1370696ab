// Context parallel: packed sequences on a CPU, with ranks that are threads, against the undivided
// call.
#include <map>
#include <string>

#include "tests/support/divided_packed.hpp"
#include "tests/support/refusal.hpp"

namespace tilewright {
namespace {

using packed_calls::Lengths;
using test::PackedTensors;
using test::Rank;
using test::sequences_of;
using test::UndividedPacked;

// |v| is at most 1.5 and its weights add up to 1. Sums of 431 products in f32 lose at most
// 431 * 2^-24 * 1.5 in either call, and a merge's weights and sums 20 * 2^-24 * 1.5.
constexpr double kOutBound = 2 * 451 * 0x1p-24 * 1.5;
constexpr double kLseBound = 2 * 4e-5 * 10;  // verify/judge.hpp, for each of the two
// As in buffer_gradients_test.cpp.
constexpr double kShareOfGreatest = 0x1p-10;

constexpr int kMasks = 7;

Spec masks_of_sequences() {
  return {.dtype = f32,
          .head_dim = 16,
          .v_head_dim = 24,
          .layout = Layout::packed,
          .score_mod = "score + slopes[h] * 0.004f * (kv_idx - q_idx) * cap",
          .mask_mod = R"(
            if (kind == 0) return true;
            if (kind == 1) return q_idx >= kv_idx;
            if (kind == 2) return q_idx >= kv_idx && q_idx - kv_idx < 20;
            if (kind == 3) return q_idx >= kv_idx || kv_idx < prefix[b];
            if (kind == 4) return (kv_idx + h) % 5 != 1 && b != 2;
            if (kind == 5) return abs(q_idx - kv_idx) < 9 * b;
            return false;)",
          .buffers = {{"prefix", {.dtype = i32, .shape = {NamedDim::batch}}},
                      {"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}},
          .scalars = {{"cap", {.dtype = f32, .default_value = 1}}, {"kind", {.dtype = i32}}},
          .block = {16, 16},
          .outputs = {.lse = true},
          .gradients = {"q", "k", "v", "slopes", "cap"}};
}

std::vector<Lengths> equal(std::initializer_list<int> lengths) {
  std::vector<Lengths> of;
  for (const int length : lengths) of.push_back({length, length});
  return of;
}

// Ragged, with empty ones; one that all ranks share; many short ones; fewer rows than columns, and
// more.
std::vector<std::vector<Lengths>> batches() {
  return {equal({0, 1, 37, 203, 0, 64, 5, 90, 0}),
          equal({431}),
          equal({1, 2, 1, 1, 3, 1, 1, 1, 2, 1, 1, 4, 1, 1, 1}),
          {{0, 9}, {5, 70}, {60, 60}, {33, 0}, {90, 17}, {1, 130}}};
}

// Buffers, scalars and where their gradients go.
struct Inputs {
  Tensor prefix;
  Tensor slopes = packed_calls::random_tensor({4}, 11);
  Tensor d_slopes = Tensor::zeros(f32, {4});
  Tensor d_cap = Tensor::zeros(f32, {1});

  explicit Inputs(const SharedSequences& whole) {
    std::vector<int> lengths;
    for (std::size_t b = 0; b + 1 < whole.q_begin.size(); ++b) {
      lengths.push_back(static_cast<int>(7 * b));
    }
    prefix = packed_calls::int_tensor(lengths);
  }

  SnippetInputs of_kind(int kind) const {
    return {.buffers = {{"prefix", prefix}, {"slopes", slopes}},
            .scalars = {{"kind", static_cast<double>(kind)}}};
  }
  std::map<std::string, TensorView> gradients() const {
    return {{"slopes", d_slopes}, {"cap", d_cap}};
  }
};

void run_rank(Rank& rank, const ContextParallel& context, const ContextPlan& plan,
              const SharedSequences& whole, const Bindings& bindings, const Inputs& inputs,
              const PackedTensors& wanted, PackedTensors& got) {
  const PackedTensors own(context.spec(), whole, wanted, plan);
  packed_calls::Workspace forward(context.workspace_size(plan));
  std::memset(forward.view().data, 0xff, static_cast<std::size_t>(forward.view().bytes()));
  const std::int64_t before = rank.loopback->sent();
  context.forward(own.forward(), plan, bindings, {.workspace = forward.view()});
  packed_calls::Workspace backward(context.workspace_size(plan, Pass::backward));
  std::memset(backward.view().data, 0xff, static_cast<std::size_t>(backward.view().bytes()));
  context.backward(own.backward(), plan, bindings, inputs.gradients(),
                   {.workspace = backward.view()});
  const ContextTraffic traffic = plan.traffic();
  if (rank.loopback->sent() - before != traffic.bytes_sent + traffic.backward_bytes_sent) {
    throw std::runtime_error("the plan counts other bytes than were sent");
  }
  own.put_into(got, plan);
}

double greatest_magnitude(const Tensor& tensor) {
  return test::distance(tensor, Tensor::zeros(f32, tensor.shape()));
}

void check_close(const Spec& spec, const SharedSequences& whole, const UndividedPacked& wanted,
                 const PackedTensors& got) {
  CHECK(test::distance(got.out, wanted.tensors.out) <= kOutBound);
  CHECK(test::distance(got.lse, wanted.tensors.lse) <= kLseBound);
  const Shape longest = {.num_q_heads = whole.num_q_heads,
                         .num_kv_heads = whole.num_kv_heads,
                         .q_len = whole.q_begin.back(),
                         .kv_len = whole.kv_begin.back()};
  const test::GradientBounds bounds(spec, longest, wanted.weight);
  CHECK(test::distance(got.dq, wanted.tensors.dq) <= bounds.dq);
  CHECK(test::distance(got.dk, wanted.tensors.dk) <= bounds.dk);
  CHECK(test::distance(got.dv, wanted.tensors.dv) <= bounds.dv);
}

}  // namespace

TEST_CASE("context parallel: packed sequences, seven masks over 1, 2, 3, 4 and 7 ranks") {
  const int size = GENERATE(1, 2, 3, 4, 7);
  const Spec spec = masks_of_sequences();
  const Attention attention(spec, {.device = Device::cpu()});
  for (const std::vector<Lengths>& lengths : batches()) {
    const SharedSequences whole = sequences_of(lengths);
    const Inputs inputs(whole);
    std::vector<UndividedPacked> wanted;
    std::vector<Inputs> wanted_named;
    for (int kind = 0; kind < kMasks; ++kind) {
      wanted_named.emplace_back(whole);
      wanted.emplace_back(attention, whole, attention.bind(inputs.of_kind(kind)),
                          wanted_named.back().gradients());
    }
    for (const Sharding sharding : {Sharding::automatic, Sharding::zigzag, Sharding::contiguous}) {
      std::vector<PackedTensors> got;
      std::vector<Inputs> got_named;
      for (int kind = 0; kind < kMasks; ++kind) {
        got.emplace_back(spec, whole);
        for (int rank = 0; rank < size; ++rank) got_named.emplace_back(whole);
      }
      for (const std::string& error : test::run_ranks(size, [&](Rank& rank) {
             const ContextParallel context = rank.context(spec);
             for (int kind = 0; kind < kMasks; ++kind) {
               const auto i = static_cast<std::size_t>(kind);
               const Bindings bindings = context.bind(whole, inputs.of_kind(kind));
               const ContextPlan plan = context.plan(whole, bindings, {.sharding = sharding});
               run_rank(rank, context, plan, whole, bindings,
                        got_named[i * static_cast<std::size_t>(size) +
                                  static_cast<std::size_t>(rank.rank)],
                        wanted[i].tensors, got[i]);
             }
           })) {
        REQUIRE(error == "");
      }
      for (int kind = 0; kind < kMasks; ++kind) {
        CAPTURE(size, lengths.size(), kind, to_string(sharding));
        const auto i = static_cast<std::size_t>(kind);
        check_close(spec, whole, wanted[i], got[i]);
        for (int rank = 0; rank < size; ++rank) {
          const Inputs& named =
              got_named[i * static_cast<std::size_t>(size) + static_cast<std::size_t>(rank)];
          for (const auto of : {&Inputs::d_slopes, &Inputs::d_cap}) {
            CHECK(test::distance(named.*of, wanted_named[i].*of) <=
                  kShareOfGreatest * greatest_magnitude(wanted_named[i].*of) + 1e-5);
          }
        }
      }
    }
  }
}

TEST_CASE("context parallel: what no packed sequence needs is neither sent nor computed") {
  const Spec spec = {.dtype = f32,
                     .head_dim = 16,
                     .layout = Layout::packed,
                     .mask_mod = "q_idx >= kv_idx",
                     .block = {16, 16},
                     .outputs = {.lse = true}};
  const auto facts_of = [&](const std::vector<Lengths>& lengths, Sharding sharding) {
    std::vector<ContextTraffic> traffic(4);
    std::vector<Sharding> chosen(4);
    for (const std::string& error : test::run_ranks(4, [&](Rank& rank) {
           const ContextParallel context = rank.context(spec);
           const ContextPlan plan = context.plan(sequences_of(lengths), {}, {.sharding = sharding});
           traffic[static_cast<std::size_t>(rank.rank)] = plan.traffic();
           chosen[static_cast<std::size_t>(rank.rank)] = plan.sharding();
         })) {
      REQUIRE(error == "");
    }
    return std::pair{traffic, chosen[0]};
  };
  // Each rank has sequences of its own.
  const auto [apart, of_apart] = facts_of(equal({64, 32, 32, 64, 40, 24}), Sharding::automatic);
  CHECK(of_apart == Sharding::contiguous);
  for (const ContextTraffic& of : apart) {
    CHECK(of.bytes_sent == 0);
    CHECK(of.calls == 1);
  }
  // The second sequence begins on rank 0 and ends on rank 1, which needs the 24 columns of rank 0.
  const auto [shared, of_shared] = facts_of(equal({40, 48, 40, 64, 64}), Sharding::contiguous);
  CHECK(of_shared == Sharding::contiguous);
  CHECK(shared[0].bytes_sent == 24 * 2 * (16 + 16) * 4);
  CHECK(shared[1].calls == 2);
  for (const std::size_t rank : {1, 2, 3}) CHECK(shared[rank].bytes_sent == 0);
  // One causal sequence gives the last rank the most work, unless each rank has two parts.
  const auto [uneven, of_long] = facts_of(equal({512}), Sharding::automatic);
  CHECK(of_long == Sharding::zigzag);
  const auto [least, most] =
      std::minmax({uneven[0].tiles[0], uneven[0].tiles[1], uneven[0].tiles[2], uneven[0].tiles[3]});
  CHECK(most <= least + least / 8);
}

TEST_CASE("context parallel: packed sequences in bf16, with offsets of their own") {
  const Spec spec = {.dtype = bf16,
                     .head_dim = 32,
                     .layout = Layout::packed,
                     .mask_mod = "q_idx >= kv_idx && q_idx - kv_idx < 60",
                     .block = {32, 32},
                     .outputs = {.lse = true}};
  SharedSequences whole = sequences_of({{40, 70}, {0, 20}, {90, 130}, {33, 33}});
  whole.q_offset = {100, 7, 50, -5};
  whole.kv_offset = {60, 0, 10, -20};
  const Attention attention(spec, {.device = Device::cpu()});
  const UndividedPacked wanted(attention, whole, {}, {});
  for (const Sharding sharding : {Sharding::zigzag, Sharding::contiguous}) {
    PackedTensors got(spec, whole);
    for (const std::string& error : test::run_ranks(4, [&](Rank& rank) {
           const ContextParallel context = rank.context(spec);
           const ContextPlan plan = context.plan(whole, {}, {.sharding = sharding});
           const PackedTensors own(spec, whole, wanted.tensors, plan);
           packed_calls::Workspace memory(context.workspace_size(plan));
           context.forward(own.forward(), plan, {}, {.workspace = memory.view()});
           own.put_into(got, plan);
         })) {
      REQUIRE(error == "");
    }
    // As in tests/emulated_gpu/context_parallel_test.cpp.
    CHECK(test::distance(got.out, wanted.tensors.out) <= 5 * 0x1p-8);
    CHECK(test::distance(got.lse, wanted.tensors.lse) <= 2 * (2e-3 + 0x1p-19 * 10));
  }
}

TEST_CASE("context parallel: packed shards of given lengths, and whose rows they are") {
  const Spec spec = masks_of_sequences();
  const SharedSequences whole = sequences_of(equal({0, 1, 37, 203, 0, 64, 5, 90, 0}));
  const Inputs inputs(whole);
  const Attention attention(spec, {.device = Device::cpu()});
  const UndividedPacked wanted(attention, whole, attention.bind(inputs.of_kind(1)),
                               Inputs(whole).gradients());
  PackedTensors got(spec, whole);
  std::vector<std::vector<Shard>> shards(3), of_zigzag(3);
  for (const std::string& error : test::run_ranks(3, [&](Rank& rank) {
         const ContextParallel context = rank.context(spec);
         const Bindings bindings = context.bind(whole, inputs.of_kind(1));
         const ContextPlan plan = context.plan(
             whole, bindings, {.q_lengths = {1, 309, 90}, .kv_lengths = {200, 3, 197}});
         shards[static_cast<std::size_t>(rank.rank)] = plan.shards();
         of_zigzag[static_cast<std::size_t>(rank.rank)] =
             context.plan(whole, bindings, {.sharding = Sharding::zigzag}).shards();
         run_rank(rank, context, plan, whole, bindings, Inputs(whole), wanted.tensors, got);
       })) {
    REQUIRE(error == "");
  }
  check_close(spec, whole, wanted, got);
  CHECK(shards[1] == std::vector<Shard>{{1, 309, 200, 3}});
  // Every row is one rank's, and ranks have as many.
  std::vector<int> owners(400);
  std::vector<std::int64_t> rows(3);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    for (const Shard& shard : of_zigzag[rank]) {
      rows[rank] += shard.q_len;
      for (std::int64_t i = 0; i < shard.q_len; ++i) {
        ++owners[static_cast<std::size_t>(shard.q_begin + i)];
      }
    }
  }
  CHECK(std::count(owners.begin(), owners.end(), 1) == 400);
  CHECK(*std::max_element(rows.begin(), rows.end()) <= 134);
  CHECK(*std::min_element(rows.begin(), rows.end()) >= 132);
}

TEST_CASE("context parallel: rows that do not divide go to all ranks of packed sequences") {
  const Spec spec = {
      .dtype = f32, .head_dim = 16, .layout = Layout::packed, .outputs = {.lse = true}};
  std::vector<std::int64_t> rows(3);
  for (const std::string& error : test::run_ranks(3, [&](Rank& rank) {
         const ContextParallel context = rank.context(spec);
         const SharedSequences whole = sequences_of(equal({1, 1, 2, 7, 1, 1, 3, 1, 1, 1, 8, 1}));
         rows[static_cast<std::size_t>(rank.rank)] =
             context.plan(whole, {}, {.sharding = Sharding::zigzag}).q_rows();
       })) {
    REQUIRE(error == "");
  }
  for (const std::int64_t count : rows) CHECK((count >= 8 && count <= 10));
}

TEST_CASE("context parallel: packed calls that are refused name the rank") {
  const Spec spec = {
      .dtype = f32, .head_dim = 16, .layout = Layout::packed, .outputs = {.lse = true}};
  const auto errors_of = [&](const std::function<void(Rank&, const ContextParallel&)>& body) {
    return test::run_ranks(2, [&](Rank& rank) { body(rank, rank.context(spec)); });
  };
  for (const std::string& error : errors_of([](Rank&rank, const ContextParallel&context) {
         context.plan(sequences_of(equal({5, 9 + rank.rank})));
       })) {
    CHECK_THAT(error, Catch::Contains("kv_begin[2] is 14 on rank 0 and 15 on rank 1"));
  }
  const std::vector<std::string> errors = errors_of([](Rank& rank, const ContextParallel& context) {
    const SharedSequences whole = sequences_of(equal({5, 9}));
    const ContextPlan plan = context.plan(whole);
    const PackedTensors all(context.spec(), whole);
    const PackedTensors own(context.spec(), whole, all, plan);
    packed_calls::Workspace memory(context.workspace_size(plan));
    ForwardTensors tensors = own.forward();
    if (rank.rank == 0) tensors.q = all.q;
    if (rank.rank == 1) tensors.lse = all.lse.view();
    context.forward(tensors, plan, {}, {.workspace = memory.view()});
  });
  CHECK_THAT(errors[0], Catch::Contains("error[tensor]: rank 0: q has total_q 14"));
  CHECK_THAT(errors[1], Catch::Contains("rank 1: lse does not fit"));
  for (const std::string& error : errors_of([](Rank&, const ContextParallel& context) {
         context.plan(Shape{.q_len = 48, .kv_len = 48});
       })) {
    CHECK_THAT(error, Catch::Contains("the shape of a dense call was given for a packed spec"));
  }
  for (const std::string& error : errors_of([](Rank&, const ContextParallel& context) {
         context.plan(sequences_of(equal({1, 1, 1})));
       })) {
    CHECK_THAT(error, Catch::Contains("all sequences together have 3 rows, and 2 ranks take at "
                                      "least 4"));
  }
  for (const std::string& error : errors_of([](Rank&, const ContextParallel& context) {
         context.plan({.q_begin = {0, 9, 5}});
       })) {
    CHECK_THAT(error, Catch::Contains("q_begin[2] is 5, after 9"));
  }
}

}  // namespace tilewright
