// Packed cases: what they hold, what they find, and how they shrink.
#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "cache/store.hpp"
#include "fuzz/case.hpp"
#include "fuzz/case_inputs.hpp"
#include "fuzz/clamped_lengths.hpp"
#include "fuzz/random_case.hpp"
#include "fuzz/relation_choice.hpp"
#include "fuzz/run_case.hpp"
#include "fuzz/shrink.hpp"
#include "generator/spec/validate.hpp"
#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/support/catch.hpp"
#include "verify/sequences.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify;
using namespace tilewright::verify::fuzz;
using Catch::Matchers::ContainsSubstring;

SnippetTree tree(SnippetKind kind, Expression value) {
  Statement result;
  result.value = std::move(value);
  return {.kind = kind, .statements = {result}};
}

SnippetTree causal() {
  return tree(SnippetKind::mask_mod,
              apply(Op::greater_equal, {variable("q_idx"), variable("kv_idx")}));
}

FuzzCase packed_case(KvRows kv_rows = KvRows::gaps) {
  FuzzCase c;
  c.spec = {.dtype = f32, .head_dim = 16, .layout = Layout::packed, .outputs = {.lse = true}};
  c.spec.block = {16, 32};
  c.mask_mod = causal();
  print_snippets(c);
  c.shape = {.num_q_heads = 2, .num_kv_heads = 1};
  c.packing = {.sequences = {{33, 70}, {0, 9}, {12, 0}, {40, 17}, {1, 66}, {0, 0}},
               .q_rows_before = 3,
               .q_rows_after = 2,
               .kv_gap = 4,
               .kv_rows = kv_rows,
               .is_bounded = true};
  set_totals(c.shape, c.packing);
  return c;
}

RunOptions with_own_store() {
  RunOptions options;
  options.kernels.store = std::make_shared<cache::Store>(cache::Store::Options{});
  return options;
}

Outcome with_fault(const FuzzCase& c, test::Fault fault) {
  RunOptions options = with_own_store();
  options.kernels.templates = std::make_shared<test::FaultyTemplates>(std::move(fault));
  return CaseRunner(options).run(c);
}

std::vector<Relation> packed_relations() {
  std::vector<Relation> relations;
  for (const Relation relation : all_relations()) {
    if (is_of_packed(relation)) relations.push_back(relation);
  }
  return relations;
}

RelationResult check_packed(Relation relation, const FuzzCase& c, RelationRunner& runner) {
  return check_relation(relation, c.spec, dense_inputs(c), runner, c.packing);
}

}  // namespace

TEST_CASE("fuzz packed: a case is the same after a round trip through JSON") {
  FuzzCase c = packed_case(KvRows::backward);
  c.packing.has_q_offset = c.packing.has_kv_offset = true;
  c.packing.sequences[0].q_offset = -7;
  c.packing.sequences[3].kv_offset = 12;
  const FuzzCase again = case_from_json(to_json(c));
  CHECK(again == c);
  CHECK(again.packing == c.packing);
  CHECK(again.shape == c.shape);
  CHECK(c.shape.q_len == 3 + 33 + 12 + 40 + 1 + 2);
}

TEST_CASE("fuzz packed: what is no packing is refused") {
  const std::string good = to_json(packed_case());
  const auto message_of = [&](const std::string& from, const std::string& to) -> std::string {
    std::string text = good;
    const std::size_t place = text.find(from);
    REQUIRE(place != std::string::npos);
    try {
      case_from_json(text.replace(place, from.size(), to));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(message_of("\"q_rows_before\": 3", "\"q_rows_before\": 5") == "accepted");
  CHECK_THAT(message_of("\"q_rows_before\": 3", "\"q_rows_before\": -3"),
             ContainsSubstring("negative number of rows"));
  CHECK_THAT(message_of("\"gaps\"", "\"holes\""), ContainsSubstring("kv_rows is \"holes\""));
  CHECK_THAT(message_of("\"kv_gap\"", "\"kv_gab\""), ContainsSubstring("kv_gab"));
  CHECK_THAT(message_of("\"packing\"", "\"packings\""),
             ContainsSubstring("packing must say the sequences"));
  CHECK_THAT(message_of("\"layout\": \"packed\"", "\"layout\": \"bshd\""),
             ContainsSubstring("packing is for packed specs"));
}

TEST_CASE("fuzz packed: sequences lie as the packing says, and other rows are NaN") {
  for (const KvRows kv_rows : {KvRows::together, KvRows::gaps, KvRows::backward, KvRows::shared}) {
    CAPTURE(to_string(kv_rows));
    const FuzzCase c = packed_case(kv_rows);
    const CaseInputs inputs(c);
    const Problem& problem = inputs.problem();
    const std::vector<SequenceRows> rows = read_sequences(problem);
    CHECK(problem.sequences->kv_len.has_value() == (kv_rows != KvRows::together));
    std::set<std::int64_t> used;
    for (std::size_t b = 0; b < rows.size(); ++b) {
      CHECK(rows[b].q_len == c.packing.sequences[b].q_len);
      CHECK(rows[b].kv_len == c.packing.sequences[b].kv_len);
      for (std::int64_t i = 0; i < rows[b].kv_len; ++i) used.insert(rows[b].kv_begin + i);
    }
    const bool shares = kv_rows == KvRows::shared;
    CHECK(used.size() == (shares ? 70u : 70u + 9 + 17 + 66));
    for (std::int64_t row = 0; row < c.shape.kv_len; ++row) {
      const float first = static_cast<const float*>(problem.k.data)[row * problem.k.strides[0]];
      CHECK((first == first) == used.contains(row));
    }
  }
}

TEST_CASE("fuzz packed: an honest case is right, with trees and with a user's text") {
  CaseRunner runner(with_own_store());
  FuzzCase c = packed_case();
  c.nan_in_dropped = true;
  c.score_mod = tree(
      SnippetKind::score_mod,
      apply(Op::add,
            {variable("score", Type::floating),
             apply(Op::multiply, {floating(0.01), apply(Op::subtract, {variable("q_token"),
                                                                       variable("kv_token")})})}));
  print_snippets(c);
  const Outcome outcome = runner.run(c);
  CHECK(outcome.message == "");
  CHECK(outcome.share_of_bound > 0);
  c.mask_mod.reset();
  c.score_mod.reset();
  CaseRunner reads_text(with_own_store());
  CHECK(reads_text.run(c).message == "");
  c.packing.has_q_offset = true;
  c.packing.sequences[0].q_offset = 5;
  CHECK(reads_text.run(c).message == "");
}

TEST_CASE("fuzz packed: kernels that are wrong are found") {
  const FuzzCase c = packed_case();
  const Outcome lost = with_fault(c, {.what = "the last column is lost",
                                      .file = "cpu/forward.hpp",
                                      .text = "item.kv_len = snippet.kv_len;",
                                      .replacement = "item.kv_len = snippet.kv_len - 1;"});
  CHECK(lost.failure == Failure::wrong_result);
  const Outcome row =
      with_fault(c, {.what = "a row too many is written",
                     .file = "cpu/forward.hpp",
                     .text = "for (int row = 0; row < item.rows; ++row) {",
                     .replacement = "for (int row = 0; row <= item.rows; ++row) {"});
  CHECK(row.failure != Failure::none);
  const Outcome tiles = with_fault(c, {.what = "partial tiles are full",
                                       .file = "cpu/mask/rows.hpp",
                                       .text = ": evaluate(range));",
                                       .replacement = ": tilewright::abi::kTileFull);"});
  CHECK(tiles.failure == Failure::mask_differs);
  CHECK_THAT(tiles.message, ContainsSubstring("the plan is wrong"));
}

TEST_CASE("fuzz packed: a token that the text reads otherwise is found") {
  FuzzCase c = packed_case();
  c.spec.score_mod = "score + 0.01 * q_token";
  c.score_mod = tree(SnippetKind::score_mod,
                     apply(Op::add, {variable("score", Type::floating),
                                     apply(Op::multiply, {floating(0.01), variable("kv_token")})}));
  CHECK(CaseRunner(with_own_store()).run(c).failure == Failure::wrong_result);
}

TEST_CASE("fuzz packed: relations hold for the library's kernels") {
  KernelRelationRunner runner(Device::cpu());
  for (const KvRows kv_rows : {KvRows::together, KvRows::gaps, KvRows::backward, KvRows::shared}) {
    FuzzCase c = packed_case(kv_rows);
    for (const char* const mask :
         {"", "q_idx >= kv_idx", "(q_token + kv_token) % 5 != 1 && kv_idx != b"}) {
      c.spec.mask_mod = mask;
      for (const Relation relation : packed_relations()) {
        const RelationResult result = check_packed(relation, c, runner);
        CAPTURE(to_string(kv_rows), mask, to_string(relation), result.message);
        // Lists over positions stand for a mask that tells no sequences apart, and rows in pages
        // have other tokens.
        const bool names_tokens = std::string_view(mask).find("kv_token") != std::string_view::npos;
        const bool suits = relation == Relation::positions
                               ? std::string_view(mask) == "q_idx >= kv_idx"
                               : !(relation == Relation::new_rows && names_tokens);
        CHECK(result.applies == suits);
        CHECK(applies(relation, c) == suits);
        CHECK(result.holds());
      }
    }
  }
}

TEST_CASE("fuzz packed: a row with a negative position has the lse of its sink") {
  KernelRelationRunner runner(Device::cpu());
  FuzzCase c = packed_case();
  c.spec.mask_mod = "q_idx >= kv_idx";
  c.spec.sink = "0.5 + h";
  c.packing.sequences = {{70, 33}, {4, 9}};
  c.packing.has_q_offset = c.packing.has_kv_offset = false;
  set_totals(c.shape, c.packing);
  const RelationResult result = check_packed(Relation::positions, c, runner);
  CAPTURE(result.message);
  CHECK(result.applies);
  CHECK(result.holds());
}

namespace {

// The library's kernels, with a fault that packed relations must see.
class FaultyRunner : public KernelRelationRunner {
 public:
  FaultyRunner() : KernelRelationRunner(Device::cpu()) {}
  AttentionValues forward(const Spec& spec, const Problem& problem, Way way) override {
    AttentionValues values = KernelRelationRunner::forward(spec, problem, way);
    // What a sequence gives depends on the others.
    const std::vector<SequenceRows> rows =
        problem.sequences ? read_sequences(problem) : std::vector<SequenceRows>();
    if (!rows.empty() && rows.front().q_len == 33) values.out.at(0, 1, 4, 3) += 0.25;
    return values;
  }
  std::vector<AttentionValues> forward_replanned(const Spec& spec, const Problem& problem,
                                                 const SequenceNumbers& others,
                                                 const SequenceNumbers& numbers) override {
    std::vector<AttentionValues> all =
        KernelRelationRunner::forward_replanned(spec, problem, others, numbers);
    all[spoilt].out.at(0, 0, 5, 0) += 0.25;
    return all;
  }
  OfLies forward_with_lies(const Spec& spec, const Problem& problem,
                           const PackedShape& shape) override {
    OfLies lies = KernelRelationRunner::forward_with_lies(spec, problem, shape);
    if (damages) lies.damage = "row 2 of out belongs to no sequence and was written to";
    if (!damages) ++lies.report.count;
    return lies;
  }
  AttentionValues forward_with_positions(const Spec& spec, const Problem& problem,
                                         std::int64_t length) override {
    AttentionValues values = KernelRelationRunner::forward_with_positions(spec, problem, length);
    values.out.at(0, 0, 5, 2) += 0.25;
    return values;
  }
  Merged forward_merged(const Spec& spec, std::span<const Problem> problems) override {
    Merged merged = KernelRelationRunner::forward_merged(spec, problems);
    merged.whole.lse.at(0, 1, 5, 0) += 0.25;
    return merged;
  }
  std::size_t spoilt = 0;
  bool damages = false;
};

}  // namespace

TEST_CASE("fuzz packed: kernels that take other pages, new rows or weights are found") {
  const auto found = [](Relation relation, test::Fault fault) {
    FuzzCase c = packed_case();
    c.relation = to_string(relation);
    const Outcome outcome = with_fault(c, std::move(fault));
    CAPTURE(outcome.message);
    CHECK(outcome.failure == Failure::relation_broken);
  };
  found(Relation::paged, {.what = "the page before is read",
                          .file = "cpu/paged_rows.hpp",
                          .text = "page_entry(pages_, index);",
                          .replacement = "page_entry(pages_, index > 0 ? index - 1 : 0);"});
  found(Relation::paged, {.what = "a freed page is the pool's first",
                          .file = "cpu/paged_rows.hpp",
                          .text = "pool_ + page * page_stride_ : nullptr;",
                          .replacement = "pool_ + page * page_stride_ : pool_;"});
  found(Relation::new_rows, {.what = "rows are appended to the first row of their page",
                             .file = "abi/append.hpp",
                             .text = "page, column - index * pages.page_size.value};",
                             .replacement = "page, 0};"});
  found(Relation::new_rows, {.what = "new rows begin again in each tile",
                             .file = "cpu/paged_kv_new.hpp",
                             .text = "fresh_ + (first + of_pages - context_) * fresh_stride_;",
                             .replacement = "fresh_;"});
  found(Relation::merged_ranges, {.what = "parts weigh the same",
                                  .file = "cpu/merge/merge.hpp",
                                  .text = "weight_of(lse, row.max) * inverse",
                                  .replacement = "inverse"});
}

TEST_CASE("fuzz packed: with a sink, rows with negative positions keep nothing but it") {
  FuzzCase c = packed_case();
  c.spec.mask_mod = "q_idx >= kv_idx";
  c.spec.sink = "0.5";
  c.packing.sequences = {{.q_len = 9, .kv_len = 4}};
  c.packing.has_q_offset = c.packing.has_kv_offset = false;
  set_totals(c.shape, c.packing);
  KernelRelationRunner runner(Device::cpu());
  const RelationResult result = check_packed(Relation::positions, c, runner);
  CHECK(result.applies);
  CHECK(result.message.empty());
}

TEST_CASE("fuzz packed: relations that are broken are found") {
  FaultyRunner runner;
  const FuzzCase c = packed_case();
  const auto message = [&](Relation relation) { return check_packed(relation, c, runner).message; };
  CHECK_THAT(message(Relation::permuted_sequences), ContainsSubstring("gives other bits"));
  CHECK_THAT(message(Relation::planned_again), ContainsSubstring("planned_again does not hold"));
  runner.spoilt = 2;
  CHECK_THAT(message(Relation::planned_again), ContainsSubstring("planned_again does not hold"));
  CHECK_THAT(message(Relation::lying_lengths), ContainsSubstring("should report"));
  CHECK_THAT(message(Relation::merged_ranges), ContainsSubstring("merged_ranges does not hold"));
  FuzzCase masked = c;
  masked.spec.mask_mod = "q_idx >= kv_idx";
  masked.packing.has_kv_offset = false;
  CHECK_THAT(check_packed(Relation::positions, masked, runner).message,
             ContainsSubstring("positions does not hold"));
  runner.damages = true;
  CHECK_THAT(message(Relation::lying_lengths), ContainsSubstring("belongs to no sequence"));
  FuzzCase two = c;
  two.packing.sequences = {{33, 70}};
  set_totals(two.shape, two.packing);
  CHECK_THAT(check_packed(Relation::packed_as_dense, two, runner).message,
             ContainsSubstring("packed_as_dense does not hold"));
  CHECK_FALSE(check_packed(Relation::one_sequence, two, runner).applies);
}

namespace {

// A plan that has room for no rows leaves all of them out.
class FullPlanRunner : public KernelRelationRunner {
 public:
  FullPlanRunner() : KernelRelationRunner(Device::cpu()) {}
  OfLies forward_with_lies(const Spec& spec, const Problem& problem,
                           const PackedShape& shape) override {
    OfLies lies = KernelRelationRunner::forward_with_lies(spec, problem, shape);
    CHECK(lies.row_side == spec.block[0]);
    std::fill(lies.values.out.data.begin(), lies.values.out.data.end(), 7.0);
    if (is_full) lies.room = 0;
    return lies;
  }
  bool is_full = false;
};

}  // namespace

TEST_CASE("fuzz packed: what a plan has no room for is not compared") {
  FullPlanRunner runner;
  const FuzzCase c = packed_case();
  CHECK_FALSE(check_packed(Relation::lying_lengths, c, runner).holds());
  runner.is_full = true;
  const RelationResult result = check_packed(Relation::lying_lengths, c, runner);
  CAPTURE(result.message);
  CHECK(result.holds());
}

TEST_CASE("fuzz packed: lengths that lie are clamped as the documentation says") {
  const SequenceNumbers numbers{
      .q_begin = {-3, 20, 17, 90}, .kv_begin = {5, 60, 0}, .kv_len = {{10, -1, 500}}};
  const ClampedLengths clamped(numbers, {.batch = 3, .total_q = 40, .total_kv = 50});
  CHECK(clamped.report.count == 6);
  CHECK_THAT(clamped.report.text(), ContainsSubstring("q_begin[0] is -3"));
  CHECK(clamped.rows[0].q_begin == 0);
  CHECK(clamped.rows[0].q_len == 20);
  CHECK(clamped.rows[1].q_len == 0);
  CHECK(clamped.rows[1].kv_begin == 50);
  CHECK(clamped.rows[1].kv_len == 0);
  CHECK(clamped.rows[2].q_begin == 17);
  CHECK(clamped.rows[2].q_len == 23);
  CHECK(clamped.rows[2].kv_len == 50);
}

TEST_CASE("fuzz packed: about a third of the cases are packed, and their sequences vary") {
  CaseMaker maker({}, 21);
  int packed = 0, all = 0;
  std::size_t most = 0;
  std::set<KvRows> kv_rows;
  for (int group = 0; group < 150; ++group) {
    for (const FuzzCase& c : maker.next_group(4)) {
      ++all;
      if (!c.spec.is_packed()) continue;
      ++packed;
      CHECK_NOTHROW(validate_sizes(c));
      CHECK(c.shape.q_len < 4000);
      CHECK(c.shape.kv_len < 4000);
      CHECK(case_from_json(to_json(c)) == c);
      most = std::max(most, c.packing.sequences.size());
      kv_rows.insert(c.packing.kv_rows);
    }
  }
  CHECK(packed > all / 4);
  CHECK(packed < all / 2);
  CHECK(most > 30);
  CHECK(kv_rows.size() == 4);
}

TEST_CASE("fuzz packed: a user's packed spec stays packed, a dense one dense") {
  const Spec packed{
      .dtype = f16, .head_dim = 32, .layout = Layout::packed, .mask_mod = "q_idx >= kv_idx"};
  CaseMaker maker({.user_spec = packed}, 22);
  CaseMaker plain({.user_spec = packed, .offsets = false, .self_attention = true}, 22);
  Spec dense = packed;
  dense.layout = Layout::bshd;
  CaseMaker dense_maker({.user_spec = dense}, 22);
  for (int group = 0; group < 12; ++group) {
    for (const FuzzCase& c : maker.next_group(2)) {
      CHECK(c.spec.is_packed());
      CHECK(c.relation != "lying_lengths");
    }
    for (const FuzzCase& c : plain.next_group(2)) {
      CHECK_FALSE((c.packing.has_q_offset || c.packing.has_kv_offset));
      for (const FuzzSequence& one : c.packing.sequences) CHECK(one.q_len == one.kv_len);
    }
    for (const FuzzCase& c : dense_maker.next_group(2)) CHECK_FALSE(c.spec.is_packed());
  }
}

TEST_CASE("fuzz packed: cases of a user's spec with pages and new rows are specs") {
  const Spec paged{.dtype = f32,
                   .head_dim = 64,
                   .layout = Layout::packed,
                   .kv_layout = Layout::paged,
                   .kv_new = true,
                   .mask_mod = "q_idx >= kv_idx"};
  CaseMaker maker({.user_spec = paged}, 23);
  for (int group = 0; group < 12; ++group) {
    for (const FuzzCase& c : maker.next_group(2)) CHECK_NOTHROW(validate(c.spec));
  }
}

TEST_CASE("fuzz packed: what a failure does not need goes, sequences too") {
  FuzzCase c = packed_case(KvRows::backward);
  c.packing.has_q_offset = true;
  for (FuzzSequence& one : c.packing.sequences) one.q_offset = 9;
  const Outcome wrong{.failure = Failure::wrong_result, .message = "planted"};
  const auto planted = [&](const FuzzCase& one) -> Outcome {
    const auto& all = one.packing.sequences;
    const bool fails = std::any_of(all.begin(), all.end(), [](const FuzzSequence& s) {
      return s.q_len > s.kv_len && s.kv_len > 2;
    });
    return fails ? wrong : Outcome{};
  };
  const Shrunk shrunk = shrink(c, wrong, planted);
  CHECK(shrunk.finished);
  const FuzzCase& least = shrunk.smallest;
  CHECK(least.packing.sequences == std::vector<FuzzSequence>{{.q_len = 4, .kv_len = 3}});
  CHECK(least.packing.kv_rows == KvRows::together);
  CHECK_FALSE(least.packing.has_q_offset);
  CHECK(least.packing.q_rows_before + least.packing.q_rows_after + least.packing.kv_gap == 0);
  CHECK(least.spec.mask_mod.empty());
  CHECK(case_from_json(to_json(least)) == least);
}
