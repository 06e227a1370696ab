// `#include "..."` in templates: what is rendered where, what its positions lead to, and what is
// refused.
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "generator/render/engine/engine.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::jinja;
using Catch::Matchers::ContainsSubstring;

namespace {

Error error_of(const MapLoader& loader, const std::string& name) {
  try {
    render(loader, name, {});
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  throw;
}

Error error_of(const std::string& text) {
  return error_of(MapLoader({{"k", text}, {"a/b.hpp", "#pragma once\nint b;\n"}}), "k");
}

std::string text_of(const std::string& text) {
  return render(MapLoader({{"k", text}, {"a/b.hpp", "#pragma once\nint b;\n"}}), "k", {}).text;
}

}  // namespace

TEST_CASE("header includes: each header once, before what includes it, under its name") {
  const MapLoader loader(
      {{"k.jinja",
        "{# A kernel. #}\n"
        "{% set n = 3 %}\n"
        "#include \"a/first.hpp\"\n"
        "#include \"a/second.hpp\"\n"
        "\n"
        "int k = {{ n }};\n"},
       {"a/first.hpp", "#pragma once\n\n#include \"a/base.hpp\"\n\n// First.\n\nint first;\n"},
       {"a/second.hpp",
        "#pragma once\n\n#include \"base.hpp\"\n#include <stdint.h>\n"
        "#include \"a/first.hpp\"  // again\n\nint second = {{ n }};\n"},
       {"a/base.hpp", "#pragma once\n\nint base;\n"}});
  const Rendered rendered = render(loader, "k.jinja", {});
  CHECK(rendered.text ==
        "// ---- a/base.hpp ----\nint base;\n"
        "\n// ---- a/first.hpp ----\n// First.\n\nint first;\n"
        "\n// ---- a/second.hpp ----\n#include <stdint.h>\n\nint second = 3;\n"
        "\n// ---- k.jinja ----\nint k = 3;\n");
  CHECK(rendered.files ==
        std::vector<std::string>{"k.jinja", "a/first.hpp", "a/base.hpp", "a/second.hpp"});
}

TEST_CASE("header includes: every position leads to its own file and line") {
  const MapLoader loader(
      {{"k", "#include \"a/b.hpp\"\n\n\nint k;\n"},
       {"a/b.hpp", "#pragma once\r\n\r\n#include \"a/c.hpp\"\r\n\r\n\r\nint b;\r\nint  bb;\r\n"},
       {"a/c.hpp.jinja", "\n\n  int c;\n"}});
  const Rendered rendered = render(loader, "k", {});
  REQUIRE(rendered.text ==
          "// ---- a/c.hpp.jinja ----\n  int c;\n\n// ---- a/b.hpp ----\nint b;\nint  bb;\n"
          "\n// ---- k ----\nint k;\n");
  CHECK(rendered.map.origin_of(1) == Origin{"a/c.hpp.jinja", 1, 1});
  CHECK(rendered.map.origin_of(2, 3) == Origin{"a/c.hpp.jinja", 3, 3});
  CHECK(rendered.map.origin_of(4, 9) == Origin{"a/b.hpp", 1, 1});
  CHECK(rendered.map.origin_of(5, 5) == Origin{"a/b.hpp", 6, 5});
  CHECK(rendered.map.origin_of(6, 6) == Origin{"a/b.hpp", 7, 6});
  CHECK(rendered.map.origin_of(9, 5) == Origin{"k", 4, 5});
}

TEST_CASE("header includes: a tag decides whether a header takes part") {
  const std::string choice = "{% if on %}\n#include \"a/b.hpp\"\n{% endif %}\nint k;\n";
  const MapLoader loader({{"k", choice}, {"a/b.hpp", "#pragma once\nint b;\n"}});
  const Rendered off = render(loader, "k", {{"on", false}});
  CHECK(off.text == "int k;\n");
  CHECK(off.files == std::vector<std::string>{"k"});
  CHECK(render(loader, "k", {{"on", true}}).text ==
        "// ---- a/b.hpp ----\nint b;\n\n// ---- k ----\nint k;\n");
}

TEST_CASE("header includes: {% include %} of a header renders it once, too") {
  const MapLoader loader({{"k", "{% include 'b' %}\n#include \"a/c.hpp\"\n{% include 'b' %}\n"},
                          {"b", "#pragma once\nint b;\n"},
                          {"a/c.hpp", "{% include 'b' %}int c;\n"}});
  CHECK(render(loader, "k", {}).text == "// ---- b ----\nint b;\n\n// ---- a/c.hpp ----\nint c;\n");
}

TEST_CASE("header includes: what is no include of a template stays as it is") {
  for (const std::string text :
       {"#include <a/b.hpp>\n", "#include NAME\n", "// #include \"a/b.hpp\"\n", "#pragma unroll\n",
        "#define X #include \"a/b.hpp\"\n", "#pragma once_more\n", "x #pragma once\n",
        "#included \"a/b.hpp\"\n"}) {
    CHECK(text_of(text) == text);
  }
  CHECK(text_of("  #  include\t\"a/b.hpp\"   \n") == "// ---- a/b.hpp ----\nint b;\n");
  CHECK(text_of("#include \"a/b.hpp\"") == "// ---- a/b.hpp ----\nint b;\n");
  CHECK(text_of("one\n\n#include \"a/b.hpp\"\n\n#include \"a/b.hpp\"\n\ntwo\n") ==
        "one\n\n// ---- a/b.hpp ----\nint b;\n\n// ---- k ----\ntwo\n");
}

TEST_CASE("header includes: headers in a circle are refused, with the way there") {
  const MapLoader loader({{"k", "#include \"x/a.hpp\"\n"},
                          {"x/a.hpp", "#pragma once\n#include \"x/b.hpp\"\n"},
                          {"x/b.hpp", "#pragma once\n\n#include \"a.hpp\"\n"},
                          {"own", "\n#include \"x/own.hpp\"\n"},
                          {"x/own.hpp", "#include \"own.hpp\"\n"}});
  const Error circle = error_of(loader, "k");
  CHECK(std::string(circle.what()) ==
        "error[kernel_template]: headers include each other in a circle: x/a.hpp, x/b.hpp, "
        "x/a.hpp\n"
        "  --> x/b.hpp:3:11\n"
        "   | #include \"a.hpp\"\n"
        "   |           ^\n"
        "  hint: move what both need to a header that includes neither\n"
        "  note: included from x/a.hpp:2:11\n"
        "  note: included from k:1:11");
  CHECK_THAT(error_of(loader, "own").message(), ContainsSubstring("x/own.hpp, x/own.hpp"));
}

TEST_CASE("header includes: a header that is missing is named, with the nearest one") {
  const MapLoader loader({{"k", "int a;\n#include \"a/base.hp\"\n"},
                          {"a/base.hpp", "#include \"nearby.hpp\"\n"},
                          {"b", "#include \"a/base.hpp\"\n"}});
  const Error error = error_of(loader, "k");
  CHECK(error.code() == ErrorCode::kernel_template);
  CHECK(error.message() == "no template is called \"a/base.hp\"");
  CHECK(error.hint() == "did you mean \"a/base.hpp\"?");
  CHECK(error.place()->file == "k");
  CHECK(error.place()->line == 2);
  CHECK(error.place()->column == 11);
  const Error nearby = error_of(loader, "b");
  CHECK(nearby.message() == "no template is called \"a/nearby.hpp\"");
  CHECK(nearby.notes() == std::vector<std::string>{"included from b:1:11"});
}

TEST_CASE("header includes: a name stays in the folder of templates and has one spelling") {
  for (const std::string name : {"../secret.hpp", "/etc/passwd", "a/../../secret.hpp", "a/./b.hpp",
                                 "a//b.hpp", "", ".", "a/", "a\\\\b.hpp"}) {
    const Error error = error_of("#include \"" + name + "\"\n");
    CAPTURE(name);
    CHECK_THAT(error.message(), ContainsSubstring("is not the path of a template"));
    CHECK(error.place()->column == 11);
  }
}

TEST_CASE("header includes: a line that cannot be read is refused") {
  struct Case {
    std::string text;
    int column;
    std::string message;
  };
  for (const Case& c : std::vector<Case>{
           {"#include \"a/b.hpp\n", 11, "no closing quote"},
           {"#include \"a/{{ 1 }}.hpp\"\n", 11, "no closing quote"},
           {"#include \"a/b.hpp\" int b;\n", 20, "has its line for itself"},
           {"{% if true %}#include \"a/b.hpp\"\n{% endif %}", 14, "has its line for itself"},
           {"#include \"a/b.hpp\"{% if true %}{% endif %}\n", 1, "has its line for itself"}}) {
    CAPTURE(c.text);
    const Error error = error_of(c.text);
    CHECK(error.code() == ErrorCode::kernel_template);
    CHECK_THAT(error.message(), ContainsSubstring(c.message));
    CHECK(error.place()->line == 1);
    CHECK(error.place()->column == c.column);
  }
}
