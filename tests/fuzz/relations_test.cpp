#include "fuzz/relations.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "cache/store.hpp"
#include "fuzz/rewrite.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify;
using namespace tilewright::verify::fuzz;

Spec rich_spec(DType dtype) {
  Spec spec = spec_from_json(R"({
    "name": "rich", "dtype": "f32", "head_dim": 16, "block": [32, 32],
    "score_mod": "const float x = score + slopes[h] * (kv_idx - q_idx);\nif (kv_idx % 7 == 3) return 0.5 * x;\nreturn x + bias(b, kv_idx) - 0.001 * kv_len;  // a comment",
    "mask_mod": "q_idx + 20 >= kv_idx && kv_idx % 5 != h_kv",
    "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"], "range": [0.01, 0.1]},
                "bias": {"dtype": "f32", "shape": ["batch", "kv_len"]}}})",
                             "rich");
  spec.dtype = dtype;
  return spec;
}

Inputs rich_inputs(const Spec& spec) {
  const Shape shape{.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 37, .kv_len = 71};
  return random_inputs(spec, shape, 5);
}

// The library's kernels with a fault in one of the ways in which they are used.
class FaultyRunner : public KernelRelationRunner {
 public:
  FaultyRunner() : KernelRelationRunner(Device::cpu()) {}

  AttentionValues forward(const Spec& spec, const Problem& problem, Way way) override {
    Spec wrong_spec = spec;
    Problem wrong_problem = problem;
    if (before) before(wrong_spec, wrong_problem);
    AttentionValues values = KernelRelationRunner::forward(wrong_spec, wrong_problem, way);
    if (after) after(spec, problem, way, values);
    return values;
  }
  FromCache forward_from_cache(const Spec& spec, const Problem& problem) override {
    FromCache cached = KernelRelationRunner::forward_from_cache(spec, problem);
    if (caching) caching(cached);
    return cached;
  }
  BlockMask block_mask(const Spec& spec, const Problem& problem) override {
    Spec wrong = spec;
    if (mask) mask(wrong);
    return KernelRelationRunner::block_mask(wrong, problem);
  }
  Spec reread(const Spec& spec) override {
    Spec read = KernelRelationRunner::reread(spec);
    if (reading) reading(read);
    return read;
  }

  std::function<void(Spec&, Problem&)> before = {};
  std::function<void(const Spec&, const Problem&, Way, AttentionValues&)> after = {};
  std::function<void(FromCache&)> caching = {};
  std::function<void(Spec&)> mask = {};
  std::function<void(Spec&)> reading = {};
};

void expect_broken(Relation relation, FaultyRunner& runner) {
  const Spec spec = rich_spec(DType::f32);
  const RelationResult result = check_relation(relation, spec, rich_inputs(spec), runner);
  CAPTURE(to_string(relation));
  CHECK(result.applies);
  CHECK(!result.holds());
  CHECK(result.message.starts_with(to_string(relation)));
}

void spoil_row(AttentionValues& values, std::int64_t b, std::int64_t h) {
  for (std::int64_t row = 0; row < values.out.rows; ++row) values.out.at(b, h, row, 0) += 0.25;
}

void check_all_relations(const Spec& spec) {
  const Inputs inputs = rich_inputs(spec);
  KernelRelationRunner runner(Device::cpu());
  for (const Relation relation : all_relations()) {
    if (is_of_packed(relation) || is_of_gradients(relation) || is_of_dropout(relation)) continue;
    const RelationResult result = check_relation(relation, spec, inputs, runner);
    CAPTURE(to_string(relation), result.message);
    CHECK(result.applies);
    CHECK(result.holds());
    CHECK(result.share_of_bound <= 1);
  }
}

}  // namespace

TEST_CASE("relations: all of them hold for the library's kernels") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Spec spec = rich_spec(dtype);
    check_all_relations(spec);
  }
}

TEST_CASE("relations: those that say something of scales and sinks hold, and find faults") {
  Spec spec = rich_spec(DType::f32);
  spec.q_scale = "0.5f + 0.1f * h";
  spec.k_scale = "1 + 0.01f * kv_idx";
  spec.v_scale = "h_kv == 0 ? 0.5f : -2";
  spec.sink = "0.3f * h - 0.02f * q_idx";
  const Inputs inputs = rich_inputs(spec);
  KernelRelationRunner kernels(Device::cpu());
  int applied = 0;
  for (const Relation relation : all_relations()) {
    if (is_of_packed(relation) || is_of_gradients(relation) || is_of_dropout(relation)) continue;
    const RelationResult result = check_relation(relation, spec, inputs, kernels);
    CAPTURE(to_string(relation), result.message);
    CHECK(result.holds());
    applied += result.applies ? 1 : 0;
  }
  CHECK(applied == 12);
  FaultyRunner runner;
  runner.before = [](Spec& used, Problem&) {
    if (used.v_scale.find('[') != std::string::npos) used.v_scale = "1";
    if (!used.sink.empty()) used.sink = "1";
  };
  expect_broken(Relation::equal_scales, runner);
  expect_broken(Relation::no_sink, runner);
}

TEST_CASE("relations: v + w is rounded to the dtype of v, out of 2 v to that of out") {
  Spec spec = rich_spec(DType::f32);
  KernelRelationRunner runner(Device::cpu());
  for (const DType dtype : {DType::f16, DType::bf16}) {
    spec.kv_dtype = dtype;
    spec.out_dtype.reset();
    CHECK(check_relation(Relation::linear_in_v, spec, rich_inputs(spec), runner).message == "");
    spec.kv_dtype.reset();
    spec.out_dtype = dtype;
    CHECK(check_relation(Relation::linear_in_v, spec, rich_inputs(spec), runner).message == "");
  }
}

TEST_CASE("relations: one that says nothing of a spec does not apply") {
  Spec spec = rich_spec(DType::f32);
  spec.mask_mod.clear();
  const Inputs inputs = random_inputs(spec, {.q_len = 9, .kv_len = 12}, 1);
  KernelRelationRunner runner(Device::cpu());
  for (const Relation relation :
       {Relation::mask_as_score, Relation::proved_mask, Relation::one_head, Relation::one_batch}) {
    CHECK(!check_relation(relation, spec, inputs, runner).applies);
  }
  CHECK(check_relation(Relation::padding, spec, inputs, runner).holds());
}

TEST_CASE("relations: one that adds a mask takes no tactic that was forced without one") {
  Spec spec = rich_spec(DType::f32);
  spec.mask_mod.clear();
  spec.tactic = TacticSpec{.name = "cpu", .parameters = {{"q_tile", 32}}};
  FaultyRunner runner;
  int masked = 0, unmasked = 0;
  runner.before = [&](Spec& used, Problem&) {
    ++(used.mask_mod.empty() ? unmasked : masked);
    CHECK(used.tactic.has_value() == used.mask_mod.empty());
  };
  for (const Relation relation : {Relation::padding, Relation::split_keys}) {
    CHECK(check_relation(relation, spec, rich_inputs(spec), runner).holds());
  }
  CHECK(unmasked == 2);
  CHECK(masked == 3);
}

// Declarations of an index's name, and buffers that are called what rewriting would take.
TEST_CASE("relations: a snippet may use any name for its own") {
  Spec spec = rich_spec(DType::f32);
  spec.score_mod =
      "auto mix = [](float a, float b) { return 0.5f * (a + b); };\n"
      "float s = mix(score, old_key[h]) + original[h];\n"
      "for (int b = 0; b < 3; ++b) s += 0.01f * b;\n"
      "int h = kv_idx, kv_len = 3;\n"
      "return s + 0.001f * (h % kv_len);";
  spec.mask_mod =
      "auto near = [](int q_idx, int kv_idx) { return q_idx - kv_idx < 40; };\n"
      "return near(q_idx, kv_idx) && (q_idx >= kv_idx || kept[h] + undecided[h] > 0);";
  spec.buffers.clear();
  for (const char* name : {"original", "old_key", "kept", "undecided"}) {
    spec.buffers[name] = {f32, {NamedDim::num_q_heads}};
  }
  check_all_relations(spec);
}

TEST_CASE("relations: one whose form of the snippets does not compile does not apply") {
  class NoLambdas : public KernelRelationRunner {
   public:
    NoLambdas() : KernelRelationRunner(Device::cpu()) {}
    AttentionValues forward(const Spec& spec, const Problem& problem, Way way) override {
      if (spec.mask_mod.find("[&]") != std::string::npos) {
        throw Error(ErrorCode::snippet, "a lambda");
      }
      return KernelRelationRunner::forward(spec, problem, way);
    }
  } runner;
  const Spec spec = rich_spec(DType::f32);
  const Inputs inputs = rich_inputs(spec);
  CHECK_FALSE(check_relation(Relation::split_keys, spec, inputs, runner).applies);
  CHECK_FALSE(check_relation(Relation::offsets, spec, inputs, runner).applies);
  CHECK(check_relation(Relation::linear_in_v, spec, inputs, runner).applies);
}

TEST_CASE("relations: cached reads kernels from disk, whatever store is in use") {
  const Spec spec = rich_spec(DType::f32);
  Toolchain in_memory;
  in_memory.store = std::make_shared<cache::Store>(cache::Store::Options{});
  KernelRelationRunner runner(Device::cpu(), in_memory);
  const Inputs inputs = rich_inputs(spec);
  const auto cached = runner.forward_from_cache(spec, inputs.problem());
  CHECK(cached.sources == std::vector<std::string>{"disk", "disk"});
  CHECK(in_memory.store->stats().builds == 0);
}

TEST_CASE("relations: names are read back") {
  for (const Relation relation : all_relations()) {
    CHECK(relation_from_string(to_string(relation)) == relation);
  }
  CHECK(all_relations().size() == 29);
}

TEST_CASE("relations: each is broken by a fault that it is there for") {
  FaultyRunner runner;
  SECTION("the first key counts twice") {
    runner.after = [](const Spec&, const Problem& problem, auto, AttentionValues& values) {
      const double first = read_element(problem.v.data, problem.v.dtype, 0);
      values.out.at(0, 0, 36, 0) += 0.25 * first;
    };
    expect_broken(Relation::permuted_keys, runner);
  }
  SECTION("lse in units of log 2") {
    runner.after = [](const Spec&, const Problem&, auto, AttentionValues& values) {
      for (double& lse : values.lse.data) lse *= 1.4426950408889634;
    };
    expect_broken(Relation::split_keys, runner);
    expect_broken(Relation::added_constant, runner);
    expect_broken(Relation::duplicated_keys, runner);
  }
  SECTION("mask_mod is forgotten") {
    runner.before = [](Spec& spec, Problem&) {
      if (!spec.mask_mod.empty()) spec.mask_mod = "true";
    };
    expect_broken(Relation::mask_as_score, runner);
    expect_broken(Relation::padding, runner);
  }
  SECTION("a result depends on the tiles") {
    runner.after = [](const Spec& spec, const Problem&, auto, AttentionValues& values) {
      if (spec.block[1] == 48) spoil_row(values, 0, 0);
    };
    expect_broken(Relation::tactics, runner);
  }
  SECTION("a result depends on the tactic") {
    runner.after = [](const Spec& spec, const Problem&, auto, AttentionValues& values) {
      if (spec.tactic && !spec.tactic->parameters.empty()) spoil_row(values, 0, 0);
    };
    expect_broken(Relation::tactics, runner);
  }
  SECTION("a result depends on the threads") {
    runner.after = [](const Spec&, const Problem&, auto way, AttentionValues& values) {
      if (way == RelationRunner::Way::one_thread) spoil_row(values, 0, 0);
    };
    expect_broken(Relation::tactics, runner);
  }
  SECTION("a head is taken for another") {
    runner.after = [](const Spec&, const Problem& problem, auto, AttentionValues& values) {
      if (problem.shape.num_q_heads > 1) spoil_row(values, 0, problem.shape.num_q_heads - 1);
    };
    expect_broken(Relation::one_head, runner);
  }
  SECTION("a batch is taken for another") {
    runner.after = [](const Spec&, const Problem& problem, auto, AttentionValues& values) {
      if (problem.shape.batch > 1) spoil_row(values, problem.shape.batch - 1, 0);
    };
    expect_broken(Relation::one_batch, runner);
  }
  SECTION("something is added to out") {
    runner.after = [](const Spec&, const Problem&, auto, AttentionValues& values) {
      spoil_row(values, 1, 1);
    };
    expect_broken(Relation::linear_in_v, runner);
  }
  SECTION("offsets are forgotten") {
    runner.before = [](Spec&, Problem& problem) { problem.shape.q_offset = 0; };
    expect_broken(Relation::offsets, runner);
  }
  SECTION("a proof is wrong") {
    runner.mask = [](Spec& spec) {
      if (spec.mask_mod.find("undecided") == std::string::npos) spec.mask_mod = "q_idx >= kv_idx";
    };
    expect_broken(Relation::proved_mask, runner);
  }
  SECTION("the JSON loses the scale") {
    runner.reading = [](Spec& spec) { spec.scale = 0.5; };
    expect_broken(Relation::json_spec, runner);
  }
  SECTION("the cache gives another kernel") {
    runner.caching = [](RelationRunner::FromCache& cached) { spoil_row(cached.values, 0, 0); };
    expect_broken(Relation::cached, runner);
  }
  SECTION("the cache forgets a kernel") {
    runner.caching = [](RelationRunner::FromCache& cached) { cached.sources.back() = "built"; };
    expect_broken(Relation::cached, runner);
  }
}

TEST_CASE("rewriting: a snippet sees other arguments, and its text stays as it is") {
  const auto kind = SnippetKind::score_mod;
  CHECK(with_arguments(kind, "slopes[h] * x.b  // of h", {{"b", "1"}, {"h", "3"}}) ==
        "return [&](const int h) -> float {\n{\nreturn (\nslopes[h] * x.b  // of h\n);}\n}(3);");
  CHECK(with_arguments(SnippetKind::mask_mod, "int h = b; return h > 0;", {{"b", "q - 1"}}) ==
        "return [&](const int b) -> bool {\n{\nint h = b; return h > 0;\n}\n}(q - 1);");
  CHECK(with_arguments(kind, "score", {{"h", "3"}}) == "score");
  CHECK(around(kind, "score * 2", "original", "original() + 1.0") ==
        "const auto original = [&]() -> float {\nreturn (\nscore * 2\n);};\nreturn original() + "
        "1.0;");
  CHECK(around(SnippetKind::mask_mod, "", "kept", "kept()") ==
        "const auto kept = [&]() -> bool {\nreturn (\ntrue\n);};\nreturn kept();");
}

TEST_CASE("rewriting: names are taken that nobody uses") {
  Spec spec = {.score_mod = "const float kept = 1; return kept * score;",
               .mask_mod = "kept2[h] > 0"};
  spec.buffers["kept2"] = {f32, {FreeDim{}}};
  spec.scalars["kept3"] = {};
  CHECK(unused_name(spec, "kept") == "kept4");
  CHECK(unused_name(spec, "original") == "original");
}
