#include "generator/hoisted_reads.hpp"

#include <string>
#include <vector>

#include "generator/snippet_splice.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

Spec spec() {
  Spec spec{.dtype = f32, .head_dim = 64};
  spec.buffers["doc"] = {i32, {NamedDim::batch, NamedDim::kv_len}};
  spec.buffers["slopes"] = {f32, {NamedDim::num_q_heads}};
  spec.buffers["gain"] = {f32, {}};
  spec.buffers["weight"] = {f16, {}, Bounds::trusted};
  spec.buffers["raw"] = {f32, {FreeDim{}}, Bounds::trusted};
  return spec;
}

struct Result {
  std::string text;
  std::vector<HoistedRead> reads;
  jinja::Splice splice;
};

Result hoist(const std::string& text) {
  const Snippet snippet = check_snippet(SnippetKind::score_mod, text);
  Result result;
  result.splice = HoistedReads(snippet, spec(), result.reads)
                      .replace_in(splice_snippet(snippet, LiteralType::f32));
  for (const jinja::Splice::Piece& piece : result.splice.pieces) result.text += piece.text;
  return result;
}

bool is_untouched(const std::string& text) {
  return hoist(text).reads.empty();
}

}  // namespace

TEST_CASE("hoisted reads: a read of plain indices is replaced, once for each") {
  const Result result =
      hoist("return doc(b, q_idx) == doc(b,kv_idx) && doc( b , q_idx ) > 0 ? 0.5 * slopes[h] : 1;");
  CHECK(result.text ==
        "return tw_reads.tw_read_0 == tw_reads.tw_read_1 && tw_reads.tw_read_0 > 0 ? 0.5f * "
        "tw_reads.tw_read_2 : 1;\n");
  REQUIRE(result.reads.size() == 3);
  CHECK(result.reads[0].indices == "b, q_idx");
  CHECK(result.reads[0].names_q_idx);
  CHECK(!result.reads[0].names_kv_idx);
  CHECK(!result.reads[1].names_q_idx);
  CHECK(result.reads[1].names_kv_idx);
  CHECK(result.reads[2].buffer == "slopes");
}

TEST_CASE("hoisted reads: a buffer without dimensions is read by its name, trusted or not") {
  const Result result = hoist("score * gain + gain + (weight - 1)");
  CHECK_THAT(result.text,
             Catch::Matchers::ContainsSubstring("score * tw_reads.tw_read_0 + "
                                                "tw_reads.tw_read_0 + (tw_reads.tw_read_1 - 1)"));
  REQUIRE(result.reads.size() == 2);
  CHECK(result.reads[0].buffer == "gain");
  CHECK(result.reads[0].indices.empty());
  CHECK(!result.reads[0].names_q_idx);
  CHECK(!result.reads[0].names_kv_idx);
}

TEST_CASE("hoisted reads: pieces keep their places in the snippet") {
  const Result result = hoist("float x = 0.5;\nreturn x + slopes[h] + score;");
  const auto& pieces = result.splice.pieces;
  bool found = false;
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
    if (pieces[i].verbatim) continue;
    if (pieces[i].text.find("tw_reads.") == std::string::npos) continue;
    found = true;
    CHECK(pieces[i].line == 2);
    CHECK(pieces[i].column == 12);
    CHECK(pieces[i + 1].line == 2);
    CHECK(pieces[i + 1].column == 21);
    CHECK(pieces[i + 1].text == " + score;");
  }
  CHECK(found);
}

TEST_CASE("hoisted reads: what differs from lane to lane, or may be guarded, stays") {
  CHECK(is_untouched("slopes[kv_idx - q_idx]"));
  CHECK(is_untouched("slopes[h + 1]"));
  CHECK(is_untouched("doc(q_idx, kv_idx)"));
  CHECK(is_untouched("raw[h]"));
  CHECK(is_untouched("slopes.size(0)"));
  CHECK(is_untouched("int x = 3; return slopes[x];"));
  // The wrong number of indices is the compiler's to report, at its place.
  CHECK(is_untouched("doc[b]"));
  CHECK(is_untouched("slopes(h, b)"));
}

TEST_CASE("hoisted reads: none where a name may mean something else") {
  CHECK(is_untouched("int h = 3; return slopes[h];"));
  CHECK(is_untouched("int x = 1, h = 2; return slopes[h];"));
  CHECK(is_untouched("int x = 1, h; h = x; return slopes[h];"));
  CHECK(is_untouched("auto f = [&](int h) { return slopes[h]; }; return f(2);"));
  CHECK(is_untouched("const auto& h = q_idx; return slopes[h];"));
  CHECK(is_untouched("for (int b = 0; b < 2; ++b) score += doc(b, kv_idx); return score;"));
  CHECK(is_untouched("int w[2] = {1, 2}; auto [x, h] = w; return slopes[h];"));
  CHECK(is_untouched("auto f = [slopes, h](float t) { return t * slopes[h]; }; return f(score);"));
  CHECK(is_untouched("return [slopes, h](float t) { return t * slopes[h]; }(score);"));
  for (const char* declared :
       {"for (int i = 0, h(1); i < 2; ++i) x += slopes[h];",
        "for (int i = 0, h{1}; i < 2; ++i) x += slopes[h];",
        "for (int h(1), i = 0; i < 2; ++i) x += slopes[h];",
        "for (int i = 0, h; i < 2; ++i) { h = 1; x += slopes[h]; }",
        "if (int i = 0, h(1); i < 2) x += slopes[h];", "int (h) = 2; x = slopes[h];",
        "int ((h)) = 2; x = slopes[h];", "int (h){2}; x = slopes[h];", "int (h)(2); x = slopes[h];",
        "const int (h)(2); x = slopes[h];", "for (int (h)(2); x < 1;) x += slopes[h];",
        "using t = int; t (h)(2); x = slopes[h];",
        "x = max(1, [&] { int i = 1, h(2); return slopes[h] + i; }());"}) {
    CAPTURE(declared);
    CHECK(is_untouched("float x = 0; " + std::string(declared) + " return x;"));
  }
  CHECK(!is_untouched("exp2(h) * slopes[h] + (h ? score : float(h))"));
  CHECK(!is_untouched("float x = float(h) + (h); if (h) x = slopes[h]; return x;"));
  CHECK(
      !is_untouched("for (int i = max(q_idx, h), j = (h); i < 2; ++i) score += slopes[h];"
                    "return score;"));
  CHECK(!is_untouched("auto f = [&](float t) { return t * slopes[h]; }; return f(score);"));
  CHECK(!is_untouched("auto f = [=](float t) { return t * slopes[h]; }; return f(score);"));
  CHECK(!is_untouched("int w[2] = {1, 2}; return w[0] * slopes[h];"));
  CHECK(!is_untouched("float x = 2 * h; return slopes[h] * x;"));
  CHECK(!is_untouched("float x = max(q_idx, h), y = slopes[h]; return x * y;"));
}

TEST_CASE("hoisted reads: whether a snippet reads for whole heads only") {
  const auto for_heads = [](const std::string& text) {
    return reads_for_heads_only(check_snippet(SnippetKind::score_mod, text), spec());
  };
  CHECK(for_heads("score + slopes[h] * (kv_idx - q_idx)"));
  CHECK(for_heads("slopes[h] > 0.5 ? score * slopes[h] : score"));
  CHECK(!for_heads("score"));
  CHECK(!for_heads("score + slopes[h] * doc(b, kv_idx)"));
  CHECK(!for_heads("score + slopes[h] + slopes[h + 1]"));
  CHECK(!for_heads("score + raw[h]"));
}
