#include "generator/snippet/facts.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "generator/snippet/parse.hpp"
#include "generator/snippet/print.hpp"
#include "generator/snippet/reduce.hpp"
#include "generator/snippet/rewrite.hpp"
#include "generator/snippet/spec_facts.hpp"
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

std::string by_sums(const std::string& text) {
  std::string all;
  for (const BufferRead& read : reads_by_sums(facts(text))) all += read.buffer + " ";
  return all;
}

TEST_CASE("snippet facts: reads that kernels of gradients do without bounds") {
  CHECK(by_sums("score + bias[kv_idx - q_idx]") == "bias ");
  CHECK(by_sums("score + slopes[h] * bias[kv_idx - q_idx]") == "slopes bias ");
  CHECK(by_sums("score + slopes[h]").empty());
  CHECK(by_sums("score + bias[clamp(kv_idx - q_idx, 0, 5)]").empty());
  CHECK(by_sums("score + bias[kv_idx - q_idx] + bias[kv_idx * q_idx]").empty());
}

TEST_CASE("snippet facts: reads that a head, a row or a column shares") {
  CHECK(hoisted("score + slopes[h]") == "slopes(h) ");
  CHECK(hoisted("doc(b, q_idx) == doc((b), int(kv_idx)) ? score : 0") ==
        "doc(b, q_idx) doc(b, kv_idx) ");
  CHECK(hoisted("const int k = kv_idx; return score + doc(b, k);") == "doc(b, kv_idx) ");
  CHECK(hoisted("auto k = kv_idx; return score + doc(b, k);") == "doc(b, kv_idx) ");
  CHECK(hoisted("auto f = [=](int i) { return doc(b, q_idx) + i; }; return score + f(1);") ==
        "doc(b, q_idx) ");
  CHECK(hoisted("if (b) { int k = kv_idx; return score + doc(b, k); } else { int k = q_idx; return "
                "score - doc(b, k); }") == "doc(b, kv_idx) doc(b, q_idx) ");
  CHECK(hoisted("int k = 0; k = kv_idx; if (b) score = 0; return score + doc(b, k);") ==
        "doc(b, kv_idx) ");
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

// Each text would have every fast path if the statement that has no tree was another.
TEST_CASE("snippet facts: each fact of an opaque snippet is the cautious one") {
  for (const char* text :
       {"const int& k = kv_idx; return score + slopes[h] * (k - q_idx);",
        "auto& s = score; return 50 * tanh(s / 50) + doc(b, kv_idx);",
        "auto f = [&] { int k = kv_idx; return bias[k - q_idx]; }; return score + f();",
        "auto f = [=](auto i) { return bias[i - q_idx]; }; return score + f(kv_idx);",
        "do { score *= 2; } while (score < cap); return score + slopes[h] * (kv_idx - q_idx);",
        "for (int i = 0; i < 9; ++i) { if (i > h) continue; } return score + bias[kv_idx - q_idx];",
        "int d[1] = {kv_idx - q_idx}; return score + slopes[h] * d[0];",
        "unsigned d = kv_idx - q_idx; return score + slopes[h] * d;"}) {
    INFO(text);
    Spec given = spec();
    given.score_mod = text;
    const SpecFacts all(given);
    const SnippetFacts& unknown = all.score_mod->facts;
    CHECK(unknown.is_opaque);
    CHECK(unknown.reads.empty());
    CHECK(unknown.has_loop == (std::string(text).find("while") != std::string::npos ||
                               std::string(text).find("for") != std::string::npos));
    CHECK(unknown.divides);
    CHECK(unknown.needs_bounded_indices);
    CHECK(!unknown.takes_index_difference);
    CHECK(unknown.needs_plain_reads);
    CHECK(linear_reads(unknown).empty());
    CHECK(!all.is_reduced());
    CHECK(!all.has_slope());
    CHECK(!all.fixed_max());
    CHECK(all.linear_reads().empty());
    CHECK(all.score_mod_divides());
    const bool reads = all.score_mod->snippet.mentions("slopes") ||
                       all.score_mod->snippet.mentions("doc") ||
                       all.score_mod->snippet.mentions("bias");
    CHECK(all.score_mod_reads() == (reads ? ScoreModReads::more : ScoreModReads::none));
    for (const ScoreForm form :
         {ScoreForm::as_written, ScoreForm::simplified, ScoreForm::reduced}) {
      CHECK(all.printed(form) == nullptr);
      CHECK(&all.score_facts(form) == &unknown);
    }
    Spec masked = spec();
    masked.mask_mod = "const int& k = kv_idx; return q_idx >= k && doc(b, k) == 0;";
    CHECK(!SpecFacts(masked).may_prove_mask());
    CHECK(SpecFacts(masked).mask_mod_divides());
    CHECK(SpecFacts(masked).mask_mod_reads());
  }
}

TEST_CASE("snippet facts: a plain mask compares sums of integers in one short expression") {
  const auto is_plain = [](const std::string& mask_mod) {
    Spec masked = spec();
    masked.mask_mod = mask_mod;
    masked.scalars["window"] = {.dtype = DType::i32};
    masked.scalars["slant"] = {.dtype = DType::f32};
    return SpecFacts(masked).has_plain_mask();
  };
  CHECK(is_plain("q_idx >= kv_idx"));
  CHECK(is_plain("q_idx >= kv_idx && q_idx - kv_idx < window"));
  CHECK(is_plain("return !(kv_idx > q_idx) || kv_idx < 2 * h;"));
  CHECK(is_plain("q_idx / 128 == kv_idx / 128"));
  CHECK(!is_plain(""));
  CHECK(!is_plain("doc(b, q_idx) == doc(b, kv_idx)"));
  CHECK(!is_plain("slant * q_idx >= kv_idx"));
  CHECK(!is_plain("q_idx * kv_idx > 9"));
  CHECK(!is_plain("q_idx / window == kv_idx / window"));
  CHECK(!is_plain("(q_idx - kv_idx) % 4 == 0"));
  CHECK(!is_plain("abs(q_idx - kv_idx) < 9"));
  CHECK(!is_plain("h == 0 ? q_idx >= kv_idx : true"));
  CHECK(!is_plain("const int k = kv_idx; return q_idx >= k;"));
  std::string longer = "q_idx >= kv_idx";
  for (int i = 0; i < 16; ++i) longer += " && q_idx != 7";
  CHECK(!is_plain(longer));
}

TEST_CASE("snippet facts: loops, lambdas and auto leave only what is sure") {
  // What a loop or a branch changes has no value that is known.
  CHECK(hoisted("int k = kv_idx; for (int i = 0; i < 2; ++i) k += i; return score + doc(b, k);")
            .empty());
  CHECK(
      hoisted("int k = 0; while (k < 3) { k = k + 1; if (doc(b, k) > 0) score = 0; } return score;")
          .empty());
  CHECK(linear("int k = kv_idx; if (b) k = q_idx; return score + bias[k - q_idx];").empty());
  CHECK(facts("int d = 3; while (d > 0) { score = score + 7 / d; d = d - 1; } return score;")
            .needs_bounded_indices);
  // A lambda's parameter is not the variable that it is called with, and a reference sees what is
  // assigned after it.
  CHECK(hoisted("auto f = [=](int i) { return doc(b, i); }; return score + f(kv_idx);").empty());
  CHECK(linear("auto f = [=](int i) { return bias[i]; }; return score + f(kv_idx);").empty());
  CHECK(hoisted("int k = q_idx; auto f = [&](int i) { return doc(b, k) + i; }; k = 3 * b; return "
                "score + f(1);")
            .empty());
  CHECK(hoisted("int k = q_idx; auto f = [=](int i) { return doc(b, k) + i; }; k = 3 * b; return "
                "score + f(k);") == "doc(b, q_idx) ");
  // A loop may end early.
  CHECK(hoisted("int k = 0; for (int i = 0; i < 3; ++i) { if (k > q_idx) break; k += kv_idx; } "
                "return score + doc(b, q_idx) + k;") == "doc(b, q_idx) ");
  CHECK(
      hoisted("while (true) { if (q_idx > 3) { break; } break; } return score + doc(b, q_idx);") ==
      "doc(b, q_idx) ");
  CHECK(hoisted("if (b) break; return score + doc(b, q_idx);").empty());
  // Without captures a lambda knows its parameters alone.
  CHECK(hoisted("auto f = [](int i) { return 3 * i; }; return score + doc(b, q_idx) + f(1);") ==
        "doc(b, q_idx) ");
  // A type that is deduced is an index's class, or a read's.
  CHECK(facts("score + (kv_idx - q_idx)").takes_index_difference);
  CHECK(!facts("auto d = kv_idx - q_idx; return score + d;").takes_index_difference);
  CHECK(!facts("auto f = [=](int i) { return kv_idx - i; }; return score + (kv_idx - q_idx);")
             .takes_index_difference);
  CHECK(!facts("score + slopes[h]").needs_plain_reads);
  CHECK(facts("auto s = slopes[h]; return score + s;").needs_plain_reads);
  CHECK(facts("auto f = [=](float x) { return x; }; return f(slopes[h]);").needs_plain_reads);
  // No factor and no slope where not every score is the call's.
  for (const char* text :
       {"if (b) score = 0; return 50 * score;",
        "for (int i = 0; i < 2; ++i) score = score * 2; return 50 * tanh(score);",
        "if (b) score = 0; return score + slopes[h] * (kv_idx - q_idx);"}) {
    INFO(text);
    const ScoreReduction found = reduction(text);
    CHECK((found.of_score.is_one() && found.slope_sign == 0));
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
  const auto nodes = [](const SnippetTree& tree) {
    std::size_t count = 0;
    for_each_node(tree.statements, [&](const Expression&) { ++count; });
    return count;
  };
  for (const std::string& text :
       {doubles + "return x1500;", chain + "return x;", unused + "return score;",
        doubled_index + "return score + bias[i1500] + bias[i3] + slopes[h] * i1500;"}) {
    REQUIRE(text.size() < kMaxSnippetBytes);
    const SnippetTree parsed = tree(text);
    REQUIRE(opaque(parsed) == nullptr);
    const SnippetTree simple = simplified(parsed);
    CHECK(nodes(simple) <= 2 * nodes(parsed));
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

// What a kernel has in its place must not take the assignment with it.
TEST_CASE("facts: a hoisted read's range is its own text, wherever it stands") {
  for (const std::string text :
       {"float x = @; return score + x;", "float x = 1; x = @; return score + x;",
        "float x = 1; if (q_idx > 3) { x = @; } return score + x;",
        "float x = 1; if (q_idx > 3) x = (@); return score + x;",
        "float x = 1; if (q_idx > 3) x += @; return score + x;",
        "float x = 1; if (q_idx > 3) x = -@; return score + x;",
        "float x = 1; x *= 2 + @; return score + x;", "return q_idx > 3 ? @ : score;"}) {
    std::string whole = text;
    const std::size_t begin = text.find('@');
    whole.replace(begin, 1, "slopes[h]");
    CAPTURE(whole);
    const std::vector<BufferRead> reads = facts(whole).reads;
    REQUIRE(reads.size() == 1);
    CHECK(reads[0].is_hoistable);
    CHECK(whole.substr(reads[0].range.begin, reads[0].range.end - reads[0].range.begin) ==
          "slopes[h]");
  }
}

}  // namespace
