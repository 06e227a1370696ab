#include "fuzz/run_case.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "cache/store.hpp"
#include "fuzz/case.hpp"
#include "fuzz/outcome.hpp"
#include "fuzz/relations.hpp"
#include "generator/render/engine/engine.hpp"
#include "generator/render/templates.hpp"
#include "generator/spec/spec.hpp"
#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify::fuzz;
using Catch::Matchers::ContainsSubstring;

FuzzCase user_case(Spec spec) {
  FuzzCase fuzz_case;
  fuzz_case.spec = std::move(spec);
  fuzz_case.spec.dtype = f32;
  fuzz_case.spec.head_dim = 16;
  fuzz_case.shape = {.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 33, .kv_len = 70};
  return fuzz_case;
}

RunOptions with_own_store() {
  RunOptions options;
  options.kernels.store = std::make_shared<cache::Store>(cache::Store::Options{});
  return options;
}

// mask_mod as a tree: q_idx >= kv_idx, or with the comparison turned round.
SnippetTree mask_tree(Op comparison) {
  Statement result;
  result.value = apply(comparison, {variable("q_idx"), variable("kv_idx")});
  return {.kind = SnippetKind::mask_mod, .statements = {result}};
}

TEST_CASE("fuzz: an honest case is right, with a tree and without one") {
  CaseRunner runner(with_own_store());
  FuzzCase fuzz_case = user_case({.mask_mod = "q_idx >= kv_idx", .outputs = {.lse = true}});
  fuzz_case.nan_in_dropped = true;
  const Outcome without = runner.run(fuzz_case);
  CHECK(without.message.empty());
  CHECK(without.kernels_compiled == 2);
  CHECK(without.share_of_bound > 0);
  fuzz_case.mask_mod = mask_tree(Op::greater_equal);
  print_snippets(fuzz_case);
  CHECK(runner.run(fuzz_case).ok());
  CHECK(runner.run(fuzz_case).kernels_compiled == 0);
}

// Adds to every result, so out of 2 v is not twice out of v.
class AddingRunner : public KernelRelationRunner {
 public:
  using KernelRelationRunner::KernelRelationRunner;
  verify::AttentionValues forward(const Spec& spec, const verify::Problem& problem,
                                  Way way) override {
    verify::AttentionValues values = KernelRelationRunner::forward(spec, problem, way);
    values.out.data[0] += 0.25;
    return values;
  }
};

TEST_CASE("fuzz: a case's relation is checked where it applies, and one that breaks is found") {
  FuzzCase fuzz_case = user_case({.score_mod = "score * 0.5"});
  fuzz_case.relation = "one_batch";
  CaseRunner honest(with_own_store());
  CHECK(honest.run(fuzz_case).ok());
  CHECK_FALSE(honest.run(fuzz_case).relation_ran);
  fuzz_case.relation = "linear_in_v";
  CHECK(case_from_json(to_json(fuzz_case)) == fuzz_case);
  const Outcome held = honest.run(fuzz_case);
  CHECK(held.ok());
  CHECK(held.relation_ran);

  RunOptions options = with_own_store();
  options.relations = [](const Device& device, const Toolchain& kernels) {
    return std::make_unique<AddingRunner>(device, kernels);
  };
  CaseRunner faulty(options);
  const Outcome broken = faulty.run(fuzz_case);
  CHECK(broken.failure == Failure::relation_broken);
  CHECK_THAT(broken.message, ContainsSubstring("linear_in_v does not hold: twice v"));

  std::string text = to_json(fuzz_case);
  text.replace(text.find("linear_in_v"), 11, "linear_in_w");
  CHECK_THROWS_AS(case_from_json(text), Error);
}

TEST_CASE("fuzz: max_scores and weights are judged") {
  struct Planted {
    Outputs outputs;
    test::Fault fault;
    const char* found;
  };
  for (const Planted& planted : {Planted{{.max_scores = true},
                                         {"max_scores of another row", "cpu/forward.hpp",
                                          "state.max[row % kLanes]);", "state.max[0]);"},
                                         "max_scores is off by"},
                                 Planted{{.lse = true, .weights = true},
                                         {"weights of the first chunk's lse", "cpu/weights.hpp",
                                          "scratch.lse + chunk * kLanes", "scratch.lse"},
                                         "weights are off by"}}) {
    CAPTURE(planted.fault.what);
    const FuzzCase fuzz_case =
        user_case({.mask_mod = "q_idx >= kv_idx", .outputs = planted.outputs});
    CaseRunner honest(with_own_store());
    CHECK(honest.run(fuzz_case).message.empty());
    RunOptions options = with_own_store();
    options.kernels.templates = std::make_shared<test::FaultyTemplates>(planted.fault);
    const Outcome outcome = CaseRunner(options).run(fuzz_case);
    CHECK(outcome.failure == Failure::wrong_result);
    CHECK_THAT(outcome.message, ContainsSubstring(planted.found));
  }
}

TEST_CASE("fuzz: kernels that trap undefined behaviour are kernels of their own") {
  CaseRunner runner(with_own_store());
  FuzzCase fuzz_case = user_case({.score_mod = "score * 0.25"});
  CHECK(runner.run(fuzz_case).kernels_compiled == 1);
  fuzz_case.sanitized = true;
  const Outcome outcome = runner.run(fuzz_case);
  CHECK(outcome.message.empty());
  CHECK(outcome.kernels_compiled == 1);
}

// The interpreter reads the tree, the kernels the text: where they differ, both oracles must see
// it.
TEST_CASE("fuzz: kernels that compute something else are found") {
  CaseRunner runner(with_own_store());
  FuzzCase mask = user_case({.mask_mod = "q_idx >= kv_idx", .block = {16, 16}});
  mask.mask_mod = mask_tree(Op::greater);
  CHECK(runner.run(mask).failure == Failure::mask_differs);

  FuzzCase score = user_case({.score_mod = "score + 0.01 * h"});
  Statement result;
  result.value = apply(Op::add, {variable("score", Type::floating),
                                 apply(Op::multiply, {floating(0.01), variable("kv_idx")})});
  score.score_mod = SnippetTree{.kind = SnippetKind::score_mod, .statements = {result}};
  const Outcome outcome = runner.run(score);
  CHECK(outcome.failure == Failure::wrong_result);
  CHECK_THAT(outcome.message, ContainsSubstring("above its bound"));
}

TEST_CASE(
    "fuzz: what a snippet must not do, and what does not compile, have classes of their own") {
  CaseRunner runner(with_own_store());
  const Outcome zero = runner.run(user_case({.mask_mod = "kv_idx / (q_idx - 3) >= 0"}));
  CHECK(zero.failure == Failure::undefined);
  CHECK_THAT(zero.message, ContainsSubstring("divided by zero"));
  const Outcome unknown = runner.run(user_case({.score_mod = "score + slope"}));
  CHECK(unknown.failure == Failure::compile_error);
  REQUIRE(unknown.error);
  CHECK(unknown.error->code == ErrorCode::snippet);
}

TEST_CASE("fuzz: undefined behaviour at one place does not hide that at another") {
  CaseRunner runner(with_own_store());
  const Outcome both = runner.run(
      user_case({.score_mod = "int wide = 7 << (kv_idx + 40);\nreturn score + wide / (h - h);"}));
  CHECK(both.failure == Failure::undefined);
  CHECK_THAT(both.key, ContainsSubstring("score_mod:1"));
  CHECK_THAT(both.message, ContainsSubstring("shifted") && ContainsSubstring(both.key));
  REQUIRE(both.others.size() == 1);
  CHECK_THAT(both.others[0].key, ContainsSubstring("score_mod:2"));
  CHECK_THAT(both.others[0].message, ContainsSubstring("divided by zero"));
  const std::vector<Outcome> parts = taken_apart(both);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].others.empty());
  CHECK(parts[1].failure == Failure::undefined);
  CHECK(parts[1].key == both.others[0].key);
}

TEST_CASE("fuzz: undefined behaviour of a spec without score_mod and mask_mod is found") {
  CaseRunner runner(with_own_store());
  FuzzCase fuzz_case = user_case({.k_scale = "1.0f / (1 + 0 / (kv_idx - 3))"});
  const Outcome outcome = runner.run(fuzz_case);
  CHECK(outcome.failure == Failure::undefined);
  CHECK_THAT(outcome.message, ContainsSubstring("divided by zero (at b 0, h_kv 0, kv_idx 3)") &&
                                  ContainsSubstring("k_scale:1"));
}

// Templates whose forward does something else too, each time but the first.
std::shared_ptr<const jinja::Loader> later_also(const std::string& statement) {
  const auto templates = default_template_loader();
  std::map<std::string, std::string> files;
  for (const std::string& name : templates->names()) files[name] = *templates->load(name);
  std::string& text = files.at("cpu/kernels/forward.cpp.jinja");
  const std::string call = "  tw_kernel::forward(*arguments";
  REQUIRE(text.find(call) != std::string::npos);
  text.insert(text.find('}', text.find(call)),
              "  static int calls = 0;\n  if (calls++ > 0) " + statement + "\n");
  return std::make_shared<jinja::MapLoader>(std::move(files));
}

TEST_CASE("fuzz: the second run's red zones and signs of zeros are looked at too") {
  FuzzCase fuzz_case = user_case({.score_mod = "score", .mask_mod = "q_idx < 0"});
  fuzz_case.shape = {.q_len = 1, .kv_len = 1};
  RunOptions options = with_own_store();
  options.kernels.templates = later_also("static_cast<float*>(arguments->out.data)[-1] = 0;");
  const Outcome outside = CaseRunner(options).run(fuzz_case);
  INFO(outside.message);
  CHECK(outside.failure == Failure::red_zone);

  options.kernels.templates = later_also("static_cast<float*>(arguments->out.data)[0] = -0.0f;");
  const Outcome sign = CaseRunner(options).run(fuzz_case);
  INFO(sign.message);
  CHECK(sign.failure == Failure::not_repeatable);
}

}  // namespace
