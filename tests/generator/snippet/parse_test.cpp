#include "generator/snippet/parse.hpp"

#include <string>
#include <utility>
#include <vector>

#include "generator/snippet/print.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::snippet;

Spec spec() {
  Spec spec{.dtype = DType::bf16, .head_dim = 64};
  spec.buffers["slopes"] = {.dtype = DType::f32, .shape = {NamedDim::num_q_heads}};
  spec.buffers["doc"] = {.dtype = DType::i32, .shape = {NamedDim::batch, NamedDim::kv_len}};
  spec.buffers["bits"] = {.dtype = DType::i64, .shape = {NamedDim::q_len}};
  spec.buffers["one"] = {.dtype = DType::f32, .shape = {}};
  spec.scalars["cap"] = {.dtype = DType::f32};
  spec.scalars["window"] = {.dtype = DType::i32};
  return spec;
}

std::string reprinted(const std::string& text) {
  return to_text(parse(SnippetKind::score_mod, text, spec()));
}

std::string why_opaque(const std::string& text) {
  const SnippetTree tree = parse(SnippetKind::score_mod, text, spec());
  const Statement* const statement = opaque(tree);
  if (statement == nullptr) return "";
  return text.substr(statement->value.range.begin,
                     statement->value.range.end - statement->value.range.begin);
}

TEST_CASE("snippet trees: operators bind as in C++") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"score+slopes[h]*(kv_idx-q_idx)", "score + slopes[h] * (kv_idx - q_idx)"},
      {"(score + (slopes[h] * ((kv_idx - q_idx))))", "score + slopes[h] * (kv_idx - q_idx)"},
      {"score - (cap - 1) - 2", "score - (cap - 1) - 2"},
      {"score / cap / 2 * 3", "score / cap / 2 * 3"},
      {"score / (cap * 2)", "score / (cap * 2)"},
      {"-score * 2", "-score * 2"},
      {"-(score * 2)", "-(score * 2)"},
      {"-(-score) - -1.5 * -(-0.0)", "-(-score) - -1.5 * -(-0.0)"},
      {"-(-3) + -(-0.5) + score", "-(-3) + -(-0.5) + score"},
      {"q_idx < 3 == kv_idx < 4 ? score : -score",
       "((q_idx < 3) == (kv_idx < 4)) ? score : -score"},
      {"q_idx >> 2 + 1 & 3", "(q_idx >> 2 + 1) & 3"},
      {"q_idx & 1 or kv_idx & 1 and h", "(q_idx & 1) || ((kv_idx & 1) && h)"},
      {"b ? 1 : h ? 2 : 3", "b ? 1 : (h ? 2 : 3)"},
      {"(b ? 1 : h) ? 2 : 3", "(b ? 1 : h) ? 2 : 3"},
      {"!b + 1", "!b + 1"},
      {"~q_idx", "q_idx ^ -1"},
      {"(float)q_idx * 2", "float(q_idx) * 2"},
      {"(int(score) + 1)", "int(score) + 1"},
      {"static_cast<long long>(q_idx)", "static_cast<long long>(q_idx)"},
      {"double(q_idx)", "float(q_idx)"},
      {"slopes(h)", "slopes[h]"},
      {"doc.size(1) + doc(b, q_idx)", "doc.size(1) + doc(b, q_idx)"},
      {"tanhf(fabs(q_idx)) + fminf(1, score)", "tanh(abs(float(q_idx))) + min(float(1), score)"},
      {"floor_div(q_idx, 2) + floor_mod(score, 2)", "floor_div(q_idx, 2) + floor_mod(score, 2)"},
      {"sign(score) + erff(score) * expm1(log1p(erfc(score)))",
       "sign(score) + erf(score) * expm1(log1p(erfc(score)))"},
      {"slopes[q_idx * 4294967296ll] + slopes[(unsigned)(-q_idx)]",
       "slopes[q_idx * 4294967296ll] + slopes[(unsigned)(-q_idx)]"},
      {"slopes[(unsigned long long)(-1)] + one", "slopes[(unsigned long long)(-1)] + one"},
      {"0x1F + 0b11 + 017 + 1'000", "31 + 3 + 15 + 1000"},
      {"50.f + 1e-2 + .5", "50.0 + 0.01 + 0.5"},
      {"b ? NAN : h ? -NAN : -INFINITY", "b ? NAN : (h ? -NAN : -INFINITY)"},
      {"const int d = q_idx, e = 2; return score + d * e;",
       "int d = q_idx;\nint e = 2;\nreturn score + d * e;"},
      {"float x = q_idx; x += 2; ++x; x--; return x;",
       "float x = q_idx;\nfloat x_1 = x + 2;\nfloat x_2 = x_1 + 1;\nfloat x_3 = x_2 - 1;\nreturn "
       "x_3;"},
      {"score += 2; return score * score;",
       "float score_1 = score + 2;\nreturn score_1 * score_1;"},
      {"if (b) { float x = 2; score = x; } else { float x = 3; score = x; } return score;",
       "if (b) {\n  float x = 2;\n  score = x;\n} else {\n  float x_1 = 3;\n  score = "
       "x_1;\n}\nreturn score;"},
      {"if (b) return 1; else if (h) return 2; return score;",
       "if (b) {\n  return 1;\n} else {\n  if (h) {\n    return 2;\n  }\n}\nreturn score;"},
      {"int s = 0; for (int i = 1; i < 3; ++i) s += i; return s;",
       "int s = 0;\nint i = 1;\nwhile (i < 3) {\n  s = s + i;\n  i = i + 1;\n}\nreturn s;"},
      {"auto f = [&](int i, float x) { return x * i; }; return f(3, score);",
       "auto f = [&](int i, float x) { return x * i; };\nreturn f(3, score);"},
  };
  for (const auto& [text, expected] : cases) {
    INFO(text << " is opaque at " << why_opaque(text));
    CHECK(reprinted(text) == expected);
    CHECK(reprinted(expected) == expected);
  }
}

TEST_CASE("snippet trees: a tree with NAN equals itself") {
  const auto tree = [](const std::string& text) {
    return parse(SnippetKind::score_mod, text, spec());
  };
  CHECK(tree("b ? NAN : score") == tree("b ? (NAN) : score"));
  CHECK_FALSE(tree("b ? NAN : score") == tree("b ? INFINITY : score"));
}

TEST_CASE("snippet trees: types follow C++'s conversions") {
  const auto type = [](const std::string& text) {
    return parse(SnippetKind::score_mod, text, spec()).statements.at(0).value.type;
  };
  CHECK(type("q_idx / 2") == Type::integer);
  CHECK(type("q_idx / 2.0") == Type::floating);
  CHECK(type("bits[q_idx] & 1") == Type::wide);
  CHECK(type("1 << bits[q_idx]") == Type::integer);
  CHECK(type("q_idx < 2.0") == Type::truth);
  CHECK(type("b ? true : false") == Type::truth);
  CHECK(type("b ? 1 : 2.0") == Type::floating);
  CHECK(type("min(q_idx, bits[q_idx])") == Type::wide);
  CHECK(type("3000000000") == Type::wide);
  CHECK(type("cap * window") == Type::floating);
}

TEST_CASE("snippet trees: what is not understood is opaque, and says where") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"unsigned u = 3; return score * u;", "unsigned"},
      {"score * 2u", "2u"},
      {"score * 0xFFFFFFFF", "0xFFFFFFFF"},
      {"int a[2] = {1, 2}; return a[0];", "["},
      {"const int& r = q_idx; return score * r;", "&"},
      {"int d = 1; return score + (d = 2);", "="},
      {"int d = 1; return score + d++;", "++"},
      {"int h = 1; return score + h;", "h"},
      {"{ int x = 1; } return score + x;", "x"},
      {"cap = 2; return score * cap;", "cap"},
      {"const float x = float(score), y = 1; y = 2; return x * y;", "y"},
      {"int x = 1; { int x = 2; } return score + x;", "x"},
      {"switch (b) { default: return score; }", "switch"},
      {"for (int i = 0; i < 3; ++i) { if (i) continue; } return score;", "continue"},
      {"if (q_idx) break; return score;", "break"},
      {"constexpr int x = 1 / 0; return score + x;", ";"},
      {"constexpr int x = q_idx; return score + x;", ";"},
      {"[&] { return score; }()", "["},
      {"score + unknown", "unknown"},
      {"score + doc(b)", "("},
      {"score % 2", "%"},
      {"auto [x, y] = score; return x;", "["},
      {"1, score", ","},
  };
  for (const auto& [text, place] : cases) {
    INFO(text);
    CHECK(why_opaque(text) == place);
  }
}

TEST_CASE("snippet trees: nodes point into the user's text") {
  const std::string text = "score + (slopes[h]) * ((kv_idx - q_idx))";
  const Expression sum = parse(SnippetKind::score_mod, text, spec()).statements.at(0).value;
  const auto at = [&](const Expression& node) {
    return text.substr(node.range.begin, node.range.end - node.range.begin);
  };
  CHECK(at(sum) == text);
  CHECK(at(sum.operands[0]) == "score");
  CHECK(at(sum.operands[1].operands[0]) == "slopes[h]");
  CHECK(at(sum.operands[1].operands[1]) == "kv_idx - q_idx");
}

}  // namespace
