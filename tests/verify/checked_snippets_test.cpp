// What the checked interpretation finds in each snippet of a spec, and where.
#include <string>
#include <vector>

#include "base/error.hpp"
#include "generator/snippet/snippet.hpp"
#include "tests/support/catch.hpp"
#include "verify/check.hpp"
#include "verify/random_inputs.hpp"

using namespace tilewright;
using namespace tilewright::verify;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr Shape kShape{.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 3, .kv_len = 5};

// A spec whose out may have an out_scale, with a snippet of one kind. It reads `x`, 8 numbers
// from 0.1 to 0.5, and `n`, which is 0.
Spec spec_of(SnippetKind kind, const std::string& text, Bounds bounds = Bounds::clamped) {
  Spec spec{
      .dtype = f32,
      .head_dim = 16,
      .out_dtype = f8e4m3,
      .buffers = {{"x", {.dtype = f32, .shape = {8}, .bounds = bounds, .range = {{0.1, 0.5}}}},
                  {"n", {.dtype = i32, .shape = {}, .range = {{0, 0}}}}},
      .scalars = {{"seed", {.dtype = i64, .default_value = 7}}}};
  spec.dropout = "0.25f";
  spec.out_scale = "0.5f";
  snippet_text(spec, kind) = text;
  return spec;
}

std::vector<UndefinedOperation> found_in(const Spec& spec, const Shape& shape = kShape) {
  const Toolchain toolchain;
  const CheckedInterpretation interpretation(spec, toolchain);
  const Inputs inputs = random_inputs(spec, shape, 1);
  return find_undefined_operations(spec, inputs.problem(), interpretation, 1 << 20).operations;
}

Error error_of(const Spec& spec) {
  CheckOptions options;
  options.attention.device = Device::cpu();
  try {
    check(spec, random_inputs(spec, kShape, 1).problem(), options);
  } catch (const Error& error) {
    return error;
  }
  FAIL("no error");
  return Error(ErrorCode::internal, "");
}

// An index that a snippet of a kind sees, and the first element that has it above 0.
struct Seen {
  SnippetKind kind;
  std::string index;
  std::string element;
};

const std::vector<Seen>& seen() {
  static const auto& kSeen =
      *new std::vector<Seen>{{SnippetKind::score_mod, "kv_idx", "b 0, h 0, q_idx 0, kv_idx 1"},
                             {SnippetKind::mask_mod, "q_idx", "b 0, h 0, q_idx 1, kv_idx 0"},
                             {SnippetKind::q_scale, "q_idx", "b 0, h 0, q_idx 1"},
                             {SnippetKind::k_scale, "kv_idx", "b 0, h_kv 0, kv_idx 1"},
                             {SnippetKind::v_scale, "h_kv", "b 0, h_kv 1, kv_idx 0"},
                             {SnippetKind::out_scale, "h", "h 1"},
                             {SnippetKind::sink, "b", "b 1, h 0, q_idx 0"},
                             {SnippetKind::dropout, "h", "h 1"}};
  return kSeen;
}

}  // namespace

TEST_CASE("checked snippets: each kind is seen") {
  CHECK(seen().size() == snippet_kinds().size());
}

TEST_CASE("checked snippets: an index outside a buffer is reported at its line and column") {
  for (const auto& [kind, index, element] : seen()) {
    const std::string text = "const int i = 7 + " + index + ";\nreturn 0.5f +\n   x[i];";
    CAPTURE(to_string(kind));
    const std::vector<UndefinedOperation> found = found_in(spec_of(kind, text));
    REQUIRE(found.size() == 1);
    CHECK(found[0].message ==
          "index 8 of buffer \"x\" is outside its extent 8; it is clamped (at " + element + ")");
    CHECK(to_string(found[0].place) == std::string(to_string(kind)) + ":3:4");
    CHECK_FALSE(found[0].fatal);
    CHECK(found[0].clamped);
    const Error error = error_of(spec_of(kind, text, Bounds::trusted));
    CHECK_THAT(error.message(), ContainsSubstring("index 8 of buffer \"x\""));
    REQUIRE(error.place());
    CHECK(to_string(*error.place()) == std::string(to_string(kind)) + ":3:4");
  }
}

TEST_CASE("checked snippets: a division by zero is named before a kernel runs") {
  for (const auto& [kind, index, element] : seen()) {
    CAPTURE(to_string(kind));
    const Error error = error_of(spec_of(kind, "return 0.5f +\n " + index + " / n;"));
    CHECK_THAT(error.message(), ContainsSubstring("an integer is divided by zero (at "));
    REQUIRE(error.place());
    CHECK(error.place()->file == to_string(kind));
    CHECK(error.place()->line == 2);
    CHECK(error.place()->column == static_cast<int>(index.size()) + 3);
  }
}

TEST_CASE("checked snippets: an overflow, a loop without an end and a missing return are found") {
  for (const auto& [kind, index, element] : seen()) {
    CAPTURE(to_string(kind));
    const std::vector<UndefinedOperation> found =
        found_in(spec_of(kind, "0.5f + 1e-20f * (2147483647 + " + index + ")"));
    REQUIRE(found.size() == 1);
    CHECK(found[0].message == "an integer overflows (at " + element + ")");
    CHECK(found[0].place.file == to_string(kind));
    CHECK_THAT(error_of(spec_of(kind, "while (n == 0) {}\nreturn 1;")).message(),
               ContainsSubstring("the loops do not end"));
    CHECK_THAT(error_of(spec_of(kind, "if (" + index + " == 0) return 1;")).message(),
               ContainsSubstring("end is reached without a return") ||
                   ContainsSubstring("non-void function"));
  }
}

TEST_CASE("checked snippets: score_mod sees scores with their scales") {
  Spec spec = spec_of(SnippetKind::score_mod, "(int)score");
  CHECK(found_in(spec).empty());
  spec.q_scale = "1e15f";
  spec.k_scale = "1e15f";
  CHECK(found_in(spec).size() == 1);
}

TEST_CASE("checked snippets: a name that a snippet declares anew is its own") {
  Spec spec = spec_of(SnippetKind::score_mod,
                      "auto f = [](const auto& x, int i) { return x[i]; };\n"
                      "float y[2] = {1, 2};\nreturn score + y[0] + f(x, 9);");
  spec.buffers["y"] = {.dtype = f32, .shape = {2}, .bounds = Bounds::trusted};
  const std::vector<UndefinedOperation> found = found_in(spec);
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0].message, ContainsSubstring("index 9 of buffer \"x\""));
  CHECK(found[0].place.line == 1);
  CHECK(found[0].clamped);
}

TEST_CASE(
    "checked snippets: the extent that holds all indices is found, dropped elements included") {
  Spec spec = spec_of(SnippetKind::score_mod, "score + bias[kv_idx - q_idx + q_len - 1]");
  spec.buffers["bias"] = {.dtype = f32, .shape = {FreeDim{}}};
  const Shape shape = {.num_q_heads = 2, .num_kv_heads = 1, .q_len = 64, .kv_len = 70};
  const std::vector<UndefinedOperation> found = found_in(spec, shape);
  REQUIRE(found.size() == 1);
  REQUIRE(found[0].too_short);
  CHECK(found[0].too_short->buffer == "bias");
  CHECK(found[0].too_short->dimension == 0);
  CHECK(found[0].too_short->needed == 133);
  spec.score_mod = "score + bias[kv_idx - q_idx]";  // which no extent holds
  const std::vector<UndefinedOperation> both_ends = found_in(spec, shape);
  REQUIRE(both_ends.size() == 1);
  CHECK_FALSE(both_ends[0].too_short);
  REQUIRE(both_ends[0].outside);
  CHECK(both_ends[0].outside->extent == 64);
  CHECK(both_ends[0].outside->least == -63);
  CHECK(both_ends[0].outside->greatest == 69);
  CHECK_THAT(both_ends[0].message,
             ContainsSubstring("is outside its extent 64, as are others from -63 to 69; it is "));
  spec.score_mod = "score + bias[kv_idx + 100000000]";  // whose table would have 400 MB
  CHECK_FALSE(found_in(spec, shape)[0].too_short);
  spec.score_mod = "score + bias(0, kv_idx)";
  spec.buffers["bias"].shape = {2, FreeDim{}};
  REQUIRE(found_in(spec, shape).size() == 1);
  CHECK(found_in(spec, shape)[0].too_short->dimension == 1);
  CHECK(found_in(spec, shape)[0].too_short->needed == 70);
  spec.buffers["bias"].shape = {2, 64};  // which the spec fixes, and may fix otherwise
  REQUIRE(found_in(spec, shape).size() == 1);
  REQUIRE(found_in(spec, shape)[0].too_short);
  CHECK(found_in(spec, shape)[0].too_short->needed == 70);
  spec.buffers["bias"].shape = {2, NamedDim::q_len};  // which the call fixes
  const std::vector<UndefinedOperation> named = found_in(spec, shape);
  REQUIRE(named.size() == 1);
  CHECK_FALSE(named[0].too_short);
  REQUIRE(named[0].outside);
  CHECK(named[0].outside->dimension == 1);
  CHECK(named[0].outside->greatest == 69);
}

TEST_CASE("checked snippets: one error names every trusted read outside and what would hold all") {
  Spec spec = spec_of(SnippetKind::score_mod,
                      "score + x[kv_idx + 7] + x[2 * kv_idx + 1] +\n"
                      "y(q_idx, kv_idx - q_idx) + z[kv_idx + 1]",
                      Bounds::trusted);
  spec.buffers["y"] = {.dtype = f32, .shape = {FreeDim{}, FreeDim{}}, .bounds = Bounds::trusted};
  spec.buffers["z"] = {.dtype = f32, .shape = {NamedDim::kv_len}, .bounds = Bounds::trusted};
  const Error error = error_of(spec);
  CHECK_THAT(error.message(), ContainsSubstring("index 8 of buffer \"x\" is outside its extent 8"));
  CHECK_THAT(error.hint(),
             ContainsSubstring("; or make dimension 0 of \"x\" 12 long (\"shape\" in the spec)"));
  std::string notes;
  for (const std::string& note : error.notes()) notes += note + "\n";
  CHECK_THAT(
      notes,
      ContainsSubstring("so would score_mod:1:25: index 9 of buffer \"x\"") &&
          ContainsSubstring("so would score_mod:2:1: index -1 of dimension 1 of buffer \"y\"") &&
          ContainsSubstring("; dimension 1 of \"y\" was read at -2 to -1: no extent holds what is "
                            "below 0\n") &&
          ContainsSubstring("dimension 0 of \"z\" is kv_len, 5 in this call, and was read at 5: no "
                            "other extent fits it\n"));
}

TEST_CASE("checked snippets: a trusted read below 0 alone has no extent as an alternative") {
  Spec spec = spec_of(SnippetKind::score_mod, "score + x[kv_idx - 1]", Bounds::trusted);
  CHECK_THAT(
      error_of(spec).hint(),
      ContainsSubstring("; dimension 0 of \"x\" was read at -1: no extent holds what is below "
                        "0") &&
          !ContainsSubstring("or dimension"));
}

TEST_CASE("checked snippets: the extent holds all rounds of a loop") {
  Spec spec = spec_of(SnippetKind::score_mod,
                      "float sum = 0;\n"
                      "for (int j = 0; j < 200; ++j) sum += bias[j] + bias[j - 1 + 1];\n"
                      "return score + sum;");
  spec.buffers["bias"] = {.dtype = f32, .shape = {FreeDim{}}};
  const std::vector<UndefinedOperation> found = found_in(spec);
  REQUIRE(found.size() == 2);
  for (const UndefinedOperation& operation : found) {
    REQUIRE(operation.too_short);
    CHECK(operation.too_short->needed == 200);
  }
}
