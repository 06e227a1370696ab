#include "fuzz/random_case.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fuzz/case_inputs.hpp"
#include "fuzz/case_parts.hpp"
#include "fuzz/relation.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/spec/spec.hpp"
#include "runtime/api/shape.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify::fuzz;

TEST_CASE("fuzz: a seed gives its cases again, another one gives others") {
  const auto cases_of = [](std::uint64_t seed) {
    CaseMaker maker({}, seed);
    std::vector<std::string> texts;
    for (int group = 0; group < 5; ++group) {
      for (const FuzzCase& fuzz_case : maker.next_group(3)) texts.push_back(to_json(fuzz_case));
    }
    texts.push_back(to_json(maker.next_compile()));
    return texts;
  };
  CHECK(cases_of(7) == cases_of(7));
  CHECK(cases_of(7) != cases_of(8));
}

TEST_CASE("fuzz: biases for padded keys reach the limits of each floating type") {
  CaseMaker maker({}, 12);
  std::map<DType, std::set<double>> seen;
  for (int group = 0; group < 1500; ++group) {
    for (const FuzzCase& fuzz_case : maker.next_group(1)) {
      for (const auto& [name, buffer] : fuzz_case.spec.buffers) {
        if (!name.starts_with("padding")) continue;
        const verify::Inputs inputs = dense_inputs(fuzz_case);
        const TensorView view = inputs.buffers.at(name);
        for (std::int64_t i = 0; i < view.numel(); ++i) {
          seen[buffer.dtype].insert(read_element(view.data, view.dtype, i));
        }
      }
    }
  }
  const std::map<DType, double> greatest = {{DType::f16, 65504.0},
                                            {DType::bf16, 0x1.fep127},
                                            {DType::f32, std::numeric_limits<float>::max()}};
  for (const auto& [dtype, limit] : greatest) {
    CAPTURE(to_string(dtype));
    CHECK(seen[dtype].contains(-limit));
    CHECK(seen[dtype].contains(0.0));
    CHECK(seen[dtype].contains(limit));
    CHECK(seen[dtype].size() > 10);
  }
}

TEST_CASE("fuzz: cases are valid, survive JSON, and come to show every pair of features") {
  CaseMaker maker({}, 11);
  std::set<std::string> snippets;
  int cases = 0;
  for (int group = 0; group < 260; ++group) {
    for (const FuzzCase& fuzz_case : maker.next_group(5)) {
      ++cases;
      const bool is_packed = fuzz_case.spec.is_packed();
      for (const auto& [name, buffer] : fuzz_case.spec.buffers) {
        const auto lengths =
            std::count_if(buffer.shape.begin(), buffer.shape.end(), [&](const BufferDim& dim) {
              return dim == BufferDim(NamedDim::q_len) || dim == BufferDim(NamedDim::kv_len) ||
                     dim == BufferDim(NamedDim::total_q) || dim == BufferDim(NamedDim::total_kv) ||
                     (is_packed && dim == BufferDim(NamedDim::batch));
            });
        CHECK(lengths <= (buffer.shape.size() <= 2 ? 2 : 1));
      }
      if (cases % 10 != 0) continue;
      CHECK_NOTHROW(validate(fuzz_case.spec));
      CHECK_NOTHROW(validate_sizes(fuzz_case));
      CHECK(case_from_json(to_json(fuzz_case)) == fuzz_case);
      for (const std::string& text : {fuzz_case.spec.score_mod, fuzz_case.spec.mask_mod}) {
        if (!text.empty()) snippets.insert(text);
      }
    }
  }
  for (const FeaturePair& pair : maker.coverage().all_missing()) CHECK(pair.describe() == "");
  CHECK(maker.coverage().possible() > 4000);
  CHECK(snippets.size() > 150);
}

// The interpreter throws where an integer overflows or a divisor is 0.
TEST_CASE("fuzz: random snippets have no undefined behaviour") {
  CaseMaker maker({.max_elements = 2000}, 12);
  for (int group = 0; group < 60; ++group) {
    for (const FuzzCase& fuzz_case : maker.next_group(2)) {
      const CaseInputs inputs(fuzz_case);
      const CaseParts parts(fuzz_case, inputs.problem(), nullptr);
      for (const CaseParts::Part& part : parts.parts()) {
        if (part.piece.score_rows() == 0) continue;
        const auto columns = static_cast<std::size_t>(part.piece.columns());
        const std::vector<double> scores(columns, 1.5);
        std::vector<double> modified(columns);
        std::vector<unsigned char> keep(columns);
        CHECK_NOTHROW(part.interpretations.in_double()(0, 0, part.piece.rows() - 1, scores.data(),
                                                       modified.data(), keep.data()));
      }
    }
  }
}

TEST_CASE("fuzz: cases ask for every relation about as often, where it applies") {
  CaseMaker maker({}, 15);
  std::map<std::string, int> asked;
  std::map<Relation, int> suited;  // cases that it applies to
  int trapped = 0;
  for (int group = 0; group < 400; ++group) {
    for (const FuzzCase& fuzz_case : maker.next_group(1)) {
      trapped += fuzz_case.sanitized ? 1 : 0;
      for (const Relation relation : all_relations()) {
        suited[relation] += applies(relation, fuzz_case) ? 1 : 0;
      }
      if (fuzz_case.relation.empty()) continue;
      const Relation relation = relation_from_string(fuzz_case.relation);
      CHECK(applies(relation, fuzz_case));
      ++asked[fuzz_case.relation];
    }
  }
  for (const Relation relation : all_relations()) {
    CAPTURE(to_string(relation));
    CHECK(suited[relation] > 0);
    CHECK(asked[std::string(to_string(relation))] >= std::min(2, suited[relation]));
  }
  CHECK(trapped >= 10);
  CHECK(CaseMaker({.device = "cuda"}, 15).next_group(1).front().sanitized == false);
}

TEST_CASE("fuzz: a user's snippets stay, the rest varies") {
  const Spec user{.dtype = bf16,
                  .head_dim = 64,
                  .mask_mod = "q_idx >= kv_idx + w",
                  .scalars = {{"w", {.dtype = i32, .default_value = 3}}}};
  CaseMaker maker({.user_spec = user}, 13);
  std::set<std::string> dtypes;
  std::set<std::int64_t> dims, lengths;
  for (int group = 0; group < 30; ++group) {
    for (const FuzzCase& fuzz_case : maker.next_group(2)) {
      CHECK(fuzz_case.spec.mask_mod == user.mask_mod);
      CHECK(fuzz_case.spec.score_mod.empty());
      CHECK(fuzz_case.spec.scalars == user.scalars);
      CHECK_FALSE(fuzz_case.mask_mod);
      dtypes.insert(std::string(to_string(fuzz_case.spec.dtype)));
      dims.insert(fuzz_case.spec.head_dim);
      lengths.insert(fuzz_case.shape.q_len);
    }
  }
  CHECK(dtypes.size() == 4);
  CHECK(dims.size() > 5);
  CHECK(lengths.size() > 10);
}

TEST_CASE("fuzz: a user's buffers and scalars may be those of a sink or of dropout alone") {
  Spec sink{.dtype = f32, .head_dim = 16, .sink = "sinks[h]"};
  sink.buffers["sinks"] = {.dtype = f32, .shape = {NamedDim::num_q_heads}};
  Spec dropout{.dtype = f32, .head_dim = 16, .dropout = "p"};
  dropout.scalars["p"] = {.dtype = f32, .default_value = 0.3};
  dropout.scalars["seed"] = {.dtype = i64};
  for (const Spec& user : {sink, dropout}) {
    CaseMaker maker({.user_spec = user}, 18);
    for (const FuzzCase& fuzz_case : maker.next_group(20)) {
      CHECK(fuzz_case.spec.sink == user.sink);
      CHECK(fuzz_case.spec.dropout == user.dropout);
    }
  }
}

TEST_CASE("fuzz: kernels with a user's text do not end their process") {
  CaseMaker maker({.user_spec = Spec{.score_mod = "score + 1"}, .sanitize_every = 1}, 16);
  for (int group = 0; group < 5; ++group) {
    CHECK_FALSE(maker.next_group(1).front().sanitized);
  }
  CaseMaker plain({.user_spec = Spec{}, .sanitize_every = 1}, 16);
  CHECK(plain.next_group(1).front().sanitized);
}

TEST_CASE("fuzz: a user's whole scalar without a default comes to 0 and below it") {
  const Spec user{.mask_mod = "q_idx / w >= kv_idx / w",
                  .scalars = {{"w", {.dtype = i32}}, {"cap", {.dtype = f32}}}};
  CaseMaker maker({.user_spec = user}, 17);
  bool is_zero = false, is_negative = false, is_usual = false;
  for (const FuzzCase& fuzz_case : maker.next_group(40)) {
    CHECK_FALSE(fuzz_case.scalars.contains("cap"));
    const auto found = fuzz_case.scalars.find("w");
    if (found == fuzz_case.scalars.end()) {
      is_usual = true;
      continue;
    }
    is_zero = is_zero || found->second == 0;
    is_negative = is_negative || found->second < 0;
  }
  CHECK(is_zero);
  CHECK(is_negative);
  CHECK(is_usual);
}

TEST_CASE("fuzz: kernels that are only compiled show every pair of features") {
  CaseMaker maker({}, 14);
  std::set<std::string> targets;
  for (int i = 0; i < 500; ++i) targets.insert(maker.next_compile().target);
  CHECK(targets.contains("sm_90a"));
  CHECK(targets.size() == 8);
  const auto missing = maker.compile_coverage().all_missing();
  for (const FeaturePair& pair : missing) CHECK(pair.describe() == "");
}

}  // namespace
