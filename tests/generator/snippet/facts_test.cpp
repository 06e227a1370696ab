#include "generator/snippet/facts.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "generator/snippet/parse.hpp"
#include "generator/snippet/print.hpp"
#include "generator/snippet/rewrite.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::snippet;

Spec spec() {
  Spec spec{.dtype = DType::bf16, .head_dim = 64};
  spec.buffers["slopes"] = {.dtype = DType::f32, .shape = {NamedDim::num_q_heads}};
  spec.buffers["doc"] = {.dtype = DType::i32, .shape = {NamedDim::batch, NamedDim::kv_len}};
  spec.buffers["bias"] = {.dtype = DType::f32, .shape = {FreeDim{}}};
  spec.buffers["pair"] = {.dtype = DType::f32, .shape = {NamedDim::q_len, NamedDim::kv_len}};
  spec.buffers["trusted"] = {
      .dtype = DType::f32, .shape = {NamedDim::kv_len}, .bounds = Bounds::trusted};
  spec.scalars["cap"] = {.dtype = DType::f32};
  spec.scalars["window"] = {.dtype = DType::i32};
  return spec;
}

SnippetTree tree(const std::string& text) {
  return parse(SnippetKind::score_mod, text, spec());
}
SnippetFacts facts(const std::string& text) {
  return find_facts(tree(text), spec());
}
ScoreReduction reduction(const std::string& text) {
  return reduce(tree(text), spec());
}

std::string hoisted(const std::string& text) {
  std::string all;
  for (const BufferRead& read : facts(text).reads) {
    if (read.is_hoistable) all += read.buffer + "(" + indices_text(read) + ") ";
  }
  return all;
}

std::string linear(const std::string& text) {
  std::string all;
  for (const BufferRead& read : linear_reads(facts(text))) {
    all += read.buffer + "(" + indices_text(read) + ")" + (read.has_own_element ? "! " : " ");
  }
  return all;
}

TEST_CASE("snippet facts: reads that a head, a row or a column shares") {
  CHECK(hoisted("score + slopes[h]") == "slopes(h) ");
  CHECK(hoisted("doc(b, q_idx) == doc((b), int(kv_idx)) ? score : 0") ==
        "doc(b, q_idx) doc(b, kv_idx) ");
  CHECK(hoisted("const int k = kv_idx; return score + doc(b, k);") == "doc(b, kv_idx) ");
  CHECK(hoisted("auto k = kv_idx; return score + doc(b, k);") == "doc(b, kv_idx) ");
  CHECK(hoisted("auto f = [=](int i) { return doc(b, q_idx) + i; }; return score + f(1);") ==
        "doc(b, q_idx) ");
  CHECK(hoisted("score + doc(b, kv_idx + 1)").empty());
  CHECK(hoisted("score + pair(q_idx, kv_idx)").empty());
  CHECK(hoisted("score + trusted[kv_idx]").empty());
  CHECK(hoisted("int k = kv_idx; k += 1; return score + doc(b, k);").empty());
  CHECK(hoisted("int k = kv_idx; if (b) k = 2; return score + doc(b, k);").empty());
  CHECK(hoisted("for (int h2 = 0; h2 < 3; ++h2) { if (slopes[h2] > 1) return 0; } return score;")
            .empty());
  CHECK(hoisted("const int& k = kv_idx; return score + doc(b, k) + slopes[h];").empty());
}

TEST_CASE("snippet facts: reads at sums of indices") {
  CHECK(linear("score + bias[q_idx - kv_idx + 3]") == "bias(q_idx - kv_idx + 3) ");
  CHECK(linear("const int d = q_idx - kv_idx; return score + bias[d + 3];") ==
        "bias(q_idx - kv_idx + 3) ");
  CHECK(linear("score + bias[clamp(kv_idx - q_idx, -window + window, kv_len)]").empty());
  CHECK(linear("score + bias[clamp(kv_idx - q_idx, 0, kv_len)]") ==
        "bias(clamp(kv_idx - q_idx, 0, kv_len)) ");
  CHECK(linear("score + pair(q_idx, kv_idx)") == "pair(q_idx, kv_idx)! ");
  CHECK(linear("score + bias[64 - clamp(q_idx - kv_idx, 0, 64) - clamp(kv_idx, 0, 64)]").empty());
  CHECK(linear("score + bias[q_idx - kv_idx] + bias[q_idx * kv_idx]").empty());
  CHECK(linear("score + bias[q_idx - kv_idx] + trusted[kv_idx]").empty());
  CHECK(linear("score + bias[int(1.5f * q_idx)]").empty());
}

TEST_CASE("snippet facts: what could do harm") {
  CHECK(!facts("score / (1 + kv_idx * 0.5)").needs_bounded_indices);
  CHECK(!facts("score + kv_idx / 3 + kv_idx % window").needs_bounded_indices);
  CHECK(facts("score + 3 / (kv_len - kv_idx)").needs_bounded_indices);
  CHECK(facts("score + kv_idx / 0").needs_bounded_indices);
  CHECK(facts("score + kv_idx % kv_len").needs_bounded_indices);
  CHECK(facts("int d = kv_len - kv_idx; return score + 7 / d;").needs_bounded_indices);
  CHECK(
      facts("int d = 7; d -= kv_idx; int e = 3; e /= d; return score + e;").needs_bounded_indices);
  CHECK(facts("score + trusted[kv_idx]").needs_bounded_indices);
  CHECK(facts("while (b < 0) { } return score;").needs_bounded_indices);
  CHECK(facts("int a[2] = {1, 2}; return score + a[kv_idx];").needs_bounded_indices);
}

TEST_CASE("snippet facts: nothing is known of an opaque snippet") {
  const SnippetFacts unknown = facts("auto& s = score; return s + slopes[h] * (kv_idx - q_idx);");
  CHECK(unknown.is_opaque);
  CHECK(unknown.reads.empty());
  CHECK(!unknown.has_loop);
  CHECK(facts("int a[2]; for (int i = 0; i < 2; ++i) a[i] = 1; return score;").has_loop);
  CHECK(unknown.divides);
  CHECK(unknown.needs_bounded_indices);
  CHECK(!unknown.takes_index_difference);
  CHECK(unknown.needs_plain_reads);
  const ScoreReduction none = reduction("float s = score; (s) *= 2; return 50 * tanh(s);");
  CHECK((none.of_score.is_one() && none.of_result.is_one() && none.slope_sign == 0));
}

TEST_CASE("snippet facts: factors of the score and of the result") {
  const auto of = [](const std::string& text) {
    const ScoreReduction found = reduction(text);
    const auto describe = [](const Factor& factor) {
      std::string all = factor.literal == 1 ? "" : std::to_string(factor.literal).substr(0, 6);
      for (const auto& [name, divides] : factor.scalars) all += (divides ? "/" : "*") + name;
      return all;
    };
    return describe(found.of_score) + " " + describe(found.of_result) +
           (found.is_bounded ? " bounded " : " ") + to_text(found.rest);
  };
  CHECK(of("50 * tanh(score / 50)") == "0.0200 50.000 bounded tanh(score)");
  CHECK(of("cap * tanh(score / cap)") == "/cap *cap bounded tanh(score)");
  CHECK(of("(50.0 * (tanh((score / 50.0))))") == "0.0200 50.000 bounded tanh(score)");
  CHECK(of("const float i = 1 / cap; return tanh(score * i) / i;") ==
        "/cap *cap bounded tanh(score)");
  CHECK(of("0.5f * score + kv_idx") == "0.5000  score + kv_idx");
  CHECK(of("score * 2 * cap") == "2.0000*cap  score");
  CHECK(of("2 * score + 2 * score * score").substr(0, 2) == "  ");
  CHECK(of("2 * score + 3 * score").substr(0, 2) == "  ");
  CHECK(of("2 * score + 2 * score").substr(0, 6) == "2.0000");
  CHECK(of("2 / score").substr(0, 2) == "  ");
  CHECK(of("-2 * score").substr(0, 2) == "  ");
  CHECK(of("1e-9 * score").substr(0, 2) == "  ");
  CHECK(of("kv_idx / -score * 2").substr(0, 2) == "  ");
  CHECK(of("window * score").substr(0, 2) == "  ");
  CHECK(of("5 / 2 * tanh(score)").substr(0, 2) == "  ");
  CHECK(of("if (b) return 0; return 3 * tanh(score);").substr(0, 2) == "  ");
  CHECK(of("float x = score * 2; x = x + score; return x;").substr(0, 2) == "  ");
}

TEST_CASE("snippet facts: slopes of kv_idx - q_idx") {
  const auto of = [](const std::string& text) {
    const ScoreReduction found = reduction(text);
    return found.slope_sign == 0 ? std::string("none")
                                 : (found.slope_sign > 0 ? "+ " : "- ") + to_text(found.rest);
  };
  CHECK(of("score + slopes[h] * (kv_idx - q_idx)") == "+ slopes[h]");
  CHECK(of("score - slopes[h] * (kv_idx - q_idx)") == "- slopes[h]");
  CHECK(of("score - (q_idx - kv_idx) * slopes[h]") == "+ slopes[h]");
  CHECK(of("-slopes[h] * (q_idx - kv_idx) + score") == "+ slopes[h]");
  CHECK(of("score + (kv_idx - q_idx)") == "+ 1.0");
  CHECK(of("score + (kv_idx - q_idx) / 8.0") == "+ 1.0 / 8.0");
  CHECK(of("score + (kv_idx - q_idx) * slopes[h] / cap") == "+ slopes[h] / cap");
  CHECK(of("score + h / 2 * (kv_idx - q_idx)") == "+ h / 2");
  CHECK(of("score + (kv_idx - q_idx) / 8") == "none");
  CHECK(of("score + (kv_idx - q_idx) * 3 / 2") == "none");
  CHECK(of("score + slopes[h] * (kv_idx - q_idx) * kv_idx") == "none");
  CHECK(of("score + slopes[h] * (kv_idx - q_idx + 1)") == "none");
  CHECK(of("score * score + slopes[h] * (kv_idx - q_idx)") == "none");
  CHECK(of("score + bias[kv_idx] * (kv_idx - q_idx)") == "none");
  CHECK(of("score + slopes[h] * (q_idx - q_idx)") == "none");
  CHECK(of("if (kv_idx > 3) return 0; return score + slopes[h] * (kv_idx - q_idx);") == "none");
  Spec precise = spec();
  precise.precise_math = true;
  CHECK(reduce(tree("score + slopes[h] * (kv_idx - q_idx)"), precise).slope_sign == 0);
  precise.precise_math = false;
  CHECK(reduce(tree("score + slopes[h] * (kv_idx - q_idx)"), precise).slope_sign == 1);
}

TEST_CASE("snippet facts: one form for all spellings") {
  const auto form = [](const std::string& text) {
    const ScoreReduction found = reduction(text);
    return std::to_string(found.slope_sign) + " " + to_text(found.rest);
  };
  const std::string alibi = "1 slopes[h]";
  for (const char* text :
       {"(score + (slopes[h] * (kv_idx - q_idx)))", "slopes[h] * (kv_idx - q_idx) + score",
        "score + (kv_idx - q_idx) * slopes[h]", "score + slopes[h] * (float)(kv_idx - q_idx)",
        "return score + slopes(h) * (-q_idx + kv_idx);",
        "int d = kv_idx - q_idx; return score + slopes[h] * d;",
        "const float s = slopes[h], d = kv_idx - q_idx; float x = s * d; x += score; return x;",
        "float x = score; x = x + slopes[int(h)] * float(int(kv_idx - q_idx)); return x;"}) {
    INFO(text);
    CHECK(form(text) == alibi);
  }
}

TEST_CASE("snippet trees: versions of a local take names that nothing else has") {
  const auto simple = [](const std::string& text) { return to_text(simplified(tree(text))); };
  CHECK(simple("float x = score; x = x * x; return x * x;") ==
        "float x_1 = score * score;\nreturn x_1 * x_1;");
  CHECK(simple("float y = score, x_1 = 2, x = 1; y = y + cap; x = x + 3; return y + x + x_1;") ==
        "score + cap + (float(1) + 3) + 2");
  Spec other = spec();
  other.buffers["x_1"] = {.dtype = DType::f32, .shape = {}};
  const SnippetTree read =
      parse(SnippetKind::score_mod, "float x = score; x = x * x; return x * x + x_1;", other);
  CHECK(to_text(simplified(read)) == "float x_2 = score * score;\nreturn x_2 * x_2 + x_1;");
}

// Each local twice as large as the one before, a long chain of locals, and one of unused locals.
TEST_CASE("snippet trees: a text of hostile locals stays small and fast") {
  std::string doubles = "float x0 = score;\n", chain = "float x = score;\n";
  std::string unused = "float y0 = score;\n", doubled_index = "int i0 = kv_idx;\n";
  for (int i = 1; i <= 1500; ++i) {
    const std::string before = std::to_string(i - 1), now = std::to_string(i);
    doubles += "float x" + now + " = x" + before + " + x" + before + ";\n";
    doubled_index += "int i" + now + " = i" + before + " + i" + before + ";\n";
    chain += "x = x * cap + 1;\n";
    unused += "float y" + now + " = y" + before + " * 3;\n";
  }
  for (const std::string& text :
       {doubles + "return x1500;", chain + "return x;", unused + "return score;",
        doubled_index + "return score + bias[i1500] + bias[i3] + slopes[h] * i1500;"}) {
    REQUIRE(text.size() < kMaxSnippetBytes);
    const SnippetTree parsed = tree(text);
    REQUIRE(opaque(parsed) == nullptr);
    const SnippetTree simple = simplified(parsed);
    CHECK(size_of(simple) <= 2 * size_of(parsed));
    std::size_t longest = 0;
    for (const Statement& statement : simple.statements) {
      longest = std::max(longest, size_of(statement.value));
    }
    CHECK(longest <= 300);
    CHECK(find_facts(parsed, spec()).reads.size() <= 3);
    CHECK(reduce(parsed, spec()).slope_sign == 0);
  }
  CHECK(to_text(simplified(tree(unused + "return score;"))) == "score");
}

}  // namespace
