#include <string>
#include <string_view>

#include "base/error.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/snippet/spec_facts.hpp"
#include "generator/spec/spec.hpp"
#include "generator/spec/spec_json.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

Spec spec_with(SnippetKind kind, std::string_view text, Layout layout = Layout::bhsd) {
  Spec spec{.head_dim = 64,
            .layout = layout,
            .buffers = {{"x", {.dtype = f32, .shape = {FreeDim{}}}}},
            .scalars = {{"s", {.dtype = f32, .default_value = 0.5}}}};
  snippet_text(spec, kind) = text;
  return spec;
}

struct Hidden {
  SnippetKind kind;
  const char* text;
  const char* message;
  const char* hint;
};

}  // namespace

TEST_CASE("scales: each kind sees what its tensor's rows have") {
  const auto hidden = GENERATE(
      Hidden{SnippetKind::q_scale, "x[kv_idx]", "q_scale does not see kv_idx",
             "it sees b, h, h_kv, q_idx, q_len, kv_len, num_q_heads, num_kv_heads, buffers"},
      Hidden{SnippetKind::sink, "x[kv_idx]", "sink does not see kv_idx", "b, h, h_kv, q_idx"},
      Hidden{SnippetKind::sink, "score", "sink does not see score", ""},
      Hidden{SnippetKind::k_scale, "x[h]", "k_scale does not see h",
             "it sees b, h_kv, kv_idx, q_len, kv_len, num_q_heads, num_kv_heads, buffers"},
      Hidden{SnippetKind::v_scale, "x[q_idx]", "v_scale does not see q_idx", ""},
      Hidden{SnippetKind::k_scale, "x[kv_token]", "'kv_token' is known in packed layouts only",
             "kv_idx"},
      Hidden{SnippetKind::q_scale, "x[q_token]", "'q_token' is known in packed layouts only",
             "q_idx"});
  CAPTURE(hidden.text, to_string(hidden.kind));
  try {
    validate(spec_with(hidden.kind, hidden.text));
    FAIL_CHECK("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::snippet);
    CHECK_THAT(error.message(), ContainsSubstring(hidden.message));
    CHECK_THAT(error.hint(), ContainsSubstring(hidden.hint));
    REQUIRE(error.place());
    CHECK(error.place()->file == to_string(hidden.kind));
  }
}

TEST_CASE("scales: what a text names is the granularity") {
  struct Named {
    SnippetKind kind;
    const char* text;
    Granularity granularity;
  };
  const auto named =
      GENERATE(Named{SnippetKind::q_scale, "s", Granularity::sequence},
               Named{SnippetKind::q_scale, "x[h_kv]", Granularity::sequence},
               Named{SnippetKind::q_scale, "x[h]", Granularity::head},
               Named{SnippetKind::q_scale, "x[q_token]", Granularity::row},
               Named{SnippetKind::k_scale, "1.0f", Granularity::sequence},
               Named{SnippetKind::k_scale, "x[b] * x[h_kv]", Granularity::sequence},
               Named{SnippetKind::k_scale, "int i = kv_idx / 16; return x[i];", Granularity::row},
               Named{SnippetKind::v_scale, "x[kv_token]", Granularity::row},
               Named{SnippetKind::sink, "x[h]", Granularity::head},
               Named{SnippetKind::sink, "x[q_idx]", Granularity::row});
  CAPTURE(named.text);
  const Spec spec = spec_with(named.kind, named.text, Layout::packed);
  validate(spec);
  const SpecFacts facts(spec);
  CHECK(facts.granularity(named.kind) == named.granularity);
  CHECK(facts.granularity(SnippetKind::out_scale) == Granularity::absent);
}

TEST_CASE("scales: new rows have none, so with kv_new those of k and v are of rows") {
  Spec spec = spec_with(SnippetKind::k_scale, "s", Layout::packed);
  spec.kv_layout = Layout::paged;
  CHECK(SpecFacts(spec).granularity(SnippetKind::k_scale) == Granularity::sequence);
  spec.kv_new = true;
  CHECK(SpecFacts(spec).granularity(SnippetKind::k_scale) == Granularity::row);
}

TEST_CASE("scales: a spec of JSON keeps them, and its text has them again") {
  const Spec spec = spec_from_json(
      R"({"dtype": "f16", "head_dim": 64, "layout": "packed", "q_scale": "0.5f",
          "k_scale": "x[kv_token]", "v_scale": "x[h_kv]", "sink": "x[h]",
          "buffers": {"x": {"dtype": "f32", "shape": [null]}}})",
      "s.json");
  CHECK(spec.q_scale == "0.5f");
  CHECK(spec.k_scale == "x[kv_token]");
  CHECK(spec.v_scale == "x[h_kv]");
  CHECK(spec.sink == "x[h]");
  CHECK(spec_from_json(to_json(spec), "again.json") == spec);
}

TEST_CASE("scales: gradients beside a sink, not of it, and not beside scales") {
  Spec spec = spec_with(SnippetKind::sink, "x[h]");
  spec.outputs.lse = true;
  spec.gradients = {"q", "k", "v"};
  CHECK_NOTHROW(validate(spec));
  spec.gradients = {"x"};
  CHECK_THROWS_WITH(validate(spec), ContainsSubstring("\"x\", which sink reads"));
  Spec scaled = spec_with(SnippetKind::k_scale, "s");
  scaled.outputs.lse = true;
  scaled.gradients = {"q"};
  CHECK_THROWS_WITH(validate(scaled), ContainsSubstring("a spec with k_scale"));
}
