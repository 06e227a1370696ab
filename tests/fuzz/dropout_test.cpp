// Cases with dropout: how they are drawn, judged, related and made smaller.
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "fuzz/case.hpp"
#include "fuzz/case_inputs.hpp"
#include "fuzz/features.hpp"
#include "fuzz/random_case.hpp"
#include "fuzz/random_dropout.hpp"
#include "fuzz/relation_choice.hpp"
#include "fuzz/relations.hpp"
#include "fuzz/run_case.hpp"
#include "fuzz/shrink.hpp"
#include "generator/spec/spec_json.hpp"
#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/fuzz/own_store.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify::fuzz;
using Catch::Matchers::ContainsSubstring;
using tilewright::test::with_own_store;

// Snippets without trees, but for dropout: the compiled readings read them.
FuzzCase dense_case() {
  FuzzCase c;
  c.spec = {.dtype = f32,
            .head_dim = 16,
            .score_mod = "score + 0.01f * (kv_idx - q_idx)",
            .mask_mod = "q_idx >= kv_idx - 40",
            .dropout = "p",
            .scalars = {{"p", {.dtype = f32, .default_value = 0.5}}, {"seed", {.dtype = i64}}},
            .outputs = {.lse = true, .weights = true}};
  c.shape = {.batch = 2,
             .num_q_heads = 4,
             .num_kv_heads = 2,
             .q_len = 33,
             .kv_len = 71,
             .q_offset = 3,
             .kv_offset = 2};
  c.seed = 5;
  return c;
}

// What is read by the interpreter.
FuzzCase plain_case() {
  FuzzCase c = dense_case();
  c.spec.score_mod.clear();
  c.spec.mask_mod.clear();
  c.spec.dropout = "ps[h]";
  c.spec.buffers["ps"] = {.dtype = f32, .shape = {NamedDim::num_q_heads}, .range = {{-0.25, 0.75}}};
  c.spec.buffers["seed"] = {.dtype = i64, .range = {{-0x1p53, 0x1p53}}};
  c.spec.scalars.clear();
  return c;
}

FuzzCase packed_case() {
  FuzzCase c = dense_case();
  c.spec.layout = Layout::packed;
  c.spec.outputs.weights = false;
  c.spec.mask_mod = "q_idx >= kv_idx";
  c.shape = {.batch = 1, .num_q_heads = 4, .num_kv_heads = 2};
  c.packing = {.sequences = {{.q_len = 20, .kv_len = 41}, {.q_len = 3, .kv_len = 39}}, .kv_gap = 4};
  set_totals(c.shape, c.packing);
  return c;
}

FuzzCase with_gradients(FuzzCase c) {
  c.spec.gradients = {"q", "k", "v"};
  return c;
}

Outcome with_fault(const FuzzCase& c, test::Fault fault) {
  RunOptions options = with_own_store();
  options.kernels.templates = std::make_shared<test::FaultyTemplates>(std::move(fault));
  return CaseRunner(options).run(c);
}

}  // namespace

TEST_CASE("fuzz dropout: cases are right, dense and packed, with weights and gradients") {
  CHECK(has_all_trees(plain_case()));
  CHECK_FALSE(has_all_trees(dense_case()));
  CaseRunner runner(with_own_store());
  for (const FuzzCase& c : {plain_case(), with_gradients(dense_case()), packed_case()}) {
    const Outcome outcome = runner.run(c);
    CHECK(outcome.message.empty());
    CHECK(outcome.share_of_bound > 0);
    CHECK_THAT(describe(c), ContainsSubstring("dropout"));
  }
}

TEST_CASE("fuzz dropout: a case with a probability that is no number survives JSON, and is right") {
  FuzzCase c = dense_case();
  c.spec.outputs.weights = false;
  CaseRunner runner(with_own_store());
  for (const double p : {std::numeric_limits<double>::quiet_NaN(), HUGE_VAL, -HUGE_VAL}) {
    c.scalars["p"] = p;
    const FuzzCase again = case_from_json(to_json(c));
    CHECK(again == c);
    CHECK(std::isnan(again.scalars.at("p")) == std::isnan(p));
    CHECK(runner.run(again).message.empty());
  }
}

TEST_CASE("fuzz dropout: kernels that draw or weigh otherwise are found") {
  const test::Fault nine_rounds{"a round less", "attention/philox.hpp", "kRounds = 10",
                                "kRounds = 9"};
  for (const FuzzCase& c : {plain_case(), packed_case()}) {
    const Outcome outcome = with_fault(c, nine_rounds);
    INFO(outcome.message);
    CHECK(outcome.failure == Failure::wrong_result);
  }
  const Outcome rows =
      with_fault(with_gradients(dense_case()),
                 {"another row's draws in backward", "cpu/dropped_products.hpp",
                  "draw_quad(dropout, kv_idx >> 2, first_q_idx + lane, h, b)",
                  "draw_quad(dropout, kv_idx >> 2, first_q_idx + lane + 1, h, b)"});
  CHECK(rows.failure == Failure::wrong_gradient);
}

TEST_CASE("fuzz dropout: relations that move no element say something of it, and hold") {
  FuzzCase dense = dense_case();
  dense.spec.outputs.weights = false;
  const FuzzCase packed = packed_case();
  std::set<std::string> said;
  for (const Relation relation : all_relations()) {
    if (applies(relation, dense) || applies(relation, packed)) {
      said.insert(std::string(to_string(relation)));
    }
  }
  CHECK(said == std::set<std::string>{"split_keys", "added_constant", "mask_as_score", "tactics",
                                      "linear_in_v", "padding", "proved_mask", "json_spec",
                                      "equal_scales", "no_sink", "cached", "no_dropout",
                                      "seed_in_buffer", "one_sequence", "planned_again",
                                      "positions", "paged", "new_rows", "merged_ranges"});
  // The others change no index that a draw depends on, and the campaign asks for them.
  KernelRelationRunner runner(Device::cpu());
  for (const Relation relation :
       {Relation::split_keys, Relation::linear_in_v, Relation::padding, Relation::no_dropout,
        Relation::seed_in_buffer, Relation::one_sequence, Relation::positions, Relation::new_rows,
        Relation::merged_ranges}) {
    const FuzzCase& c = is_of_packed(relation) ? packed : dense;
    const RelationResult result =
        check_relation(relation, c.spec, dense_inputs(c), runner, c.packing);
    CAPTURE(to_string(relation), result.message);
    CHECK(result.applies);
    CHECK(result.holds());
  }
}

TEST_CASE("fuzz dropout: relations of dropout are broken by faults that they are there for") {
  class ChangingRunner : public KernelRelationRunner {
   public:
    ChangingRunner() : KernelRelationRunner(Device::cpu()) {}
    using KernelRelationRunner::forward;
    verify::AttentionValues forward(const Spec& spec, const verify::Problem& problem,
                                    Way way) override {
      Spec wrong = spec;
      verify::Problem other = problem;
      if (wrong.dropout == zero) wrong.dropout = "0.5";
      if (spec.has_dropout() && !spec.has_seed_buffer()) other.snippet.scalars["seed"] = seed;
      return KernelRelationRunner::forward(wrong, other, way);
    }
    std::string zero = "no such text";
    double seed = 1;
  } runner;
  FuzzCase c = dense_case();
  c.spec.outputs.weights = false;
  const auto message = [&](Relation relation) {
    return check_relation(relation, c.spec, dense_inputs(c), runner).message;
  };
  CHECK_THAT(message(Relation::seed_in_buffer), ContainsSubstring("seed_in_buffer does not hold"));
  CHECK(message(Relation::no_dropout).empty());
  runner.zero = "0.0";
  CHECK_THAT(message(Relation::no_dropout), ContainsSubstring("no_dropout does not hold"));
}

TEST_CASE("fuzz dropout: random cases draw it in every way") {
  CaseMaker maker({}, 21);
  int with = 0;
  constexpr int kCases = 160;
  std::set<std::string> texts;
  bool in_buffer = false, packed = false, gradients = false, weights = false;
  for (int i = 0; i < kCases; ++i) {
    const FuzzCase c = maker.next_group(1).front();
    if (!c.spec.has_dropout()) continue;
    ++with;
    CHECK_NOTHROW(validate(c.spec));
    CHECK(has_all_trees(c));
    CHECK(case_from_json(to_json(c)) == c);
    CHECK((c.spec.has_seed_buffer() || c.scalars.contains("seed")));
    texts.insert(c.spec.dropout);
    in_buffer = in_buffer || c.spec.has_seed_buffer();
    packed = packed || c.spec.is_packed();
    gradients = gradients || !c.spec.gradients.empty();
    weights = weights || c.spec.outputs.weights;
  }
  CAPTURE(with, texts);
  CHECK(with > kCases / 8);
  CHECK(with < kCases / 2);
  CHECK(texts.size() > 6);
  CHECK((in_buffer && packed && gradients && weights));
}

TEST_CASE("fuzz dropout: probabilities lie outside of 0 to 1 too, and seeds have high words") {
  FuzzCase c = dense_case();
  verify::Random random(1, "scalars");
  std::set<double> seeds, probabilities;
  bool has_nan = false;
  for (int i = 0; i < 200; ++i) {
    for (const char* const name : {"p", "seed"}) CHECK(choose_dropout_scalar(name, c, random));
    seeds.insert(c.scalars.at("seed"));
    const double p = c.scalars.at("p");
    has_nan = has_nan || std::isnan(p);
    if (!std::isnan(p)) probabilities.insert(p);
  }
  CHECK(has_nan);
  CHECK(*probabilities.begin() < 0);
  CHECK(*probabilities.rbegin() > 1);
  CHECK(*seeds.begin() == -0x1p53);
  CHECK(*seeds.rbegin() == 0x1p53);
  CHECK(seeds.size() > 100);
  CHECK_FALSE(choose_dropout_scalar("other", c, random));
}

TEST_CASE("fuzz dropout: a failure keeps what it needs of it") {
  const Outcome wrong{.failure = Failure::wrong_result, .message = "planted"};
  const auto fails_with = [&](auto is_needed) {
    return shrink(plain_case(), wrong,
                  [&, is_needed](const FuzzCase& c) { return is_needed(c) ? wrong : Outcome{}; })
        .smallest;
  };
  const FuzzCase any = fails_with([](const FuzzCase& c) { return c.spec.has_dropout(); });
  CHECK(any.spec.dropout == "0.5");
  CHECK_FALSE(any.spec.has_seed_buffer());
  CHECK(any.spec.buffers.empty());
  CHECK_NOTHROW(validate(any.spec));
  CHECK(fails_with([](const FuzzCase& c) {
          return c.spec.has_seed_buffer();
        }).spec.buffers.contains("seed"));
  const FuzzCase none = fails_with([](const FuzzCase&) { return true; });
  CHECK_FALSE(none.spec.has_dropout());
  CHECK(none.spec.buffers.empty());
}
