// What Python's Jinja made of the corpus (scripts/make_template_goldens.py) is what we make of it.
#include "tests/generator/render/engine/support.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::jinja;

TEST_CASE("jinja: every golden of Python's Jinja is rendered byte by byte") {
  const MapLoader loader(test::golden_templates());
  const std::vector<test::GoldenCase> cases = test::golden_cases();
  REQUIRE(cases.size() >= 31);
  for (const test::GoldenCase& golden : cases) {
    INFO(golden.name);
    CHECK(render(loader, golden.name, golden.context).text == golden.golden);
  }
}
