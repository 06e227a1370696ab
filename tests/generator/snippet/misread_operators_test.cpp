#include "generator/snippet/misread_operators.hpp"

#include <string>

#include "base/error.hpp"
#include "generator/snippet/snippet.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Refused {
  const char* text;
  int column;
  const char* message;
  const char* hint;
};

void check_refused(const Refused& refused, SnippetKind kind = SnippetKind::mask_mod) {
  CAPTURE(refused.text);
  try {
    check_snippet(kind, refused.text);
    FAIL_CHECK("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::snippet);
    CHECK_THAT(error.message(), ContainsSubstring(refused.message));
    CHECK_THAT(error.hint(), ContainsSubstring(refused.hint));
    REQUIRE(error.place());
    CHECK(error.place()->column == refused.column);
  }
}

}  // namespace

TEST_CASE("misread operators: = in a condition is refused, with the comparison to write") {
  const char* const message = "a condition compares with ==";
  check_refused(GENERATE_COPY(
      Refused{"h = 1", 3, message, "write h == 1"},
      Refused{"h == 1 && b = 2", 13, message, "write b == 2"},
      Refused{"h == 1 or (b = 2)", 14, message, "write b == 2"},
      Refused{"!(b = 2)", 5, message, "write b == 2"},
      Refused{"(h = 1) ? true : false", 4, message, "write h == 1"},
      Refused{"if (h = 1) return true; return false;", 7, message, "write h == 1"},
      Refused{"if ((h = 1)) return true; return false;", 8, message, "write h == 1"},
      Refused{"if (int x = h; x = 2) return true; return false;", 18, message, "write x == 2"},
      Refused{"if (x[h] = 1) return true; return false;", 10, message, "write x[h] == 1"},
      Refused{"while (h = 1) {} return true;", 10, message, "write h == 1"},
      Refused{"for (int i = 0; i = 3; ++i) {} return true;", 19, message, "write i == 3"},
      Refused{"return h = 1;", 10, message, "write h == 1"}));
}

TEST_CASE("misread operators: a comma that drops a value is refused") {
  check_refused(GENERATE(
      Refused{"h == 1, b == 2", 7, "drops the value", "write &&"},
      Refused{"return h == 1, b == 2;", 14, "drops the value", "write &&"},
      Refused{"(h, b) == 2", 3, "drops the value", "write &&"},
      Refused{"if (h == 1, b == 2) return true; return false;", 11, "drops the value", "write &&"},
      Refused{"bias[h, q_idx] > 0", 7, "a comma in x[i, j]", "bias(h, q_idx)"}));
}

TEST_CASE("misread operators: Python's words and an if that guards nothing are refused") {
  check_refused({"score ** 2", 7, "**", "write pow(score, 2)"}, SnippetKind::score_mod);
  check_refused({"score + x[h]**-y", 13, "**", "write pow(x[h], -y)"}, SnippetKind::score_mod);
  check_refused({"score if q_idx >= kv_idx else -INFINITY", 7, "Python",
                 "write q_idx >= kv_idx ? score : -INFINITY"},
                SnippetKind::score_mod);
  check_refused({"if (h == 1); return true;", 12, "ends this if", "delete the ;"});
}

TEST_CASE("misread operators: what says what it means passes") {
  const char* const text = GENERATE(
      "if (int x = h) return true; return false;",
      "if (const auto& x = h; x > 1) return true; return false;",
      "for (int i = 0, j = 2; i < 3; ++i, ++j) {} return true;",
      "int x = 3; x = h > 1 && b == 2; return x;",
      "int n = 0; while ((n = n + 1) < 5) {} return n == 5;",
      "auto f = [=](int x = 3, int y = 4) { int z = x, w = y; return z == w; }; return f(h, b);",
      "max(h, b) == 2 && (max)(h, b) == 1",
      "int a[2] = {1, 2}; a[0] = 3, a[1] = 4; return a[0] > h;", "auto [x, y] = f(h, b); return x;",
      "[h, &b](int x, int y) { return x; }(1, 2)",
      "int x; if (h == 1) x = 2; else x = 3; return x == 2;",
      "for (int i = 0; i < 3; ++i) if (i == h) return true; return false;",
      "const int* p = nullptr; return h * *p == 0;", "int x(h), y{b}; return x == y;");
  CAPTURE(text);
  CHECK_NOTHROW(check_snippet(SnippetKind::mask_mod, text));
  CHECK_NOTHROW(check_snippet(SnippetKind::score_mod, "score = score + 1"));
}
