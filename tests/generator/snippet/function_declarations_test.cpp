#include "generator/snippet/function_declarations.hpp"

#include "base/error.hpp"
#include "generator/snippet/snippet.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("function declarations: refused at the name, in every way to write one") {
  struct Case {
    const char* text;
    int column;
  };
  const Case declared =
      GENERATE(Case{"float erff(float); return erff(score);", 7},
               Case{"float erff(float x); return erff(score);", 7},
               Case{"float erff(const float); return erff(score);", 7},
               Case{"float x = 1, erff(float); return erff(score);", 14},
               Case{"float erff(); return erff();", 7}, Case{"float* f(); return *f();", 8},
               Case{"auto erff(float x) -> float; return erff(score);", 6},
               Case{"float (erff)(float); return erff(score);", 8},
               Case{"using F = float(float); F erff; return erff(score);", 11},
               Case{"using F = float(); F erff; return erff();", 11},
               Case{"typedef float F(float); F erff; return erff(score);", 15},
               Case{"using T = float; T erff(T); return erff(score);", 20},
               Case{"decltype(exp) erff; return erff(score);", 10},
               Case{"decltype(score) erff(); return erff();", 17});
  CAPTURE(declared.text);
  try {
    check_snippet(SnippetKind::score_mod, declared.text);
    FAIL_CHECK("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::snippet);
    CHECK_THAT(error.message(), ContainsSubstring("must not declare a function"));
    CHECK_THAT(error.hint(), ContainsSubstring("lambda"));
    REQUIRE(error.place());
    CHECK(error.place()->column == declared.column);
  }
}

TEST_CASE("function declarations: variables, calls, casts, lambdas and their pointers pass") {
  const char* const text = GENERATE(
      "float x(3); return score + x;", "float x(score); return x;",
      "using T = float; T x(score); return T(x);", "return float(score) + float(h);",
      "return max(float(h), float()) + score;", "int i = int(score); return float(i);",
      "float (*f)(float) = [](float x) { return x; }; return f(score);",
      "auto f = [](float x) -> float { return x; }; return f(score);",
      "if (int x = int(score)) return f(x); else return f();",
      "for (int i(0); i < 3; ++i) score += g(i); return score;",
      "decltype(score) x = 1; return x * score;", "return [](int) { return 1; }(h) * score;");
  CAPTURE(text);
  CHECK_NOTHROW(check_snippet(SnippetKind::score_mod, text));
}
