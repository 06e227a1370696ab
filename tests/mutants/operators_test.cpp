#include "tests/mutants/operators.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/mutants/code_lines.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::mutants;

// What one line in a function's body becomes: operator and text.
std::set<std::pair<std::string, std::string>> changes(const std::string& line) {
  std::set<std::pair<std::string, std::string>> found;
  for (const Mutation& mutation : mutations_of("cpu/some.hpp", "{\n  " + line + "\n}\n")) {
    found.insert({std::string(to_string(mutation.kind)), mutation.after});
  }
  return found;
}

using Changes = std::set<std::pair<std::string, std::string>>;

}  // namespace

TEST_CASE("operators: comparisons, ones and signs") {
  CHECK(changes("int last = i < count ? i + 1 : n - count;") ==
        Changes{{"comparison", "int last = i <= count ? i + 1 : n - count;"},
                {"off by one", "int last = i < count ? i : n - count;"},
                {"sign", "int last = i < count ? i + 1 : n + count;"}});
  CHECK(changes("const bool a = b && !c;") == Changes{{"logical", "const bool a = b || !c;"}});
  CHECK(changes("for (int i = 0;; ++i) {") == Changes{{"off by one", "for (int i = 1;; ++i) {"}});
}

TEST_CASE("operators: statements are dropped where they stand alone") {
  CHECK(changes("state.sum = x;") == Changes{{"dropped statement", ";"}});
  CHECK(changes("if (done) return;") == Changes{{"dropped statement", ";"}});
  CHECK(changes("__syncthreads();") == Changes{{"dropped barrier", ";"}});
  CHECK(changes("wait_for_groups<0>();  // the last") ==
        Changes{{"dropped barrier", ";  // the last"}});
  CHECK(changes("rescale(alpha, out);") == Changes{{"dropped rescale", ";"}});
  CHECK(changes("return x;").empty());
  CHECK(changes("const int x = y;").empty());
  CHECK(changes("Vector x = y;").empty());
  // The second line is the end of a declaration.
  CHECK(mutations_of("f", "{\n  const int x =\n      y;\n}\n").empty());
  // Without the first line the second would have no meaning.
  CHECK(mutations_of("f", "{\n  if (a) f();\n  else return;\n}\n").empty());
}

TEST_CASE("operators: factors, indices and extrema") {
  CHECK(changes("const float y = x * alpha[i];") ==
        Changes{{"dropped rescale", "const float y = x;"}});
  CHECK(changes("return s[i][j];") == Changes{{"swapped index", "return s[j][i];"}});
  CHECK(changes("return at(b, h_kv);") == Changes{{"swapped index", "return at(b, h);"}});
  CHECK(changes("return min(a, b);") == Changes{{"swapped extremum", "return max(a, b);"}});
}

TEST_CASE("a mutation: may race where its line waits") {
  const auto all_race = [](const char* line) {
    const std::vector<Mutation> mutations = mutations_of("f", fmt::format("{{\n  {}\n}}\n", line));
    REQUIRE_FALSE(mutations.empty());
    return std::all_of(mutations.begin(), mutations.end(),
                       [](const Mutation& mutation) { return mutation.may_race(); });
  };
  CHECK(all_race("wait_for_groups<kStages - 2>();"));
  CHECK(all_race("__syncthreads();"));
  CHECK_FALSE(all_race("x = a < b;"));
}

TEST_CASE("operators: what is no code is left alone") {
  for (const char* line : {"// a < b", "#define A a < b", "{% if a < b %}", "static_assert(a < b);",
                           "template <int a = 0>", "using A = B;", "constexpr int kA = kB + 1;",
                           "asm volatile(\"\");", "printf(\"a < b\");  // NOLINT", "{# a < b #}"}) {
    CAPTURE(line);
    Changes found = changes(line);
    found.erase({"dropped statement", ";  // NOLINT"});
    CHECK(found.empty());
  }
  CHECK(mutations_of("f", "{# a comment\n  x = a < b;\n#}\n").empty());
}

TEST_CASE("a mutation: applies to its own text alone, and keeps its id when the line moves") {
  const std::string text = "{\n  a = b < c;\n  a = b < c;\n}\n";
  std::vector<Mutation> comparisons;
  for (const Mutation& mutation : mutations_of("f", text)) {
    if (mutation.kind == Operator::comparison) comparisons.push_back(mutation);
  }
  REQUIRE(comparisons.size() == 2);
  CHECK(comparisons[0].apply(text) == "{\n  a = b <= c;\n  a = b < c;\n}\n");
  CHECK(comparisons[1].apply(text) == "{\n  a = b < c;\n  a = b <= c;\n}\n");
  CHECK_THROWS_AS(comparisons[0].apply("{\n  b = c;\n}\n"), Error);
  CHECK(comparisons[0].id() != comparisons[1].id());
  const std::vector<Mutation> moved = mutations_of("f", "{\n  int x;\n" + text.substr(2));
  CHECK(std::any_of(moved.begin(), moved.end(), [&](const Mutation& mutation) {
    return mutation.id() == comparisons[0].id() && mutation.line == comparisons[0].line + 1;
  }));
}
