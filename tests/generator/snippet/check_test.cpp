#include "generator/snippet/check.hpp"

#include <string>

#include "base/error.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

Spec spec_with(const std::string& score_mod) {
  return {.dtype = f32,
          .head_dim = 64,
          .score_mod = score_mod,
          .buffers = {{"bias", {.dtype = f32, .shape = {FreeDim{}, FreeDim{}}}},
                      {"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}},
                      {"doc", {.dtype = i32, .shape = {FreeDim{}, FreeDim{}}}}},
          .scalars = {{"cap", {.dtype = f32}}, {"where", {.dtype = i32}}}};
}

}  // namespace

TEST_CASE("snippet check: quotes inside the quotes of JSON have to go") {
  const auto refuses = [](const Spec& spec, SnippetKind kind, const char* hint) {
    try {
      check_snippet_of(spec, kind);
      FAIL_CHECK("accepted");
    } catch (const Error& error) {
      CHECK_THAT(error.message(), ContainsSubstring("is a string, and a snippet is C++"));
      CHECK(error.hint() == hint);
      CHECK(error.code() == ErrorCode::snippet);
    }
  };
  Spec spec = spec_with("\"score + 1\"");
  spec.dropout = "\"0.1\"";
  refuses(spec, SnippetKind::score_mod, R"(delete the inner quotes: "score_mod": "score + 1")");
  refuses(spec, SnippetKind::dropout, R"(delete the inner quotes: "dropout": "0.1")");
}

TEST_CASE("snippet check: names of other libraries are refused with what to write") {
  struct Case {
    const char* text;
    int column;
    const char* hint;
  };
  const Case refused = GENERATE(
      Case{"score - inf", 9, "INFINITY"}, Case{"min(score, inf)", 12, "INFINITY"},
      Case{"int a = min(3, inf); return score * a;", 16, "INFINITY"},
      Case{"q_idx >= kv_idx ? score : NEG_INF", 27, "INFINITY"},
      Case{"torch.where(q_idx > kv_idx, score, 0)", 1, "select(condition, x, y)"},
      Case{"score + math.log(2)", 9, "log(x)"}, Case{"np.exp(score)", 1, "exp(x)"},
      Case{"sigmoid(score)", 1, "1 / (1 + exp(-x))"}, Case{"True", 1, "true"},
      Case{"None", 1, "true"}, Case{"lambda x: x", 1, "[](int x)"}, Case{"q[0] * k[0]", 1, "q_idx"},
      Case{"score * q_head", 9, "write h"}, Case{"is_causal ? score : 0", 1, "q_idx >= kv_idx"},
      Case{"window_size * score", 1, "scalars"}, Case{"score / seq_len", 9, "kv_len"},
      Case{"score * num_heads", 9, "num_q_heads"}, Case{"score + sinks[h]", 9, "softmax"},
      Case{"score + doc[b][q_idx]", 12, "write doc(b, q_idx)"},
      Case{"score + bias[h]", 13, "write bias(h)"}, Case{"score ^ 2", 7, "pow(score, 2)"},
      Case{"score + slopes[h] ^ 2", 19, "pow(slopes[h], 2)"}, Case{"2 ^ cap", 3, "pow(2, cap)"},
      Case{"float x = score; return x ^ 3;", 27, "pow(x, 3)"},
      Case{"exp(score) ^ h", 12, "pow(exp(score), h)"});
  CAPTURE(refused.text);
  try {
    check_snippet_of(spec_with(refused.text), SnippetKind::score_mod);
    FAIL_CHECK("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::snippet);
    CHECK_THAT(error.hint(), ContainsSubstring(refused.hint));
    REQUIRE(error.place());
    CHECK(error.place()->column == refused.column);
  }
}

TEST_CASE("snippet check: the spec's own names, locals and whole numbers pass") {
  const char* const text = GENERATE(
      "score + bias(h, q_idx) + slopes[h] + doc(b, h) + where", "int inf = 3; return score - inf;",
      "auto f = [](int q) { return q; }; return score + f(1);",
      "auto [q, k] = f(); return q * score;", "score + (h ^ 1)", "score + ((score > 1) ^ (h == 2))",
      "score + (static_cast<int>(score) ^ 1)", "score + (doc(b, h) ^ 1)", "cap * score * slope[h]",
      "int a = 1, inf = 3; return score - inf * a;", "int a(1), inf(3); return score - inf * a;",
      "int (inf) = 3; return score - inf;", "int inf{3}; return score - inf;",
      "const float& inf = score; return inf;", "auto [a, inf, c] = f(); return score - inf;",
      "for (int i = 0, inf(3); i < inf; ++i) {} return score;",
      "int g[] = {1, 2}, inf(3); return score - inf - g[0];",
      "auto doc = [](int x) { return &x; }; return score + doc[0];");
  CAPTURE(text);
  CHECK_NOTHROW(check_snippet_of(spec_with(text), SnippetKind::score_mod));
}

TEST_CASE("snippet check: both snippets are checked, and an absent one is nothing") {
  Spec spec = spec_with("score");
  CHECK_NOTHROW(check_snippet_of(spec, SnippetKind::mask_mod));
  spec.mask_mod = "False";
  CHECK_THROWS_AS(check_snippet_of(spec, SnippetKind::mask_mod), Error);
  CHECK_THROWS_AS(validate(spec), Error);
}

TEST_CASE("snippet check: tokens are known in packed layouts alone") {
  Spec spec{.head_dim = 64, .mask_mod = "q_idx >= 0 && kv_token == q_token"};
  try {
    check_snippet_of(spec, SnippetKind::mask_mod);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.message() == "'kv_token' is known in packed layouts only");
    CHECK_THAT(error.hint(), ContainsSubstring("write kv_idx"));
    CHECK(error.place()->column == 15);
  }
  spec.layout = Layout::packed;
  CHECK_NOTHROW(check_snippet_of(spec, SnippetKind::mask_mod));
  spec.layout = Layout::bhsd;
  spec.mask_mod = "int kv_token = kv_idx + 1; return kv_token > q_idx;";
  CHECK_NOTHROW(check_snippet_of(spec, SnippetKind::mask_mod));
}
