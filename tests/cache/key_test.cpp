#include "cache/key.hpp"

#include <set>

#include "base/error.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::cache;
using namespace std::string_literals;

namespace {

const std::vector<Ingredient> kIngredients = {
    {"target", "sm_90a"}, {"source", "kernel"}, {"options", "-O3\0-g"s}};

}  // namespace

// The expected texts were computed with Python's hashlib from the layout in cache/key.hpp.
TEST_CASE("key: the layout of what is hashed never changes") {
  REQUIRE(digest_of({}).hex() ==
          "482d8fef3b7b6cfe444075b798cc7ba766ea5b9db657c35ab9bb06905062503e");
  const Request request = make_request(kIngredients);
  REQUIRE(request.digest.hex() ==
          "bd18dd9fd8f3fca187c7491936f224031e73a5f3a54e5fab0990c02c2338e82a");
  REQUIRE(make_key(request, "nvrtc 13.0.88").digest.hex() ==
          "f2cffba7f51063e504e4da63460277ccaed9d5a0c8dc752baece9fdb518acfbf");
}

TEST_CASE("key: the order in which ingredients are listed does not matter") {
  const std::vector<Ingredient> reversed(kIngredients.rbegin(), kIngredients.rend());
  REQUIRE(digest_of(reversed) == digest_of(kIngredients));
  REQUIRE(make_request(reversed).ingredients == make_request(kIngredients).ingredients);
}

TEST_CASE("key: lists that only look alike when they are joined have different keys") {
  const std::vector<std::vector<Ingredient>> lists = {
      {},
      {{"a", "bc"}},
      {{"ab", "c"}},
      {{"a", "b"}, {"c", ""}},
      {{"a", ""}, {"bc", ""}},
      {{"a", "b\0c"s}},
      {{"a", "bc\0"s}},
      {{"a", ""}, {"b", "c"}},
      {{"a", ""}, {"b", ""}, {"c", ""}},
  };
  std::set<Digest> digests;
  for (const auto& list : lists) digests.insert(digest_of(list));
  REQUIRE(digests.size() == lists.size());
}

TEST_CASE("key: a change of any ingredient, or of the compiler, is another key") {
  const Key key = make_key(make_request(kIngredients), "nvrtc 13.0.88");
  for (std::size_t i = 0; i < kIngredients.size(); ++i) {
    std::vector<Ingredient> changed = kIngredients;
    changed[i].value.back() ^= 1;
    REQUIRE(make_key(make_request(changed), "nvrtc 13.0.88") != key);
    changed = kIngredients;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    REQUIRE(make_key(make_request(changed), "nvrtc 13.0.88") != key);
  }
  REQUIRE(make_key(make_request(kIngredients), "nvrtc 13.0.89") != key);
  REQUIRE(make_key(make_request(kIngredients), "") != key);
}

TEST_CASE("key: a tag that is empty or comes twice is a defect of the caller") {
  REQUIRE_THROWS_AS(make_request({{"", "x"}}), tilewright::Error);
  REQUIRE_THROWS_WITH(make_request({{"a", "1"}, {"b", ""}, {"a", "2"}}),
                      Catch::Matchers::ContainsSubstring("\"a\" is twice"));
}
