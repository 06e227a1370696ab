// What is ours and not Jinja's: C++ literals, strictness that passes, functions, what was read.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "base/error.hpp"
#include "tests/generator/render/engine/support.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::jinja;
using test::text_of;

TEST_CASE("jinja: values print as C++ literals") {
  CHECK(text_of("{{ true }} {{ false }} {{ 1 == 1 }}") == "true false true");
  CHECK(text_of("{{ 1.0 }} {{ x }}", {{"x", 1e300}}) == "1.0 1e+300");
  CHECK(text_of("{{ x }}", {{"x", std::numeric_limits<std::int64_t>::min()}}) ==
        "(-9223372036854775807 - 1)");
  CHECK(text_of("{{ 6 / 2 }} {{ -6 / 2 }} {{ 7 / 2.0 }}") == "3 -3 3.5");
}

TEST_CASE("jinja: a printed double parses back to the same value") {
  std::uint64_t bits = 88172645463325252u;
  for (int i = 0; i < 20000; ++i) {
    bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
    double number = 0;
    std::memcpy(&number, &bits, sizeof number);
    if (!(number - number == 0)) continue;
    const std::string text = text_of("{{ x }}", {{"x", number}});
    REQUIRE(std::strtod(text.c_str(), nullptr) == number);
    REQUIRE(text.find_first_of(".e") != std::string::npos);
  }
}

TEST_CASE("jinja: cpp_float prints float literals, infinities and NaN") {
  const double infinity = std::numeric_limits<double>::infinity();
  const Map context = {{"inf", infinity}, {"nan", std::numeric_limits<double>::quiet_NaN()}};
  CHECK(text_of("{{ 1|cpp_float }} {{ 0.1|cpp_float }} {{ -2.5|cpp_float }}") == "1.0f 0.1f -2.5f");
  CHECK(text_of("{{ inf|cpp_float }} {{ -inf|cpp_float }} {{ nan|cpp_float }}", context) ==
        "INFINITY -INFINITY NAN");
  CHECK(text_of("{{ 0.1|cpp_float('double') }} {{ inf|cpp_float(type='double') }}", context) ==
        "0.1 INFINITY");
  CHECK(text_of("{{ 3.4028234663852886e38|cpp_float }}") == "3.4028235e+38f");
}

TEST_CASE("jinja: the filters that Jinja lacks") {
  CHECK(text_of("{{ 255|hex }} {{ 0|hex }}") == "0xff 0x0");
  CHECK(text_of("{{ 1|pow2 }} {{ 5|pow2 }} {{ 64|pow2 }}") == "1 8 64");
  CHECK(text_of("{{ 64 is pow2 }} {{ 0 is pow2 }} {{ 96 is pow2 }}") == "true false false");
  CHECK(
      text_of("{{ 7|ceil_div(2) }} {{ 8|ceil_div(2) }} {{ -7|ceil_div(2) }} {{ 0|ceil_div(3) }}") ==
      "4 4 -3 0");
  CHECK(text_of(R"({{ 'say "hi"\n\t\\ \x01' | quote }})") == R"("say \"hi\"\n\t\\ \001")");
}

TEST_CASE("jinja: a map is walked in the order of its keys") {
  CHECK(text_of("{% for k in {'b': 1, 'a': 2} %}{{ k }}{% endfor %}") == "ab");
}

TEST_CASE("jinja: functions take positional and named arguments") {
  const Function describe = [](const Arguments& arguments) -> Value {
    std::string text = std::to_string(arguments.positional.size()) + " positional";
    for (const auto& [name, value] : arguments.named)
      text += ", " + name + "=" + *value.as_string();
    return text;
  };
  const Map context = {{"describe", describe}, {"host", Map{{"describe", describe}}}};
  CHECK(text_of("{{ describe() }}", context) == "0 positional");
  CHECK(text_of("{{ describe(1, [2], b='x', a='y',) }}", context) == "2 positional, a=y, b=x");
  CHECK(text_of("{{ host.describe(1)|upper }}", context) == "1 POSITIONAL");
}

TEST_CASE("jinja: what a function throws is reported where it is called") {
  const Map context = {{"refuse", Function([](const Arguments&) -> Value {
                          throw std::invalid_argument("no such snippet");
                        })}};
  try {
    text_of("a\n  {{ 1 }} {{ refuse(2) }}", context);
    FAIL("nothing was thrown");
  } catch (const tilewright::Error& error) {
    CHECK(error.code() == tilewright::ErrorCode::kernel_template);
    CHECK(error.message() == "no such snippet");
    CHECK(error.place()->line == 2);
    CHECK(error.place()->column == 14);
  }
}

TEST_CASE("jinja: a tilewright error of a function passes unchanged") {
  const Map context = {{"refuse", Function([](const Arguments&) -> Value {
                          throw tilewright::Error(tilewright::ErrorCode::snippet, "bad snippet");
                        })}};
  try {
    text_of("{{ refuse() }}", context);
    FAIL("nothing was thrown");
  } catch (const tilewright::Error& error) {
    CHECK(error.code() == tilewright::ErrorCode::snippet);
    CHECK(!error.place());
  }
}

TEST_CASE("jinja: rendering lists the context's variables that were read, and the files") {
  const MapLoader loader({{"a",
                           "{% set own = x %}{{ own }}{% if false %}{{ unread }}{% endif %}"
                           "{% include 'b' %}{% include 'b' %}{{ z is defined }}"},
                          {"b", "{{ y.k }}{% for i in [1] %}{{ i }}{% endfor %}"},
                          {"c", "not used"}});
  const Map context = {{"x", 1}, {"y", Map{{"k", 2}}}, {"unread", 3}, {"other", 4}, {"i", 5}};
  const Rendered rendered = render(loader, "a", context);
  CHECK(rendered.text == "12121false");
  CHECK(rendered.variables == std::set<std::string>{"x", "y"});
  CHECK(rendered.files == std::vector<std::string>{"a", "b"});
}

TEST_CASE("jinja: a variable of the template hides one of the context") {
  CHECK(text_of("{{ x }}{% set x = 2 %}{{ x }}{% for x in [3] %}{{ x }}{% endfor %}{{ x }}",
                {{"x", 1}}) == "1232");
}

TEST_CASE("jinja: a value that is never reached is never computed") {
  CHECK(text_of("{{ 1 or nope }}{{ 0 and nope }}{{ 2 if true else nope }}") == "102");
  CHECK(text_of("{{ 3 < 2 < nope }}") == "false");
}
