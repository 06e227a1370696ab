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
      {"num_stages", 2},       {"tile", Map{{"q", 64}, {"kv", 128}}},
      {"list", List{1, 2, 3}}, {"text", "abc"},
      {"nothing", Value()},    {"splice", Splice{"score_mod", {{"a", 1, 1, true}}}},
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
  });
}

TEST_CASE("jinja errors: tags that do not exist") {
  check_all({
      {"{% fro x in list %}", 1, 4, "no tag is called \"fro\"", "did you mean \"for\""},
      {"{% elseif x %}", 1, 4, "no tag is called \"elseif\"", "\"elif\""},
      {"{% xyzzy %}", 1, 4, "no tag is called \"xyzzy\"", "there is \"if\", "},
      {"{% macro f() %}", 1, 4, "the tag `macro` of Jinja is not supported", "{% include %}"},
      {"{% with x = 1 %}{% endwith %}", 1, 4, "the tag `with` of Jinja is not supported",
       "{% set name = value %}"},
      {"{% endwith %}", 1, 4, "the tag `endwith` of Jinja is not supported", "{% set"},
      {"{% do list.append(1) %}", 1, 4, "the tag `do` of Jinja is not supported", "as a variable"},
      {"{% continue %}", 1, 4, "the tag `continue` of Jinja is not supported", "{% if"},
      {"{% raw %}{{1}}{% endraw %}", 1, 4, "the tag `raw` of Jinja is not supported", "{ {"},
      {"{% %}", 1, 4, "expected a tag's name, found `%}`", ""},
      {"{% if true %}{% else if false %}{% endif %}", 1, 22, "after `else`", "write `elif`"},
      {"{% set x %}1{% endset %}", 1, 10, "expected `=`, found `%}`", "name = value"},
      {"{% set tile.q = 1 %}", 1, 12, "expected `=`, found `.`", "never change"},
      {"{% set loop = 1 %}", 1, 8, "`loop` cannot be set", ""},
      {"{% for 3 in list %}{% endfor %}", 1, 8, "expected a loop variable's name, found `3`", ""},
      {"{% for x of list %}{% endfor %}", 1, 10, "expected `in`, found `of`", "for x in items"},
      {"{% for x in list recursive %}{% endfor %}", 1, 18, "expected `%}`, found `recursive`", ""},
      {"{% for a, b in list %}{% endfor %}", 1, 9, "unpacking into several names", "item.name"},
      {"{% set a, b = 1 %}", 1, 9, "unpacking into several names", "one name at a time"},
      {"{% for x in list %}{% else %}{% endfor %}", 1, 23, "expected `endfor`, found `else`",
       "a loop has no `else`"},
      {"{% for x in list if x %}{% endfor %}", 1, 18, "a loop with a condition",
       "{% if c %} inside the loop"},
      {"{% include 'a' ignore missing %}", 1, 16, "expected `%}`, found `ignore`", ""},
  });
}

TEST_CASE("jinja errors: expressions that do not parse") {
  check_all({
      {"{{ }}", 1, 4, "expected an expression, found `}}`", "{ {"},
      {"{{ 1 + }}", 1, 8, "expected an expression, found `}}`", "{ {"},
      {"{{ 1 2 }}", 1, 6, "expected `}}`, found `2`", ""},
      {"{% if num_stages = 2 %}{% endif %}", 1, 18, "expected `%}`, found `=`", "`==` compares"},
      {"{{ num_stages && 1 }}", 1, 15, "the operator `&` is not supported", "write `and`"},
      {"{{ num_stages || 1 }}", 1, 16, "expected a filter's name after `|`, found `|`", "`or`"},
      {"{{ !num_stages }}", 1, 4, "the operator `!` is not supported", "`not`"},
      {"{{ num_stages ? 1 : 2 }}", 1, 15, "the operator `?` is not supported", "if condition else"},
      {"{{ (1 }}", 1, 7, "expected `)`, found `}}`", ""},
      {"{{ [1, 2 }}", 1, 10, "expected `,`, found `}}`", ""},
      {"{{ 1) }}", 1, 5, "expected `}}`, found `)`", ""},
      {"{{ list[0 }}", 1, 11, "expected `]`, found `}}`", ""},
      {"{{ list[0:2] }}", 1, 10, "expected `]`, found `:`", "slices"},
      {"{{ tile. }}", 1, 10, "expected a name after `.`", ""},
      {"{{ else }}", 1, 4, "expected an expression, found `else`", ""},
      {"{{ 1 not 2 }}", 1, 6, "expected `}}`, found `not`", ""},
      {"{{ 1 + not 2 }}", 1, 8, "expected an expression, found `not`", "in parentheses"},
      {"{{ 1 < num_stages < 3 }}", 1, 19, "a chain of comparisons", "a < b and b < c"},
      {"{{ 1 in list }}", 1, 6, "the operator `in` is not supported", "x == a or x == b"},
      {"{{ 6 / 2 }}", 1, 6, "the operator `/` is not supported", "`//`"},
      {"{{ 2 ** 3 }}", 1, 6, "the operator `**` is not supported", "product"},
      {"{{ (1, 2) }}", 1, 6, "expected `)`, found `,`", "[a, b]"},
      {"{% set m = {'a': 1} %}", 1, 12, "a map literal is not supported", "for each value"},
      {"{{ {num_stages: 1} }}", 1, 4, "a map literal is not supported", "as a variable"},
      {"{{ tile['q'] }}", 1, 9, "a string as an index is not supported", "map.name"},
      {"{{ text('a') }}", 1, 4, "`text` cannot be called", "let C++ compute it"},
      {"{{ tile.items() }}", 1, 9, "`items` cannot be called", "let C++ compute it"},
      {"{{ 'a\\q' }}", 1, 4, "unknown escape", "write \\\\"},
      {"{{ 99999999999999999999 }}", 1, 4, "does not fit in 64 bits", ""},
      {"{{ 007 }}", 1, 4, "leading zero", "decimal"},
      {"{{ 0xff }}", 1, 4, "a number is a decimal integer", "in quotes"},
      {"{{ 0.5 }}", 1, 4, "a number is a decimal integer", "0.5f"},
      {"{{ 1_000 }}", 1, 4, "a number is a decimal integer", "in quotes"},
      {"{{-1}}", 1, 1, "white space sign of `{{-`", "put a space"},
      {"a\n {%- if true %}", 2, 2, "white space sign of `{%-`", "leaves no trace"},
      {"{% if true +%}", 1, 12, "white space sign of `+%}`", "leaves no trace"},
      {"{# a -#}", 1, 6, "white space sign of `-#}`", "leaves no trace"},
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
      {"A a{{1}, {2}};", 1, 7, "expected `}}`, found `}`", "{ {"},
      {"{{ {1, 2} }}", 1, 4, "expected an expression, found `{`", "{ {"},
      {"if (x) {{ y;", 1, 12, "expected `}}`, found `;`", "{ {"},
  });
}

TEST_CASE("jinja errors: what is undefined, with the nearest name") {
  check_all({
      {"ok\n  {{ num_stage }}", 2, 6, "\"num_stage\" is undefined", "did you mean \"num_stages\"?"},
      {"{{ zzz }}", 1, 4, "\"zzz\" is undefined", "variables are list, nothing, num_stages"},
      {"{% if missing %}{% endif %}", 1, 7, "\"missing\" is undefined", "variables are"},
      {"{% set x = missing %}", 1, 12, "\"missing\" is undefined",
       ""
       "variables are"},
      {"{{ tile.qq }}", 1, 9, "the map has no \"qq\"", "its keys are kv, q"},
      {"{{ tile.q.z }}", 1, 11, "an int has no attribute \"z\"", ""},
      {"{{ missing.q }}", 1, 4, "\"missing\" is undefined", "variables are"},
      {"{{ list[3] }}", 1, 9, "index 3 is outside a list of 3", ""},
      {"{{ list[-1] }}", 1, 9, "index -1 is outside a list of 3", ""},
      {"{{ 'a' if false }}", 1, 8, "this `if` has no `else`", "add one"},
      {"{{ loop.index0 }}", 1, 4, "\"loop\" is undefined", "variables are"},
      {"{% for x in list %}{{ loop.indx }}{% endfor %}", 1, 28, "the map has no \"indx\"",
       "its keys are index0, last"},
      {"{% for x in list %}{% endfor %}{{ x }}", 1, 35, "\"x\" is undefined", "variables are"},
      {"{{ list|lenght }}", 1, 9, "no filter is called \"lenght\"", "did you mean \"length\"?"},
      {"{% if false %}{{ text|zzzzzzzz }}{% endif %}", 1, 23, "no filter is called",
       "there is \"length\", "},
      {"{{ 1 is nome }}", 1, 9, "no test is called \"nome\"", "did you mean \"none\"?"},
      {"{{ range }}", 1, 4, "\"range\" is undefined", "range(8)"},
  });
}

TEST_CASE("jinja errors: types are never converted silently") {
  check_all({
      {"{{ 1 + 'a' }}", 1, 6, "`+` cannot take an int and a string", "`~`"},
      {"{{ true + 1 }}", 1, 9, "`+` cannot take a bool and an int",
       ""
       "both must be ints"},
      {"{{ 'a' * 3 }}", 1, 8, "`*` cannot take a string and an int", "both must be ints"},
      {"{{ 'a' < 1 }}", 1, 8, "`<` cannot compare a string with an int", "two ints"},
      {"{{ 1 == '1' }}", 1, 6, "`==` cannot compare an int with a string", "two ints"},
      {"{{ 1 == true }}", 1, 6, "`==` cannot compare an int with a bool", "two ints"},
      {"{{ nothing == 1 }}", 1, 12, "`==` cannot compare none with an int", "is none"},
      {"{{ 'a' < 'b' }}", 1, 8, "`<` cannot compare a string with a string", "two ints"},
      {"{{ list == list }}", 1, 9, "`==` cannot compare a list with a list", "two ints"},
      {"{{ -text }}", 1, 4, "`-` cannot take an int and a string", "both must be ints"},
      {"{{ list[text] }}", 1, 9, "a list cannot be indexed by a string", "takes an int"},
      {"{{ text[0] }}", 1, 9, "a string cannot be indexed", "takes an int"},
      {"{% for x in 5 %}{% endfor %}", 1, 13, "a loop needs a list and got an int", "range"},
      {"{% for x in text %}{% endfor %}", 1, 13, "a loop needs a list and got a string", ""},
      {"{% for x in 1 + 2 %}{% endfor %}", 1, 13, "a loop needs a list and got an int", "range"},
      {"{{ list }}", 1, 4, "a list cannot be printed", "join"},
      {"{{ tile }}", 1, 4, "a map cannot be printed", "map.name"},
      {"{{ nothing }}", 1, 4, "none cannot be printed", "is none"},
      {"{{ 'a' ~ splice }}", 1, 8, "a splice cannot be printed", "by itself"},
      {"{{ splice|length }}", 1, 11, "the filter length needs a list and got a splice", ""},
      {"{{ [list] }}", 1, 4, "a list cannot hold a list", ""},
      {"{{ ['a', splice]|join('') }}", 1, 18, "a splice cannot be printed", "by itself"},
      {"{% include 5 %}", 1, 12, "a template's name is a string and not an int", ""},
  });
}

TEST_CASE("jinja errors: arithmetic that has no exact result") {
  check_all({
      {"{{ 1 // 0 }}", 1, 6, "division by zero", ""},
      {"{{ 5 % 0 }}", 1, 6, "division by zero", ""},
      {"{{ 9223372036854775807 + 1 }}", 1, 24, "does not fit in 64 bits", ""},
      {"{{ 3037000500 * 3037000500 }}", 1, 15, "does not fit in 64 bits", ""},
      {"{{ (-9223372036854775807 - 1) // -1 }}", 1, 31, "does not fit", ""},
      {"{{ -(-9223372036854775807 - 1) }}", 1, 4, "does not fit in 64 bits", ""},
  });
}

TEST_CASE("jinja errors: filters and range check what they get") {
  check_all({
      {"{{ text|length }}", 1, 9, "the filter length needs a list and got a string", ""},
      {"{{ list|length(1) }}", 1, 15, "the filter length takes no argument", ""},
      {"{{ list|join }}", 1, 14, "expected `(`, found `}}`", "|join("},
      {"{{ list|join(5) }}", 1, 9, "needs a string between the items and got an int", ""},
      {"{{ []|max }}", 1, 7, "the filter max got an empty list", ""},
      {"{{ ['a', 1]|min }}", 1, 13, "the filter min needs ints and got a string", ""},
      {"{{ [none]|join('') }}", 1, 11, "none cannot be printed", "is none"},
      {"{{ range(1, 5, 0)|length }}", 1, 4, "a step other than 0", ""},
      {"{{ range('a') }}", 1, 4, "range needs ints and got a string", ""},
      {"{{ range() }}", 1, 10, "expected an expression, found `)`", ""},
      {"{{ range(1, 2, 3, 4) }}", 1, 19, "expected `)`, found `4`", "step"},
  });
}

TEST_CASE("jinja errors: what Jinja has and we have not says what to write") {
  const auto hint_of = [](const std::string& text) {
    const Error error = error_of(one_template(text), "t.jinja");
    CHECK_THAT(error.message(), ContainsSubstring("of Jinja is not supported"));
    return error.hint();
  };
  for (const char* filter :
       {"default",  "d",     "upper", "lower",     "trim",  "replace", "indent", "quote",
        "string",   "int",   "float", "cpp_float", "round", "abs",     "hex",    "pow2",
        "ceil_div", "count", "first", "last",      "list",  "items",   "sort",   "sum"}) {
    INFO(filter);
    CHECK(!hint_of("{{ list|" + std::string(filter) + " }}").empty());
  }
  for (const char* test :
       {"defined", "undefined", "boolean", "true",     "false", "number", "integer", "float",
        "string",  "list",      "mapping", "callable", "even",  "odd",    "pow2",    "divisibleby",
        "in",      "eq",        "ne",      "lt",       "le",    "gt",     "ge"}) {
    INFO(test);
    CHECK(!hint_of("{{ text is " + std::string(test) + " }}").empty());
  }
  for (const char* tag : {"raw", "endraw", "macro", "call", "extends", "block", "import", "from",
                          "filter", "do", "with", "break", "continue", "autoescape", "trans"}) {
    INFO(tag);
    CHECK(!hint_of("{% " + std::string(tag) + " %}").empty());
  }
  CHECK_THAT(hint_of("{{ list|first }}"), ContainsSubstring("items[0]"));
  CHECK_THAT(hint_of("{{ 4 is divisibleby 2 }}"), ContainsSubstring("x % n == 0"));
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
  for (const std::string part :
       {"(", "- ", "not ", "[", "1+", "a.", "1 if 1 else ", "[0][", "x + [0]|length * "}) {
    INFO(part);
    CHECK_THAT(message_of("{{ " + repeated(part, 100000)),
               ContainsSubstring("a tag holds more than 250 names, numbers and operators"));
  }
  CHECK_THAT(message_of(repeated("{% if 1 %}", 100000)), ContainsSubstring("nest deeper than 50"));
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
