#include "generator/snippet/splice.hpp"

#include <string>

#include "generator/render/source_map.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

jinja::Splice splice(const std::string& text, LiteralType type = LiteralType::f32) {
  return splice_snippet(check_snippet(SnippetKind::score_mod, text), type);
}

std::string text_of(const jinja::Splice& splice) {
  std::string text;
  for (const auto& piece : splice.pieces) text += piece.text;
  return text;
}

// The map of a splice that is rendered at the start of a text.
SourceMap map_of(const jinja::Splice& splice) {
  SourceMap map;
  int line = 1, column = 1;
  for (const auto& piece : splice.pieces) {
    map.add(line, column, {splice.origin, piece.line, piece.column, true}, piece.verbatim);
    for (char c : piece.text) {
      column = c == '\n' ? 1 : column + 1;
      line += c == '\n' ? 1 : 0;
    }
  }
  return map;
}

}  // namespace

TEST_CASE("splice: an expression stands in parentheses on lines of its own") {
  const auto result = splice("score * 2 // twice");
  CHECK(text_of(result) == "return (\nscore * 2 // twice\n);\n");
  CHECK(result.origin == "score_mod");
}

TEST_CASE("splice: a body is copied and ends its line") {
  CHECK(text_of(splice("return score;")) == "return score;\n");
  CHECK(text_of(splice("float x = 1; // one\nreturn score + x;\n")) ==
        "float x = 1; // one\nreturn score + x;\n\n");
}

TEST_CASE("splice: floating literals without a suffix get the score's type") {
  const std::string text = "score * 0.5 + 1e-3 + 0x1p-4 + 1'0.2'5 + 3. + .5f + 1 + 0x1e3 + '0'";
  CHECK(text_of(splice(text)) ==
        "return (\nscore * 0.5f + 1e-3f + 0x1p-4f + 1'0.2'5f + 3.f + .5f + 1 + 0x1e3 + '0'\n);\n");
  CHECK(text_of(splice(text, LiteralType::f64)) == "return (\n" + text + "\n);\n");
  CHECK(text_of(splice("/* 0.5 */ score + \"0.5\"[0] // 0.5")) ==
        "return (\n/* 0.5 */ score + \"0.5\"[0] // 0.5\n);\n");
}

TEST_CASE("splice: every letter maps back to itself, also behind inserted letters") {
  const std::string text =
      GENERATE("score * 0.5 + 1e-3 * h", "float x = 0.5;\n\n  return x * 2.0 + h;", "0.5",
               "score +\r\n 0.25", "return 1.5;\n");
  const auto result = splice(text);
  const SourceMap map = map_of(result);
  const std::string rendered = text_of(result);
  std::vector<std::string> lines = {""};
  for (char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  std::size_t checked = 0;
  int line = 1, column = 1;
  for (const char c : rendered) {
    const Origin origin = map.origin_of(line, column);
    REQUIRE(origin.in_snippet);
    const auto row = static_cast<std::size_t>(origin.line) - 1;
    const auto at = static_cast<std::size_t>(origin.column) - 1;
    if (row < lines.size() && at < lines[row].size() && lines[row][at] == c) ++checked;
    column = c == '\n' ? 1 : column + 1;
    line += c == '\n' ? 1 : 0;
  }
  std::size_t letters = 0;
  for (const std::string& text_line : lines) letters += text_line.size();
  CHECK(checked >= letters);
}

TEST_CASE("splice: what is put around a snippet maps to its start and its end") {
  const SourceMap map = map_of(splice("score\n + 0.5"));
  CHECK(map.origin_of(1, 3) == Origin{"score_mod", 1, 1, true});
  CHECK(map.origin_of(2, 3) == Origin{"score_mod", 1, 3, true});
  CHECK(map.origin_of(3, 6) == Origin{"score_mod", 2, 6, true});
  CHECK(map.origin_of(3, 7) == Origin{"score_mod", 2, 7, true});
  CHECK(map.origin_of(4, 1) == Origin{"score_mod", 2, 7, true});
}
