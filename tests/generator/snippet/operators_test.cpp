#include "generator/snippet/operators.hpp"

#include <set>
#include <string>

#include "generator/snippet/snippet.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::snippet;

TEST_CASE("snippet operations: each op, name and operator has one row") {
  std::set<std::string_view> names;
  std::set<std::string> functions;
  for (const Operation& row : operations()) {
    INFO(row.name);
    CHECK(&operation(row.op) == &row);
    CHECK(names.insert(row.name).second);
    if (row.is_infix()) CHECK(find_infix(row.text) == &row);
    for (const std::string& name : function_names(row)) CHECK(functions.insert(name).second);
  }
  CHECK(find_infix("?") == nullptr);
  CHECK(find_infix("") == nullptr);
  const std::set<std::string> offered(snippet_functions().begin(), snippet_functions().end());
  CHECK(functions == offered);
  CHECK(offered.contains("fminf"));
  CHECK(offered.contains("tanhf"));
  CHECK(!offered.contains("clampf"));
}

TEST_CASE("snippet operations: a conversion to each type but the unknown one") {
  for (const Type type : {Type::integer, Type::floating, Type::truth, Type::wide}) {
    CHECK(operation(conversion_to(type)).result == type);
  }
}

}  // namespace
