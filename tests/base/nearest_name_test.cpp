#include "base/nearest_name.hpp"

#include "tests/support/catch.hpp"

using namespace tilewright;

TEST_CASE("nearest_name: typing errors find their name") {
  const std::vector<std::string> names = {"head_dim", "v_head_dim", "dtype", "scale"};
  const auto [typed, meant] =
      GENERATE(table<std::string, std::string>({{"head_dims", "head_dim"},
                                                {"hed_dim", "head_dim"},
                                                {"HEAD_DIM", "head_dim"},
                                                {"dtpye", "dtype"},
                                                {"v_headdim", "v_head_dim"}}));
  REQUIRE(nearest_name(typed, names) == meant);
}

TEST_CASE("nearest_name: among equally near names swapped letters are likelier") {
  const std::vector<std::string> names = {"tan", "tanh", "exp"};
  CHECK(nearest_name("tahn", names) == "tanh");
  CHECK(nearest_name("tam", names) == "tan");
}

TEST_CASE("nearest_name: what is far from everything finds nothing") {
  const std::vector<std::string> names = {"head_dim", "dtype"};
  REQUIRE_FALSE(nearest_name("buffers", names));
  REQUIRE(did_you_mean("x", names).empty());
  REQUIRE_FALSE(nearest_name(std::string(1000, 'a'), names));
}

TEST_CASE("nearest_name: one_of joins names as a sentence needs them") {
  REQUIRE(one_of(std::vector<std::string>{"a"}) == "\"a\"");
  REQUIRE(one_of(std::vector<std::string>{"a", "b", "c"}) == "\"a\", \"b\" or \"c\"");
}
