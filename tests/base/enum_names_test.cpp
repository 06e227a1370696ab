#include "base/enum_names.hpp"

#include <array>
#include <utility>

#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

enum class Side { left, right, neither };
constexpr std::array kSides = {std::pair{Side::left, std::string_view("left")},
                               std::pair{Side::right, std::string_view("right")}};

}  // namespace

TEST_CASE("enum names: a value's name and a name's value") {
  REQUIRE(name_in(kSides, Side::right) == "right");
  REQUIRE(name_in(kSides, Side::neither).empty());
  REQUIRE(value_in(kSides, "left") == Side::left);
  REQUIRE_FALSE(value_in(kSides, "").has_value());
  REQUIRE_FALSE(value_in(kSides, "lef").has_value());
}
