// What is ours and not Jinja's: C++ literals, and which variables and files were read.
#include <limits>

#include "tests/generator/render/engine/support.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::jinja;
using test::text_of;

TEST_CASE("jinja: values print as C++ literals") {
  CHECK(text_of("{{ true }} {{ false }} {{ 1 == 1 }}") == "true false true");
  CHECK(text_of("{{ x }}", {{"x", std::numeric_limits<std::int64_t>::min()}}) ==
        "(-9223372036854775807 - 1)");
}

TEST_CASE("jinja: rendering lists the context's variables that were read, and the files") {
  const MapLoader loader({{"a",
                           "{% set own = x %}{{ own }}{% if false %}{{ unread }}{% endif %}"
                           "{% include 'b' %}{% include 'b' %}"},
                          {"b", "{{ y.k }}{% for i in [1] %}{{ i }}{% endfor %}"},
                          {"c", "not used"}});
  const Map context = {{"x", 1}, {"y", Map{{"k", 2}}}, {"unread", 3}, {"other", 4}, {"i", 5}};
  const Rendered rendered = render(loader, "a", context);
  CHECK(rendered.text == "12121");
  CHECK(rendered.variables == std::set<std::string>{"x", "y"});
  CHECK(rendered.files == std::vector<std::string>{"a", "b"});
}

TEST_CASE("jinja: a variable of the template hides one of the context") {
  CHECK(text_of("{{ x }}{% set x = 2 %}{{ x }}{% for x in [3] %}{{ x }}{% endfor %}{{ x }}",
                {{"x", 1}}) == "1232");
}

TEST_CASE("jinja: a value that is never reached is never computed") {
  CHECK(text_of("{{ 1 or nope }}{{ 0 and nope }}{{ 2 if true else nope }}") == "102");
}

TEST_CASE("jinja: an included template sees the variables, and the loop that it stands in") {
  const MapLoader loader({{"a", "{% for x in [5, 6] %}{% include 'b' %}{% endfor %}"},
                          {"b", "{{ x }}{{ ',' if not loop.last else '' }}"}});
  CHECK(render(loader, "a", {}).text == "5,6");
}
