#include "fuzz/shrink.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fuzz/failure_groups.hpp"
#include "fuzz/simpler.hpp"
#include "generator/spec/spec_json.hpp"
#include "tests/support/catch.hpp"
#include "verify/random_inputs.hpp"
#include "verify/snippet_evaluator.hpp"
#include "verify/undefined_behaviour.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify::fuzz;

Expression index(const char* name) {
  return variable(name);
}

// q_idx >= kv_idx && (kv_idx < cut || table[kv_idx] == 3), through a local variable and a branch.
SnippetTree mask_tree() {
  Statement near{.kind = Statement::Kind::declare,
                 .name = "near",
                 .value = apply(Op::less, {index("kv_idx"), variable("cut")})};
  Statement inside{.kind = Statement::Kind::result, .value = variable("near", Type::truth)};
  Statement branch{
      .kind = Statement::Kind::branch,
      .value = apply(Op::equal, {read("table", Type::integer, {index("kv_idx")}), integer(3)}),
      .body = {inside}};
  Statement result{
      .kind = Statement::Kind::result,
      .value = apply(Op::logical_and, {apply(Op::greater_equal, {index("q_idx"), index("kv_idx")}),
                                       variable("near", Type::truth)})};
  return {SnippetKind::mask_mod, {near, branch, result}};
}

FuzzCase large_case() {
  FuzzCase fuzz_case;
  Spec& spec = fuzz_case.spec;
  spec.name = "large";
  spec.dtype = DType::bf16;
  spec.head_dim = 128;
  spec.v_head_dim = 64;
  spec.layout = Layout::bshd;
  spec.outputs.lse = true;
  spec.block = {64, 32};
  spec.scalars["cut"] = {.dtype = DType::i32, .default_value = 7};
  spec.buffers["table"] = {.dtype = DType::i32, .shape = {NamedDim::kv_len}, .range = {{0, 9}}};
  fuzz_case.mask_mod = mask_tree();
  fuzz_case.score_mod =
      SnippetTree{SnippetKind::score_mod,
                  {{.kind = Statement::Kind::result,
                    .value = apply(Op::tanh, {variable("score", Type::floating)})}}};
  print_snippets(fuzz_case);
  fuzz_case.shape = {.batch = 3,
                     .num_q_heads = 8,
                     .num_kv_heads = 2,
                     .q_len = 201,
                     .kv_len = 333,
                     .q_offset = -7,
                     .kv_offset = 12};
  fuzz_case.broadcast_buffers = true;
  fuzz_case.k = {.row_padding = 3, .offset = 1};
  fuzz_case.scale = 0.3;
  fuzz_case.scalars["cut"] = 21;
  fuzz_case.seed = 123456789;
  return fuzz_case;
}

bool holds(const Expression& expression, Op op) {
  return expression.op == op ||
         std::any_of(expression.operands.begin(), expression.operands.end(),
                     [&](const Expression& operand) { return holds(operand, op); });
}

bool holds(const std::vector<Statement>& statements, Op op) {
  return std::any_of(statements.begin(), statements.end(), [&](const Statement& statement) {
    return holds(statement.value, op) || holds(statement.body, op) ||
           holds(statement.otherwise, op);
  });
}

const Outcome kWrong{.failure = Failure::wrong_result, .message = "planted"};

// Fails for an odd q_len above 4 with two batches and a `less` in the mask.
Outcome planted(const FuzzCase& c) {
  if (!c.mask_mod || !holds(c.mask_mod->statements, Op::less)) return {};
  if (c.shape.q_len % 2 == 0 || c.shape.q_len <= 4 || c.shape.batch < 2) return {};
  return kWrong;
}

}  // namespace

TEST_CASE("shrinking: what a failure does not need goes, what it needs stays") {
  const Shrunk shrunk = shrink(large_case(), kWrong, planted);
  CHECK(shrunk.finished);
  CHECK(shrunk.outcome.failure == Failure::wrong_result);
  const FuzzCase& c = shrunk.smallest;
  CHECK(c.shape == Shape{.batch = 2, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 5, .kv_len = 1});
  CHECK(c.spec.dtype == DType::f32);
  CHECK(c.spec.head_dim == 16);
  CHECK(c.spec.score_mod.empty());
  CHECK(c.spec.buffers.empty());
  CHECK(c.spec.scalars.empty());
  CHECK(c.scalars.empty());
  CHECK(c.spec.mask_mod == "0 < 0");
  CHECK(c.k.row_padding == 0);
  CHECK(!c.scale);
  CHECK(c.seed == 1);
  CHECK(needed_features(c) == std::vector<std::string>{"batch", "mask_mod", "less"});
  CHECK(tokens(c) == 6);
}

TEST_CASE("shrinking: the same case gives the same result, and what it gives is replayed") {
  const Shrunk first = shrink(large_case(), kWrong, planted);
  const Shrunk second = shrink(large_case(), kWrong, planted);
  CHECK(to_json(first.smallest) == to_json(second.smallest));
  CHECK(first.runs == second.runs);
  CHECK(case_from_json(to_json(first.smallest)) == first.smallest);
}

TEST_CASE("shrinking: another failure is not taken for this one") {
  const auto run = [](const FuzzCase& c) {
    return c.shape.q_len < 100 ? Outcome{.failure = Failure::crash} : kWrong;
  };
  const Shrunk shrunk = shrink(large_case(), kWrong, run);
  CHECK(shrunk.outcome.failure == Failure::wrong_result);
  CHECK(shrunk.smallest.shape.q_len == 100);
  CHECK(shrunk.smallest.shape.kv_len == 1);
}

TEST_CASE("shrinking: what the library refuses for another reason is another failure") {
  const auto refused = [](const std::string& message) {
    return Outcome{.failure = Failure::error,
                   .error = Error::Details{.code = ErrorCode::spec, .message = message}};
  };
  const auto run = [&](const FuzzCase& c) {
    if (c.shape.q_len < 100) return refused("there is no such tactic");
    return refused(fmt::format("q_tile is 128, and q_len {}", c.shape.q_len));
  };
  const Shrunk shrunk = shrink(large_case(), run(large_case()), run);
  CHECK(shrunk.smallest.shape.q_len == 100);
  CHECK(shrunk.smallest.shape.kv_len == 1);
  CHECK(shrunk.outcome.error->message == "q_tile is 128, and q_len 100");
}

// A user's text, without trees.
FuzzCase user_case() {
  FuzzCase fuzz_case = large_case();
  fuzz_case.score_mod = fuzz_case.mask_mod = std::nullopt;
  fuzz_case.spec.score_mod = "score + table[kv_idx] / cut";
  return fuzz_case;
}

TEST_CASE("shrinking: of a user's text, undefined behaviour elsewhere is another failure") {
  const Outcome shift{.failure = Failure::undefined, .message = "a shift", .key = "score_mod:1:12"};
  const Outcome index{.failure = Failure::undefined, .message = "an index", .key = "score_mod:2"};
  // The index for an odd q_len, the shift for an odd kv_len or where both lengths are small.
  const auto run = [&](const FuzzCase& c) -> Outcome {
    Outcome outcome = c.shape.kv_len % 2 == 1 ? shift : index;
    if (c.shape.kv_len % 2 == 1 && c.shape.q_len % 2 == 1) {
      outcome.others.push_back({.message = index.message, .key = index.key});
    }
    return c.shape.kv_len % 2 == 0 && c.shape.q_len % 2 == 0 ? Outcome{} : outcome;
  };
  const Shrunk of_index = shrink(user_case(), index, run);
  CHECK(of_index.outcome.key == index.key);
  CHECK(of_index.outcome.message == index.message);
  CHECK(of_index.outcome.others.empty());
  CHECK(of_index.smallest.shape.q_len == 1);
  const Shrunk of_shift = shrink(user_case(), shift, run);
  CHECK(of_shift.outcome.key == shift.key);
  CHECK(of_shift.smallest.shape.kv_len == 1);
}

TEST_CASE("shrinking: what a user declares of buffers and scalars stays") {
  const FuzzCase from = user_case();
  for (const FuzzCase& candidate : simpler_features(from)) {
    for (const auto& [name, buffer] : candidate.spec.buffers) {
      CHECK(buffer == from.spec.buffers.at(name));
    }
    for (const auto& [name, value] : candidate.scalars) CHECK(value == from.scalars.at(name));
  }
}

TEST_CASE("shrinking: extents of null dimensions stay, and go with their buffer") {
  FuzzCase large = large_case();
  large.spec.buffers["table"].shape = {FreeDim{}};
  large.null_extents = {{"table", {500}}};
  large.free_dim = 90;
  const Shrunk shrunk = shrink(large, kWrong, planted);
  CHECK_FALSE(shrunk.smallest.spec.buffers.contains("table"));
  CHECK(shrunk.smallest.null_extents.empty());
  const Shrunk kept = shrink(large, kWrong, [](const FuzzCase& c) {
    return c.spec.buffers.contains("table") ? planted(c) : Outcome{};
  });
  CHECK(kept.smallest.null_extents == large.null_extents);
  large.score_mod = large.mask_mod = std::nullopt;  // a user's text
  const Shrunk of_user = shrink(large, kWrong, [](const FuzzCase& c) {
    return c.spec.mask_mod.empty() ? Outcome{} : kWrong;
  });
  CHECK(of_user.smallest.free_dim == 90);
}

TEST_CASE("shrinking: it ends where it is told to stop, with the smallest so far") {
  std::int64_t runs = 0;
  const auto run = [&](const FuzzCase& c) {
    ++runs;
    return planted(c);
  };
  const Shrunk shrunk = shrink(large_case(), kWrong, run, {.stop = [&] { return runs == 3; }});
  CHECK(!shrunk.finished);
  CHECK(runs == 3);
}

TEST_CASE("shrinking: it ends when its runs are used up, with the smallest so far") {
  std::int64_t runs = 0;
  const auto run = [&](const FuzzCase& c) {
    ++runs;
    return planted(c);
  };
  const Shrunk shrunk = shrink(large_case(), kWrong, run, {.max_runs = 10});
  CHECK(!shrunk.finished);
  CHECK(runs == 10);
  CHECK(shrunk.runs == 10);
  CHECK(planted(shrunk.smallest).failure == Failure::wrong_result);
}

TEST_CASE("shrinking: every simpler case is valid and says what its trees say") {
  const FuzzCase from = large_case();
  std::size_t trees = 0;
  for (const auto simpler : {simpler_shapes, simpler_features, simpler_snippets}) {
    for (const FuzzCase& candidate : simpler(from)) {
      CHECK(case_from_json(to_json(candidate)) == candidate);
      ++trees;
    }
  }
  CHECK(trees > 50);
  for (const SnippetTree& tree : simpler_trees(mask_tree())) {
    CHECK(size_of(tree) <= size_of(mask_tree()));
    // `near` is declared where it is named.
    const std::string text = to_text(tree);
    const std::size_t used = text.find("near");
    if (used != std::string::npos) CHECK(text.find("bool near") < used);
  }
}

TEST_CASE("groups: failures of one cause are one group, with its smallest case") {
  FailureGroups groups(FailureGroups::Of::minimal_cases);
  const Shrunk shrunk = shrink(large_case(), kWrong, planted);
  FuzzCase larger = shrunk.smallest;
  larger.shape.q_len = 7;
  CHECK(groups.add(larger, shrunk.outcome));
  CHECK(!groups.add(shrunk.smallest, shrunk.outcome, 3));
  Outcome other = shrunk.outcome;
  other.failure = Failure::red_zone;
  CHECK(groups.add(shrunk.smallest, other));
  FuzzCase another = shrunk.smallest;
  another.spec.dtype = DType::f16;
  CHECK(groups.add(another, shrunk.outcome));
  REQUIRE(groups.groups().size() == 3);
  CHECK(groups.groups()[0].count == 4);
  CHECK(groups.groups()[0].name == "wrong_result: batch, mask_mod, less");
  CHECK(groups.groups()[0].fuzz_case.shape.q_len == 5);
}

TEST_CASE("groups: of cases as they were found, calls of one spec are one group") {
  FailureGroups groups(FailureGroups::Of::found_cases);
  FuzzCase first = large_case();
  FuzzCase second = first;
  second.shape.batch += 1;
  CHECK(groups.add(first, kWrong));
  CHECK(!groups.add(second, kWrong));
  second.relation = "padding";
  CHECK(groups.add(second, kWrong));
}

TEST_CASE("groups: undefined behaviour is one group for each place in a snippet") {
  for (const auto of : {FailureGroups::Of::found_cases, FailureGroups::Of::minimal_cases}) {
    FailureGroups groups(of);
    const Outcome here{.failure = Failure::undefined, .message = "index 9", .key = "score_mod:1:9"};
    const Outcome there{
        .failure = Failure::undefined, .message = "index 9", .key = "score_mod:2:1"};
    FuzzCase other = large_case();
    other.spec.dtype = DType::f16;
    CHECK(groups.add(large_case(), here));
    CHECK(!groups.add(other, here));
    CHECK(groups.add(other, there));
  }
}

TEST_CASE("a planted read past a buffer's end is shrunk to few tokens and explained by its line") {
  // For an odd q_len the last row reads bias[q_len].
  FuzzCase planted_case;
  planted_case.spec = spec_from_json(R"({
    "name": "planted", "dtype": "bf16", "head_dim": 64, "mask_mod": "q_idx >= kv_idx",
    "score_mod": "const int odd = q_len % 2;\nconst int row = q_idx + odd;\nreturn score + bias[row];",
    "buffers": {"bias": {"dtype": "f32", "shape": ["q_len"]}}})",
                                     "planted");
  planted_case.shape = {
      .batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 77, .kv_len = 131};
  const auto run = [](const FuzzCase& c) {
    const verify::Inputs inputs = verify::random_inputs(c.spec, c.shape, c.seed);
    const verify::CheckedInterpretation interpretation(c.spec, Toolchain{});
    const verify::UndefinedOperations found =
        verify::find_undefined_operations(c.spec, inputs.problem(), interpretation, 1 << 16);
    for (const verify::UndefinedOperation& operation : found.operations) {
      if (!operation.kept) continue;
      return Outcome{.failure = Failure::undefined,
                     .message = fmt::format("{}:{}: {}", operation.place.file, operation.place.line,
                                            operation.message)};
    }
    return Outcome{};
  };
  const Outcome outcome = run(planted_case);
  REQUIRE(outcome.failure == Failure::undefined);
  const Shrunk shrunk = shrink(planted_case, outcome, run);
  CHECK(tokens(shrunk.smallest) < 8);
  CHECK(shrunk.smallest.shape.q_len % 2 == 1);
  CHECK(shrunk.smallest.spec.mask_mod.empty());
  CHECK(shrunk.smallest.spec.score_mod == planted_case.spec.score_mod);
  CHECK(shrunk.outcome.message.starts_with("score_mod:3: "));
  CHECK(shrunk.outcome.message.find("bias") != std::string::npos);
}
