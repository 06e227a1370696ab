// Wrong templates: what is said, where it points, and through which includes one came there.
#include "base/error.hpp"

#include <stdexcept>

#include "tests/generator/render/engine/support.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::jinja;
using Catch::Matchers::ContainsSubstring;
using tilewright::Error;
using tilewright::ErrorCode;

namespace {

struct WrongTemplate {
  const char* text;
  int line;
  int column;
  const char* message;  // a part of it
  const char* hint;     // a part of it; "" where there is none
};

const Map& context() {
  static const Map map = {
      {"num_stages", 2},
      {"tile", Map{{"q", 64}, {"kv", 128}}},
      {"list", List{1, 2, 3}},
      {"text", "abc"},
      {"nothing", Value()},
      {"infinity", 1e308 * 10},
      {"splice", Splice{"score_mod", {{"a", 1, 1, true}}}},
      {"call", Function([](const Arguments&) -> Value { throw std::invalid_argument("refused"); })},
  };
  return map;
}

MapLoader one_template(const std::string& text) {
  return MapLoader(std::map<std::string, std::string>{{"t.jinja", text}});
}

Error error_of(const Loader& loader, const std::string& name) {
  try {
    render(loader, name, context());
  } catch (const Error& error) {
    return error;
  }
  throw std::logic_error("no error was thrown");
}

void check_all(const std::vector<WrongTemplate>& wrong) {
  for (const WrongTemplate& expected : wrong) {
    INFO(expected.text);
    const Error error = error_of(one_template(expected.text), "t.jinja");
    INFO(error.what());
    CHECK(error.code() == ErrorCode::kernel_template);
    REQUIRE(error.place());
    CHECK(error.place()->file == "t.jinja");
    CHECK(error.place()->line == expected.line);
    CHECK(error.place()->column == expected.column);
    CHECK_THAT(error.message(), ContainsSubstring(expected.message));
    CHECK_THAT(error.hint(), ContainsSubstring(expected.hint));
    CHECK(error.hint().empty() == (*expected.hint == '\0'));
  }
}

}  // namespace

TEST_CASE("jinja errors: tags that are not closed or not opened") {
  check_all({
      {"a\n b {{ x", 2, 4, "this `{{` is never closed", "write `}}`"},
      {"{% if x", 1, 1, "this `{%` is never closed", "write `%}`"},
      {"a\n{# b\nc", 2, 1, "this `{#` is never closed", "`#}`"},
      {"a {% raw %} b", 1, 3, "{% raw %} is never closed", "endraw"},
      {"{{ 'abc }}", 1, 4, "string is never closed", "'"},
      {"x\n{% if true %}\ny\n", 2, 4, "this `if` is never closed", "endif"},
      {"{% for x in list %}{{ x }}", 1, 4, "this `for` is never closed", "endfor"},
      {"{% if true %}{% for x in list %}{% endif %}", 1, 36, "expected `endfor`, found `endif`",
       "the `for` of line 1 is still open"},
      {"{% if true %}\n{% endfor %}", 2, 4, "expected `endif`, found `endfor`", "`if` of line 1"},
      {"a {% endif %}", 1, 6, "`endif` closes nothing", "missing"},
      {"{% else %}", 1, 4, "`else` closes nothing", "missing"},
      {"{% if true %}{% else %}{% else %}{% endif %}", 1, 27, "expected `endif`, found `else`",
       "still open"},
      {"{% if true %}{% else %}{% elif true %}{% endif %}", 1, 27, "expected `endif`, found `elif`",
       "still open"},
      {"{% for x in list %}{% elif true %}{% endfor %}", 1, 23, "expected `endfor`, found `elif`",
       "still open"},
      {"a {% endraw %}", 1, 6, "`endraw` closes nothing", "{% raw %} is missing"},
  });
}

TEST_CASE("jinja errors: tags that do not exist") {
  check_all({
      {"{% fro x in list %}", 1, 4, "no tag is called \"fro\"", "did you mean \"for\""},
      {"{% elseif x %}", 1, 4, "no tag is called \"elseif\"", "`elif`"},
      {"{% xyzzy %}", 1, 4, "no tag is called \"xyzzy\"", "tags are"},
      {"{% macro f() %}", 1, 4, "the tag `macro` of Jinja is not supported", "docs/templates.md"},
      {"{% %}", 1, 4, "expected a tag's name, found `%}`", ""},
      {"{% if true %}{% else if false %}{% endif %}", 1, 22, "after `else`", "write `elif`"},
      {"{% set x %}1{% endset %}", 1, 10, "around a block is not supported", "name = value"},
      {"{% set tile.q = 1 %}", 1, 12, "an attribute cannot be set", "never change"},
      {"{% set loop = 1 %}", 1, 8, "`loop` cannot be set", ""},
      {"{% for x, x in list %}{% endfor %}", 1, 11, "`x` is set twice", ""},
      {"{% for 3 in list %}{% endfor %}", 1, 8, "expected a loop variable's name, found `3`", ""},
      {"{% for x of list %}{% endfor %}", 1, 10, "expected `in`, found `of`", "for x in items"},
      {"{% for x in list recursive %}{% endfor %}", 1, 18, "recursive", ""},
      {"{% include 'a' ignore missing %}", 1, 16, "`ignore` is not supported", "must exist"},
  });
}

TEST_CASE("jinja errors: expressions that do not parse") {
  check_all({
      {"{{ }}", 1, 4, "expected an expression, found `}}`", "{ {"},
      {"{{ 1 + }}", 1, 8, "expected an expression, found `}}`", "{ {"},
      {"{{ 1 2 }}", 1, 6, "expected `}}`, found `2`", ""},
      {"{% if num_stages = 2 %}{% endif %}", 1, 18, "expected `%}`, found `=`", "`==` compares"},
      {"{{ num_stages && 1 }}", 1, 15, "`&` is no operator", "write `and`"},
      {"{{ num_stages || 1 }}", 1, 16, "expected a filter's name after `|`, found `|`", ""},
      {"{{ !num_stages }}", 1, 4, "`!` is no operator", "`not`"},
      {"{{ num_stages ? 1 : 2 }}", 1, 15, "`?` is no operator", "if condition else"},
      {"{{ (1 }}", 1, 7, "expected `)`, found `}}`", ""},
      {"{{ [1, 2 }}", 1, 10, "expected `,`, found `}}`", ""},
      {"{{ 1) }}", 1, 5, "`)` closes nothing", ""},
      {"{{ list[0 }}", 1, 11, "expected `]`, found `}}`", ""},
      {"{{ list[0:2:1] }}", 1, 12, "expected `]`, found `:`", "steps"},
      {"{{ tile. }}", 1, 10, "expected a name after `.`", ""},
      {"{{ else }}", 1, 4, "expected an expression, found `else`", ""},
      {"{{ 1 not 2 }}", 1, 10, "expected `in`, found `2`", "`not in`"},
      {"{{ 'a\\q' }}", 1, 4, "unknown escape", "write \\\\"},
      {"{{ 99999999999999999999 }}", 1, 4, "does not fit in 64 bits", ""},
      {"{{ 1e999 }}", 1, 4, "out of a double's range", ""},
      {"{{ 007 }}", 1, 4, "leading zero", "0o17"},
      {"{{ 0xg }}", 1, 4, "is no number", ""},
      {"{{ call(a=1, a=2) }}", 1, 14, "\"a\" is given twice", ""},
      {"{{ call(a=1, 2) }}", 1, 14, "positional argument follows", ""},
      {"{{ call(*list) }}", 1, 9, "unpacking arguments", "one by one"},
      {"{{ x \xc3\xa4 }}", 1, 6, "unexpected byte 0xc3", ""},
      {"{{ x $ }}", 1, 6, "unexpected character `$`", ""},
  });
}

TEST_CASE("jinja errors: C++ braces get the hint to part them") {
  check_all({
      {"int a[2][2] = {{1,2},{3,4}};", 1, 18, "expected `}}`, found `,`", "{ {"},
      {"\nint a[1][2] = {{ 1, 2 }};", 2, 19, "expected `}}`, found `,`", "{ {"},
      {"A a = {{}};", 1, 9, "expected an expression", "{ {"},
      {"auto f = {{ return; }};", 1, 19, "expected `}}`, found `;`", "{ {"},
      {"A a{{1}, {2}};", 1, 7, "`}` closes nothing", "{ {"},
      {"{{ {1, 2} }}", 1, 6, "expected `:`, found `,`", "{ {"},
      {"if (x) {{ y;", 1, 12, "expected `}}`, found `;`", "{ {"},
  });
}

TEST_CASE("jinja errors: what is undefined, with the nearest name") {
  check_all({
      {"ok\n  {{ num_stage }}", 2, 6, "\"num_stage\" is undefined", "did you mean \"num_stages\"?"},
      {"{{ zzz }}", 1, 4, "\"zzz\" is undefined", "variables are call, infinity, list"},
      {"{% if missing %}{% endif %}", 1, 7, "\"missing\" is undefined", "variables are"},
      {"{% set x = missing %}", 1, 12, "\"missing\" is undefined",
       ""
       "variables are"},
      {"{{ tile.qq }}", 1, 9, "the map has no \"qq\"", "its keys are kv, q"},
      {"{{ tile['width'] }}", 1, 9, "the map has no \"width\"", "its keys are kv, q"},
      {"{{ tile.q.z }}", 1, 11, "an int has no attribute \"z\"", ""},
      {"{{ missing.q }}", 1, 4, "\"missing\" is undefined", "variables are"},
      {"{{ missing.q is defined }}", 1, 4, "\"missing\" is undefined", "variables are"},
      {"{{ list[3] }}", 1, 9, "index 3 is outside a list of 3", ""},
      {"{{ list[-4] }}", 1, 9, "index -4 is outside a list of 3", ""},
      {"{{ 'a' if false }}", 1, 8, "has no `else`", "add an `else`"},
      {"{{ loop.index }}", 1, 4, "\"loop\" is undefined", "inside {% for %}"},
      {"{% for x in list %}{{ loop.indx }}{% endfor %}", 1, 28, "the map has no \"indx\"",
       "did you mean \"index\"?"},
      {"{% for x in list %}{{ loop.previtem }}{% endfor %}", 1, 28, "no \"previtem\"",
       ""
       "its keys"},
      {"{% for x in list %}{% endfor %}{{ x }}", 1, 35, "\"x\" is undefined", "variables are"},
      {"{{ text|uper }}", 1, 9, "no filter is called \"uper\"", "did you mean \"upper\"?"},
      {"{% if false %}{{ text|zzzzzzzz }}{% endif %}", 1, 23, "no filter is called", "filters are"},
      {"{{ 1 is evn }}", 1, 9, "no test is called \"evn\"", "did you mean \"even\"?"},
      {"{{ tile.itmes() }}", 1, 9, "a map has no method \"itmes\"", "did you mean \"items\"?"},
      {"{{ text.title() }}", 1, 9, "a string has no method \"title\"", "methods are"},
      {"{{ range }}", 1, 4, "\"range\" is undefined", "range(8)"},
  });
}

TEST_CASE("jinja errors: types are never converted silently") {
  check_all({
      {"{{ 1 + 'a' }}", 1, 6, "`+` cannot take an int and a string", "`~`"},
      {"{{ true + 1 }}", 1, 9, "`+` cannot take a bool and an int",
       ""
       "convert"},
      {"{{ 'a' * 3 }}", 1, 8, "`*` cannot take a string and an int", "convert"},
      {"{{ 'a' < 1 }}", 1, 8, "`<` cannot compare a string with an int", "convert"},
      {"{{ 1 == '1' }}", 1, 6, "`==` cannot compare an int with a string", "convert"},
      {"{{ 1 == true }}", 1, 6, "`==` cannot compare an int with a bool", "convert"},
      {"{{ nothing == 1 }}", 1, 12, "`==` cannot compare none with an int", "is none"},
      {"{{ 1 < 2 < 'a' }}", 1, 10, "`<` cannot compare an int with a string", "convert"},
      {"{{ 1 in 5 }}", 1, 6, "`in` cannot look for an int in an int", "takes a list"},
      {"{{ 1 in 'abc' }}", 1, 6, "`in` cannot look for an int in a string", "takes a list"},
      {"{{ -text }}", 1, 4, "`-` needs a number and got a string", ""},
      {"{{ list['a'] }}", 1, 9, "a list cannot be indexed by a string", "takes an int"},
      {"{{ text[0] }}", 1, 9, "a string cannot be indexed", "takes an int"},
      {"{{ {1: 2} }}", 1, 5, "a map's key is a string and not an int", "{ {"},
      {"{% for x in 5 %}{% endfor %}", 1, 13, "a loop needs a list and got an int", "range"},
      {"{% for x in text %}{% endfor %}", 1, 13, "a loop needs a list and got a string", ""},
      {"{% for x in 1 + 2 %}{% endfor %}", 1, 13, "a loop needs a list and got an int", "range"},
      {"{% set a, b = 1 + 2 %}", 1, 15, "2 names need a list of 2 and got an int", ""},
      {"{% for a, b in list %}{% endfor %}", 1, 16, "2 names need a list of 2 and got an int", ""},
      {"{% set a, b = 1, 2, 3 %}", 1, 15, "2 names need a list of 2 and got a list of 3", ""},
      {"{{ list }}", 1, 4, "a list cannot be printed", "join"},
      {"{{ tile }}", 1, 4, "a map cannot be printed", "items()"},
      {"{{ nothing }}", 1, 4, "none cannot be printed", "is none"},
      {"{{ call }}", 1, 4, "a function cannot be printed", "parentheses"},
      {"{{ 'a' ~ splice }}", 1, 10, "a splice cannot be printed", "by itself"},
      {"{{ splice|indent }}", 1, 11, "needs a string and got a splice", "by itself"},
      {"{{ infinity }}", 1, 4, "inf has no C++ literal", "cpp_float"},
      {"{{ text() }}", 1, 4, "a string cannot be called", ""},
      {"{{ call() }}", 1, 4, "refused", ""},
      {"{% include 5 %}", 1, 12, "a template's name is a string and not an int", ""},
  });
}

TEST_CASE("jinja errors: arithmetic that has no exact result") {
  check_all({
      {"{{ 7 / 2 }}", 1, 6, "7 / 2 is not exact", "`//`"},
      {"{{ 1 // 0 }}", 1, 6, "division by zero", ""},
      {"{{ 1.0 / 0 }}", 1, 8, "division by zero", ""},
      {"{{ 5 % 0 }}", 1, 6, "division by zero", ""},
      {"{{ 9223372036854775807 + 1 }}", 1, 24, "does not fit in 64 bits", ""},
      {"{{ 3037000500 * 3037000500 }}", 1, 15, "does not fit in 64 bits", ""},
      {"{{ 2 ** 63 }}", 1, 6, "2 ** 63 does not fit in 64 bits", ""},
      {"{{ 2 ** -1 }}", 1, 6, "2 ** -1 is not an integer", "2.0"},
      {"{{ (-9223372036854775807 - 1) // -1 }}", 1, 31, "does not fit", ""},
      {"{{ -(-9223372036854775807 - 1) }}", 1, 4, "does not fit in 64 bits", ""},
      {"{{ -2.0 ** 0.5 }}", 1, 9, "is not a real number", ""},
  });
}

TEST_CASE("jinja errors: filters and tests check what they get") {
  check_all({
      {"{{ 5|upper }}", 1, 6, "the filter upper needs a string and got an int", ""},
      {"{{ text|upper(1) }}", 1, 9, "takes at most 0 arguments and got 1", ""},
      {"{{ text|indent(widht=2) }}", 1, 9, "no parameter \"widht\"", "did you mean \"width\"?"},
      {"{{ text|indent(2, width=2) }}", 1, 9, "got \"width\" twice", ""},
      {"{{ text|indent('x', 1) }}", 1, 9, "needs a bool as \"first\" and got an int", ""},
      {"{{ text|replace('a') }}", 1, 9, "needs \"new\"", ""},
      {"{{ text|replace('', 'b') }}", 1, 9, "empty string", ""},
      {"{{ text|int }}", 1, 9, "the filter int cannot read \"abc\"", ""},
      {"{{ nothing|float }}", 1, 12, "the filter float needs a number and got none", ""},
      {"{{ infinity|int }}", 1, 13, "does not fit in a 64-bit int", ""},
      {"{{ 1e39|cpp_float }}", 1, 9, "out of a float's range", ""},
      {"{{ 1|cpp_float('half') }}", 1, 6, "knows no type \"half\"", "\"float\""},
      {"{{ 1|round(2, 'up') }}", 1, 6, "knows no method \"up\"", "\"floor\""},
      {"{{ -1|hex }}", 1, 7, "negative -1", ""},
      {"{{ 0|pow2 }}", 1, 6, "takes 1 to 2**62 and got 0", ""},
      {"{{ 5|ceil_div(0) }}", 1, 6, "positive divisor and got 0", ""},
      {"{{ []|first }}", 1, 7, "the filter first got an empty list", ""},
      {"{{ []|max }}", 1, 7, "the filter max got an empty list", ""},
      {"{{ [1, 'a']|sort }}", 1, 13, "cannot compare", "convert"},
      {"{{ [1, 'a']|sum }}", 1, 13, "`+` cannot take an int and a string", "`~`"},
      {"{{ [[1]]|join }}", 1, 10, "a list cannot be printed", "join"},
      {"{{ 1.5 is even }}", 1, 11, "the test even needs an int and got a float", ""},
      {"{{ 4 is divisibleby 0 }}", 1, 9, "division by zero", ""},
      {"{{ 4 is even(2) }}", 1, 13, "takes no argument", ""},
      {"{{ range(1, 5, 0) }}", 1, 4, "a step other than 0", ""},
      {"{{ range('a') }}", 1, 4, "range needs an int", ""},
  });
}

TEST_CASE("jinja errors: limits hold") {
  const auto repeated = [](const std::string& text, int times) {
    std::string result;
    for (int i = 0; i < times; ++i) result += text;
    return result;
  };
  const auto message_of = [](const std::string& text) {
    return error_of(one_template(text), "t.jinja").message();
  };
  CHECK_THAT(message_of("{{ " + repeated("(", 100000)), ContainsSubstring("nests deeper than 100"));
  CHECK_THAT(message_of("{{ " + repeated("- ", 100000)),
             ContainsSubstring("nests deeper than 100"));
  CHECK_THAT(message_of("{{ " + repeated("not ", 100000)), ContainsSubstring("nests deeper"));
  CHECK_THAT(message_of("{{ 1" + repeated("+1", 100000) + "}}"), ContainsSubstring("nests deeper"));
  CHECK_THAT(message_of("{{ a" + repeated(".a", 100000) + "}}"), ContainsSubstring("nests deeper"));
  CHECK_THAT(message_of("{{ 1" + repeated("|abs", 100000) + "}}"),
             ContainsSubstring("nests deeper"));
  CHECK_THAT(message_of("{{ 1" + repeated(" if 1 else 1", 100000) + "}}"),
             ContainsSubstring("nests deeper"));
  CHECK_THAT(message_of("{{ " + repeated("[", 100000)), ContainsSubstring("nests deeper"));
  CHECK_THAT(message_of("{{ " + repeated("{'a':", 100000)), ContainsSubstring("nests deeper"));
  CHECK_THAT(message_of(repeated("{% if 1 %}", 100000)), ContainsSubstring("nest deeper than 50"));
  CHECK_THAT(message_of("{% set x = [] %}" + repeated("{% set x = [x] %}", 100)),
             ContainsSubstring("nest deeper than 32"));
  CHECK_THAT(message_of("{{ " + std::string(200, 'a') + " }}"),
             ContainsSubstring("longer than 128"));
  CHECK_THAT(message_of("{% for i in range(1000000000) %}{% endfor %}"),
             ContainsSubstring("more than 100000 numbers"));
  const std::string loop = "{% for i in range(100000) %}";
  CHECK_THAT(message_of(loop + loop + "{% endfor %}{% endfor %}"), ContainsSubstring("steps"));
  CHECK_THAT(
      message_of(loop + repeated("{{ 'x' }}", 3) + repeated("0123456789", 100) + "{% endfor %}"),
      ContainsSubstring("the output is larger than 16777216 bytes"));
  CHECK_THAT(message_of("{% set a = 'x' %}" + repeated("{% set a = a ~ a %}", 30)),
             ContainsSubstring("longer than 16 MiB"));
  // Each list holds the one before twice, so walking it takes 2^30 steps.
  CHECK_THAT(message_of("{% set a = 1 %}{% set b = 1 %}" +
                        repeated("{% set a = [a, a] %}{% set b = [b, b] %}", 30) + "{{ a == b }}"),
             ContainsSubstring("steps"));
}

TEST_CASE("jinja errors: the chain of includes leads back to the first template") {
  const MapLoader loader({{"a.jinja", "one\n  {% include 'b.jinja' %}\n"},
                          {"b.jinja", "{% if true %}{% include 'dir/' ~ 'c.jinja' %}{% endif %}"},
                          {"dir/c.jinja", "\n\n\tx {{ num_stage }}"}});
  const Error error = error_of(loader, "a.jinja");
  CHECK(std::string(error.what()) ==
        "error[kernel_template]: \"num_stage\" is undefined\n"
        "  --> dir/c.jinja:3:7\n"
        "   | \tx {{ num_stage }}\n"
        "   | \t     ^\n"
        "  hint: did you mean \"num_stages\"?\n"
        "  note: included from b.jinja:1:25\n"
        "  note: included from a.jinja:2:14");
}

TEST_CASE("jinja errors: what does not parse in an included file is reported there") {
  const MapLoader loader({{"a", "{% include 'b' %}"}, {"b", "x\n{{ 1 + }}"}});
  const Error error = error_of(loader, "a");
  CHECK(error.place()->file == "b");
  CHECK(error.place()->line == 2);
  CHECK(error.place()->column == 8);
  CHECK(error.notes() == std::vector<std::string>{"included from a:1:12"});
}

TEST_CASE("jinja errors: a template that is missing is named, with the nearest one") {
  const MapLoader loader({{"cpu/forward.cpp.jinja", "{% include 'cpu/tile.jinj' %}"},
                          {"cpu/tile.jinja", ""},
                          {"own.jinja", "{% include 'own.jinja' %}"}});
  const Error included = error_of(loader, "cpu/forward.cpp.jinja");
  CHECK(included.message() == "no template is called \"cpu/tile.jinj\"");
  CHECK(included.hint() == "did you mean \"cpu/tile.jinja\"?");
  CHECK(included.place()->column == 12);
  const Error first = error_of(loader, "cpu/forward.jinja");
  CHECK(first.code() == ErrorCode::kernel_template);
  CHECK(first.message() == "no template is called \"cpu/forward.jinja\"");
  const Error endless = error_of(loader, "own.jinja");
  CHECK_THAT(endless.message(), ContainsSubstring("includes nest deeper than 16 levels"));
  CHECK(endless.notes().size() == 15);
}
