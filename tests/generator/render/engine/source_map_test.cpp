#include "generator/render/source_map.hpp"

#include "tests/generator/origin_printer.hpp"
#include "tests/generator/render/engine/support.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::jinja;
using tilewright::Origin;

namespace {

// The n-th line of a text, from 1.
std::string line_of(const std::string& text, int number) {
  std::size_t begin = 0;
  for (int i = 1; i < number; ++i) begin = text.find('\n', begin) + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

// Every letter of the rendered text that was copied must be the letter that its origin names.
void check_verbatim(const std::string& source, const Rendered& rendered, char marker) {
  int line = 1;
  int column = 1;
  for (const char c : rendered.text) {
    const Origin origin = rendered.map.origin_of(line, column);
    if (c == marker) {
      CHECK(line_of(source, origin.line).at(static_cast<std::size_t>(origin.column - 1)) == c);
    }
    column = c == '\n' ? 1 : column + 1;
    line += c == '\n' ? 1 : 0;
  }
}

}  // namespace

TEST_CASE("jinja source map: literal text maps letter by letter, a value to its expression") {
  const Rendered rendered = test::render_text(
      "{% set n = 12345 %}\n"
      "int x = {{ n }}; int y;\n"
      "   {% if true %}\n"
      "  deep {{ n ~ '\\nz' }} after\n"
      "   {% endif %}\n",
      {});
  REQUIRE(rendered.text == "int x = 12345; int y;\n  deep 12345\nz after\n");
  const auto at = [&](int line, int column) { return rendered.map.origin_of(line, column); };
  CHECK(at(1, 1) == Origin{"t.jinja", 2, 1});
  CHECK(at(1, 9) == Origin{"t.jinja", 2, 12});
  CHECK(at(1, 13) == Origin{"t.jinja", 2, 12});
  CHECK(at(1, 14) == Origin{"t.jinja", 2, 16});
  CHECK(at(2, 1) == Origin{"t.jinja", 4, 1});
  CHECK(at(2, 4) == Origin{"t.jinja", 4, 4});
  CHECK(at(2, 8) == Origin{"t.jinja", 4, 11});
  CHECK(at(3, 1) == Origin{"t.jinja", 4, 11});
  CHECK(at(3, 3) == Origin{"t.jinja", 4, 24});
}

TEST_CASE("jinja source map: trimmed white space does not shift what follows") {
  const std::string source =
      "#a\n   {% if true %}   #b {{ 1 }}  #c\n  {# c #}\n #d{% endif %}\n#e\r\n#f{% if true %}"
      "#g\n  {% endif %}#h";
  check_verbatim(source, test::render_text(source, {}), '#');
  CHECK(test::text_of(source).find("#h") != std::string::npos);
}

TEST_CASE("jinja source map: included text belongs to its own file") {
  const MapLoader loader(
      {{"a", "one\n{% include 'b' %}\nthree\n"}, {"b", "{# #}two\nand a half\n"}});
  const Rendered rendered = render(loader, "a", {});
  REQUIRE(rendered.text == "one\ntwo\nand a half\nthree\n");
  CHECK(rendered.map.origin_of(1) == Origin{"a", 1, 1});
  CHECK(rendered.map.origin_of(2) == Origin{"b", 1, 6});
  CHECK(rendered.map.origin_of(3, 5) == Origin{"b", 2, 5});
  CHECK(rendered.map.origin_of(4, 2) == Origin{"a", 3, 2});
}

TEST_CASE("jinja source map: a splice keeps the indentation of its place, and its own positions") {
  const Splice splice{"score_mod", {{"if (x) {\n  y;\n\n}", 3, 7, true}}};
  const Rendered rendered =
      test::render_text("f() {\n    {{ body }} // end\n}\n", {{"body", splice}});
  REQUIRE(rendered.text == "f() {\n    if (x) {\n      y;\n\n    } // end\n}\n");
  const auto at = [&](int line, int column) { return rendered.map.origin_of(line, column); };
  CHECK(at(2, 4) == Origin{"t.jinja", 2, 4});
  CHECK(at(2, 5) == Origin{"score_mod", 3, 7, true});
  CHECK(at(2, 12) == Origin{"score_mod", 3, 14, true});
  CHECK(at(3, 1) == Origin{"t.jinja", 2, 8});
  CHECK(at(3, 5) == Origin{"score_mod", 4, 1, true});
  CHECK(at(3, 7) == Origin{"score_mod", 4, 3, true});
  CHECK(at(4, 1) == Origin{"score_mod", 5, 1, true});
  CHECK(at(5, 5) == Origin{"score_mod", 6, 1, true});
  CHECK(at(5, 6) == Origin{"t.jinja", 2, 15});
  CHECK(at(3, 0).in_snippet);
  CHECK(at(4, 0) == Origin{"score_mod", 5, 1, true});
  CHECK(at(5, 0) == Origin{"score_mod", 6, 1, true});
  CHECK(at(6, 0) == Origin{"t.jinja", 3, 1});
}

TEST_CASE("jinja source map: pieces of a splice that were rewritten map to their start") {
  const Splice splice{"mask_mod",
                      {{"a + ", 1, 1, true},
                       {"TW_LITERAL(1.5)\n+ 0", 1, 5, false},
                       {" + b;\nreturn c;", 1, 8, true}}};
  const Rendered rendered = test::render_text("  x = {{ m }}", {{"m", splice}});
  REQUIRE(rendered.text == "  x = a + TW_LITERAL(1.5)\n  + 0 + b;\n  return c;");
  const auto at = [&](int line, int column) { return rendered.map.origin_of(line, column); };
  CHECK(at(1, 7) == Origin{"mask_mod", 1, 1, true});
  CHECK(at(1, 11) == Origin{"mask_mod", 1, 5, true});
  CHECK(at(1, 20) == Origin{"mask_mod", 1, 5, true});
  CHECK(at(2, 3) == Origin{"mask_mod", 1, 5, true});
  CHECK(at(2, 6) == Origin{"mask_mod", 1, 8, true});
  CHECK(at(2, 10) == Origin{"mask_mod", 1, 12, true});
  CHECK(at(3, 3) == Origin{"mask_mod", 2, 1, true});
  CHECK(at(3, 10) == Origin{"mask_mod", 2, 8, true});
}

TEST_CASE("jinja source map: a splice can be set, passed on and indented by tabs") {
  const Splice splice{"score_mod", {{"a;\nb;\n", 1, 1, true}}};
  const Rendered rendered = test::render_text("{% set s = m %}\n\t{{ s }}end", {{"m", splice}});
  CHECK(rendered.text == "\ta;\n\tb;\nend");
  CHECK(rendered.map.origin_of(2, 2) == Origin{"score_mod", 2, 1, true});
  CHECK(rendered.map.origin_of(3, 1) == Origin{"t.jinja", 2, 9});
}
