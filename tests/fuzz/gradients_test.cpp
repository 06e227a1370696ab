#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "fuzz/case.hpp"
#include "fuzz/case_gradients.hpp"
#include "fuzz/case_inputs.hpp"
#include "fuzz/failure_files.hpp"
#include "fuzz/failure_groups.hpp"
#include "fuzz/gradient_choice.hpp"
#include "fuzz/random_case.hpp"
#include "fuzz/relations.hpp"
#include "fuzz/run_case.hpp"
#include "fuzz/shrink.hpp"
#include "runtime/io/float16.hpp"
#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/fuzz/own_store.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify::fuzz;
using Catch::Matchers::ContainsSubstring;
using tilewright::test::with_own_store;
using Names = std::vector<std::string>;

FuzzCase dense_case() {
  FuzzCase c;
  c.spec = {.dtype = f32,
            .head_dim = 16,
            .score_mod = "score * gain + bias[h] * (kv_idx - q_idx)",
            .mask_mod = "q_idx >= kv_idx - 40",
            .buffers = {{"bias", {.dtype = f16, .shape = {NamedDim::num_q_heads}}}},
            .scalars = {{"gain", {.dtype = f32, .default_value = 0.75}}},
            .outputs = {.lse = true},
            .gradients = {"q", "k", "v", "bias", "gain"}};
  c.shape = {.batch = 2, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 33, .kv_len = 70};
  c.dlse = true;
  c.q = c.k = c.v = c.out = {.row_padding = 3, .offset = 1};
  c.seed = 5;
  return c;
}

FuzzCase packed_case() {
  FuzzCase c = dense_case();
  c.spec.layout = Layout::packed;
  c.shape.batch = 1;
  c.packing = {.sequences = {{.q_len = 20, .kv_len = 41}, {.q_len = 3, .kv_len = 9}},
               .q_rows_before = 2,
               .q_rows_after = 1,
               .kv_gap = 4};
  set_totals(c.shape, c.packing);
  return c;
}

TEST_CASE("fuzz gradients: of dense and packed calls they are right, and survive JSON") {
  CaseRunner runner(with_own_store());
  for (const FuzzCase& fuzz_case : {dense_case(), packed_case()}) {
    const Outcome outcome = runner.run(fuzz_case);
    CHECK(outcome.message.empty());
    CHECK(outcome.share_of_bound > 0);
    const FuzzCase again = case_from_json(to_json(fuzz_case));
    CHECK(again == fuzz_case);
    CHECK(again.spec.gradients == fuzz_case.spec.gradients);
    CHECK(again.dlse);
    CHECK_THAT(describe(fuzz_case), ContainsSubstring("gradients of q, k, v, bias, gain"));
  }
}

struct Planted {
  test::Fault fault;
  Failure failure;
  const char* message;
  const char* absent = "no such text";
};

std::vector<Planted> planted_faults() {
  return {
      {{"dq of another scale", "cpu/backward.hpp", "is_empty ? 0.0f : arguments.scale, is_empty",
        "is_empty ? 0.0f : arguments.scale * 1.001f, is_empty"},
       Failure::wrong_gradient,
       "dq: the greatest error",
       "dk: "},
      {{"sums of half of dY", "cpu/backward.hpp", "if (kHasSums) scratch.dy[i] = dy;",
        "if (kHasSums) scratch.dy[i] = dy * 0.5f;"},
       Failure::wrong_gradient,
       "d_bias: the greatest error",
       "dq: "},
      {{"columns see no slope", "cpu/backward.hpp",
        "s[i] * (product - scratch.facts[i].delta) * scratch.slope[i];",
        "s[i] * (product - scratch.facts[i].delta);"},
       Failure::wrong_gradient,
       "dk: the greatest error",
       "dv: "},
      {{"dv of twice P", "cpu/backward.hpp",
        "value_tile<kValueDim>(scratch.value_rows, kValueDim, count, chunks, scratch.s,",
        "for (int i = 0; i < count; ++i) scratch.s[i] = scratch.s[i] * 2.0f;\n"
        "    value_tile<kValueDim>(scratch.value_rows, kValueDim, count, chunks, scratch.s,"},
       Failure::wrong_gradient,
       "dv: the greatest error",
       "dk: "},
      {{"dlse is not read", "cpu/backward.hpp", "delta - arguments.dlse[first_lse + row]", "delta"},
       Failure::wrong_gradient,
       "dq: "},
      {{"dq's row begins too early", "cpu/backward.hpp",
        "row_of<QElement>(arguments.dq, b, h, first_row + row)",
        "row_of<QElement>(arguments.dq, b, h, first_row + row) - 1"},
       Failure::red_zone,
       "dq was written to"},
      {{"delta depends on how often it was computed", "cpu/backward.hpp", "float delta = 0.0f;",
        "static int calls = 0;\n    float delta = 1e-9f * static_cast<float>(++calls);"},
       Failure::not_repeatable,
       "gave other bits of d"},
  };
}

TEST_CASE("fuzz gradients: each planted fault of a backward kernel is found, by its gradient") {
  for (const Planted& planted : planted_faults()) {
    CAPTURE(planted.fault.what);
    RunOptions options = with_own_store();
    options.kernels.templates = std::make_shared<test::FaultyTemplates>(planted.fault);
    CaseRunner runner(options);
    const Outcome outcome = runner.run(dense_case());
    INFO(outcome.message);
    CHECK(outcome.failure == planted.failure);
    CHECK_THAT(outcome.message, ContainsSubstring(planted.message));
    CHECK_THAT(outcome.message, !ContainsSubstring(planted.absent));
  }
}

TEST_CASE("fuzz gradients: a row of dq that belongs to no sequence stays as it was") {
  RunOptions options = with_own_store();
  options.kernels.templates = std::make_shared<test::FaultyTemplates>(
      test::Fault{"dq's rows begin a row too early", "cpu/backward.hpp",
                  "row_of<QElement>(arguments.dq, b, h, first_row + row)",
                  "row_of<QElement>(arguments.dq, b, h, first_row + row - 1)"});
  const Outcome outcome = CaseRunner(options).run(packed_case());
  CHECK(outcome.failure == Failure::red_zone);
  CHECK_THAT(outcome.message, ContainsSubstring("row 1 of dq belongs to no sequence"));
}

TEST_CASE("fuzz gradients: a failure keeps those that it needs, and its files have the kernel") {
  const Outcome wrong{.failure = Failure::wrong_gradient, .message = "planted"};
  const auto run = [&](const FuzzCase& c) {
    const Names& names = c.spec.gradients;
    return std::find(names.begin(), names.end(), "bias") == names.end() ? Outcome{} : wrong;
  };
  const FuzzCase smallest = shrink(dense_case(), wrong, run).smallest;
  CHECK(smallest.spec.gradients == Names{"bias"});
  CHECK_FALSE(smallest.dlse);
  CHECK_NOTHROW(validate(smallest.spec));
  const auto always = [&](const FuzzCase&) { return wrong; };
  CHECK(shrink(dense_case(), wrong, always).smallest.spec.gradients.empty());
  const std::vector<std::string> needed = needed_features(smallest);
  CHECK(std::find(needed.begin(), needed.end(), "gradients of buffers") != needed.end());
  CHECK(kernels_of_call(dense_case().spec).back().name() == "backward_masked");
}

TEST_CASE("fuzz gradients: what a spec may name is what the library's checks allow") {
  Spec spec = dense_case().spec;
  spec.gradients.clear();
  spec.outputs.lse = false;
  CHECK(possible_gradients(spec) == Names{"q", "k", "v", "bias", "gain"});
  spec.mask_mod = "kv_idx < limit && unread[h] > 0";
  spec.scalars["limit"] = {.dtype = i32};
  spec.buffers["unread"] = {.dtype = f32, .shape = {NamedDim::num_q_heads}};
  CHECK(possible_gradients(spec) == Names{"q", "k", "v", "bias", "gain"});
  spec.score_mod = "auto f = [=](float x) { return x * gain; }; return f(score);";
  CHECK(possible_gradients(spec).empty());
  spec.score_mod.clear();
  spec.kv_dtype = DType::f8e4m3;
  spec.k_scale = spec.v_scale = "0.5f";
  CHECK(possible_gradients(spec).empty());
}

TEST_CASE("fuzz gradients: some random cases ask for them, and all where they are to") {
  int with = 0, named = 0, cases = 0;
  CaseMaker maker({}, 21);
  std::set<std::string> shown;
  for (int group = 0; group < 200; ++group) {
    for (const FuzzCase& c : maker.next_group(1)) {
      ++cases;
      if (c.spec.gradients.empty()) continue;
      ++with;
      CHECK_NOTHROW(validate(c.spec));
      CHECK_FALSE(c.nan_in_dropped);
      for (const std::string& name : c.spec.gradients) shown.insert(name.substr(0, 1));
      named += c.spec.buffers.contains(c.spec.gradients.back()) ||
                       c.spec.scalars.contains(c.spec.gradients.back())
                   ? 1
                   : 0;
    }
  }
  CAPTURE(with, named, cases);
  CHECK(with > cases / 8);
  CHECK(with < cases / 2);
  CHECK(named > with / 5);
  CHECK(shown.contains("q"));
  CaseMaker all({.gradients = true}, 22);
  for (int group = 0; group < 60; ++group) {
    const FuzzCase c = all.next_group(1).front();
    CHECK((!c.spec.gradients.empty() || possible_gradients(c.spec).empty()));
  }
}

TEST_CASE("fuzz gradients: relations hold, of dense and packed calls, with shared k and v too") {
  KernelRelationRunner runner(Device::cpu());
  for (const DType dtype : {f32, f16, bf16}) {
    for (FuzzCase c : {dense_case(), packed_case()}) {
      c.spec.dtype = dtype;
      c.broadcast_kv = dtype == f16 && !c.spec.is_packed();
      for (const Relation relation : {Relation::doubled_dout, Relation::reversed_batches}) {
        CAPTURE(to_string(relation), to_string(dtype), c.spec.is_packed());
        const bool is_suited = relation == Relation::doubled_dout || !c.spec.is_packed();
        CHECK(applies(relation, c.spec, c.shape) == is_suited);
        const RelationResult result =
            check_relation(relation, c.spec, dense_inputs(c), runner, c.packing);
        CHECK(result.applies == is_suited);
        CHECK(result.message.empty());
      }
    }
  }
  Spec spec = dense_case().spec;
  spec.score_mod += " + b";
  CHECK_FALSE(applies(Relation::reversed_batches, spec, dense_case().shape));
  spec.gradients.clear();
  CHECK_FALSE(applies(Relation::doubled_dout, spec, dense_case().shape));
}

// Adds to the first element of a gradient.
class AddingRunner : public KernelRelationRunner {
 public:
  AddingRunner() : KernelRelationRunner(Device::cpu()) {}
  void backward(const FuzzCase& fuzz_case, const verify::Problem& problem,
                CaseGradients& gradients) override {
    KernelRelationRunner::backward(fuzz_case, problem, gradients);
    const TensorView& view = gradients.written().at(name).view();
    write_element(view.data, view.dtype, 0, read_element(view.data, view.dtype, 0) + 0.25);
  }
  std::string name = "dq";
};

TEST_CASE("fuzz gradients: relations are broken by faults that they are there for") {
  const FuzzCase c = dense_case();
  AddingRunner runner;
  for (const char* const name : {"dq", "dk", "dv", "d_bias", "d_gain"}) {
    CAPTURE(name);
    runner.name = name;
    const RelationResult doubled =
        check_relation(Relation::doubled_dout, c.spec, dense_inputs(c), runner);
    CHECK_THAT(doubled.message, ContainsSubstring("doubled_dout does not hold: twice dout") &&
                                    ContainsSubstring(std::string("element 0 of ") + name));
    if (std::string(name).starts_with("d_")) continue;
    const RelationResult reversed =
        check_relation(Relation::reversed_batches, c.spec, dense_inputs(c), runner);
    CHECK_THAT(reversed.message, ContainsSubstring(std::string("other bits of ") + name));
  }
}

TEST_CASE("fuzz gradients: a case's relation of gradients is checked, and finds a planted fault") {
  FuzzCase c = dense_case();
  c.relation = "doubled_dout";
  CHECK(CaseRunner(with_own_store()).run(c).relation_ran);
  RunOptions options = with_own_store();
  options.relations = [](const Device&, const Toolchain&) {
    return std::make_unique<AddingRunner>();
  };
  CHECK(CaseRunner(options).run(c).failure == Failure::relation_broken);
  c.spec.gradients.clear();
  c.dlse = false;
  CHECK_FALSE(CaseRunner(with_own_store()).run(c).relation_ran);
}

TEST_CASE("fuzz gradients: a user's are kept, in legal specs alone, and what goes is named") {
  Spec user = dense_case().spec;
  user.gradients = {"gain", "k"};
  const CaseSource source{.user_spec = user};
  CaseMaker maker(source, 23);
  std::set<DType> dtypes;
  std::set<Layout> layouts;
  for (int group = 0; group < 60; ++group) {
    for (const FuzzCase& c : maker.next_group(2)) {
      CHECK(c.spec.gradients == user.gradients);
      CHECK_NOTHROW(validate(c.spec));
      CHECK_FALSE(c.nan_in_dropped);
      dtypes.insert(c.spec.dtype);
      layouts.insert(c.spec.layout);
    }
  }
  CHECK(dtypes == std::set<DType>{f32, f16, bf16});
  CHECK(layouts == std::set<Layout>{Layout::bhsd, Layout::bshd});
  for (const FeaturePair& pair : maker.coverage().all_missing()) {
    CHECK_THAT(pair.describe(), !ContainsSubstring("f8e4m3") && !ContainsSubstring("tf32"));
  }
  CHECK(dropped_for_gradients(source) ==
        Names{"dtype=f8e4m3", "mixed=one_byte", "outputs=out", "products=tf32", "contents=nan"});
  user.gradients.clear();
  user.outputs = {};
  CHECK(dropped_for_gradients({.user_spec = user}).empty());
  CaseMaker without({.user_spec = user}, 24);
  CaseMaker with({.user_spec = user, .gradients = true}, 24);
  for (int group = 0; group < 20; ++group) {
    CHECK(without.next_group(1).front().spec.gradients.empty());
    CHECK_FALSE(with.next_group(1).front().spec.gradients.empty());
  }
  user.score_mod = "auto f = [=](float x) { return x * gain; }; return f(score);";
  CHECK_THROWS_AS(require_possible_gradients(user), Error);
}

}  // namespace
