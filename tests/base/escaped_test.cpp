#include "base/escaped.hpp"

#include "base/error.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("escaped: what a terminal obeys is spelled out, and the rest stays readable") {
  const auto line = [](std::string_view text) { return escaped(text, Lines::escape); };
  CHECK(line("Gr\u00f6\u00dfe \u4e2d \U0001f600 \u0645") ==
        "Gr\u00f6\u00dfe \u4e2d \U0001f600 \u0645");
  CHECK(line("\x1b[31mred\x07\x7f") == "\\x1b[31mred\\x07\\u007f");
  CHECK(line(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(line("a\nb\tc\r") == "a\\nb c\\x0d");
  CHECK(line("\u0085\u009b") == "\\u0085\\u009b");
  CHECK(line("\u202e\u2066\u2069\u200f\u061c\ufeff\u2028") ==
        "\\u202e\\u2066\\u2069\\u200f\\u061c\\ufeff\\u2028");
  CHECK(line("\U000e0041") == "\\udb40\\udc41");
  CHECK(line("\xff\xc0\x80\xed\xa0\x80\xe2\x82") == "\\xff\\xc0\\x80\\xed\\xa0\\x80\\xe2\\x82");
  CHECK(escaped("a\n\tb\x1b", Lines::keep) == "a\n\tb\\x1b");
}

TEST_CASE("escaped: a long text loses its middle, between characters") {
  const std::string cut = escaped(std::string(1'000'000, 'x'), Lines::escape, 300);
  CHECK(cut.size() < 350);
  CHECK_THAT(cut, ContainsSubstring("... [999700 bytes] ..."));
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += "\u4e2d";
  CHECK_THAT(escaped(wide, Lines::escape, 100), !ContainsSubstring("\\x"));
  CHECK(escaped(std::string(1000, '\x1b'), Lines::escape, 300).size() < 700);
}

TEST_CASE("error: whatever comes from outside, a report is printable and short") {
  const std::string evil = "\x1b]0;owned\x07\u202e\xff";
  const std::string size(1 << 20, 'y');
  const Error error({.code = ErrorCode::file,
                     .message = "tensor \"" + evil + size + "\" is wrong",
                     .place = SourceLocation{evil, 1, 3, "ab" + evil + size},
                     .notes = {evil + "\nsecond line"},
                     .hint = evil});
  for (const std::string& text : {std::string(error.what()), error.message(), error.hint()}) {
    CHECK_THAT(text, !ContainsSubstring("\x1b") && !ContainsSubstring("\x07") &&
                         !ContainsSubstring("\u202e") && !ContainsSubstring("\xff"));
    CHECK(text.size() < 5000);
  }
  CHECK_THAT(error.what(), ContainsSubstring("is wrong"));
  CHECK_THAT(error.what(), ContainsSubstring("\n        second line"));
}

TEST_CASE("error: the caret stands below its column behind wide characters and in long lines") {
  const auto report = [](std::string excerpt, int column) {
    return std::string(Error({.code = ErrorCode::spec,
                              .message = "m",
                              .place = SourceLocation{"f", 1, column, std::move(excerpt)},
                              .notes = {},
                              .hint = {}})
                           .what());
  };
  CHECK_THAT(report("\u00f6\u00f6x", 5), ContainsSubstring("   | \u00f6\u00f6x\n   |   ^"));
  const std::string cut = report(std::string(5000, 'a') + "b" + std::string(5000, 'c'), 5001);
  CHECK(cut.size() < 700);
  const std::size_t caret = cut.find('^') - cut.rfind("\n", cut.find('^'));
  const std::size_t marked = cut.find('b') - cut.rfind("\n", cut.find('b'));
  CHECK(caret == marked);
}
