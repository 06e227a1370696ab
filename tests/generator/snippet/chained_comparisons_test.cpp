#include "generator/snippet/chained_comparisons.hpp"

#include <string>

#include "base/error.hpp"
#include "generator/snippet/snippet.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

Error refusal(const std::string& text) {
  try {
    check_snippet(SnippetKind::mask_mod, text);
  } catch (const Error& error) {
    return error;
  }
  FAIL("accepted: " << text);
  return Error(ErrorCode::internal, "");
}

}  // namespace

TEST_CASE("chained comparisons: refused at the second one, with what to write") {
  struct Case {
    const char* text;
    int column;
    const char* hint;
  };
  const Case chained = GENERATE(
      Case{"0 <= q_idx - kv_idx < 5", 21, "write 0 <= q_idx - kv_idx && q_idx - kv_idx < 5"},
      Case{"h == b == q_idx", 8, "write h == b && b == q_idx"},
      Case{"h < b > q_idx", 7, "write h < b && b > q_idx"},
      Case{"h != b not_eq q_idx", 8, "write h != b && b not_eq q_idx"},
      Case{"0 < h <= b < q_idx", 7, "write 0 < h && h <= b && b < q_idx"},
      Case{"(0 <= q_idx < 5) && h == 1", 13, "write 0 <= q_idx && q_idx < 5"},
      Case{"max(0 <= x[h] < 3, 1) == 1", 15, "write 0 <= x[h] && x[h] < 3"},
      Case{"h == 1 ? 0 < q_idx < 3 : true", 20, "write 0 < q_idx && q_idx < 3"},
      Case{"auto f = [](int x) { return 0 <= x < 5; }; return f(h);", 36, "write 0 <= x && x < 5"},
      Case{"const bool ok = 0 <= h < 5; return ok;", 24, "write 0 <= h && h < 5"},
      Case{"if (0 <= h < 5) return true; return false;", 12, "write 0 <= h && h < 5"},
      Case{"while (0 <= h < 5) return true; return false;", 15, "write 0 <= h && h < 5"},
      Case{"for (int i = 0; 0 <= i < 5; ++i) {} return true;", 24, "write 0 <= i && i < 5"},
      Case{"if (h == 1) { return true; } return 0 < h < 3;", 43, "write 0 < h && h < 3"},
      Case{"static_cast<int>(0 < h < 3) == 1", 24, "write 0 < h && h < 3"},
      Case{"0 <= static_cast<int>(h) < 3", 26,
           "write 0 <= static_cast<int>(h) && static_cast<int>(h) < 3"},
      Case{"h < b == q_idx < kv_idx", 7,
           "write h < b && b == q_idx && q_idx < kv_idx, or (h < b) == (q_idx < kv_idx)"});
  CAPTURE(chained.text);
  const Error error = refusal(chained.text);
  CHECK(error.code() == ErrorCode::snippet);
  CHECK_THAT(error.message(), ContainsSubstring("comparisons do not chain"));
  CHECK(error.hint() == chained.hint);
  REQUIRE(error.place());
  CHECK(error.place()->column == chained.column);
}

TEST_CASE("chained comparisons: what says what it means passes") {
  const char* const text = GENERATE(
      "(h < b) == (q_idx < kv_idx)", "0 <= h && h < 5", "h < 3 & b < 4", "h < 1 ? b < 2 : b < 3",
      "h << 2 > 3", "static_cast<int>(1.5) < h", "[]<int N>(int x) { return x < N; }(h)",
      "[](auto x) { return x < 3; }(h) && b < 3", "h and b == 1 or h < 3",
      "max(h < 1, b < 2) && doc(b < 1, h < 2) > 0",
      "switch (h) { case 0: return h < 1; default: return b < 2; }",
      "if (h < 1) return b < 2; else return b < 3;", "int a = h < 1, c = h < 2; return a < c;",
      "do { return true; } while (h < 3); return h < 2;",
      "for (int i = 0; i < 3; ++i) if (i < h) return b < i; return true;");
  CAPTURE(text);
  CHECK_NOTHROW(check_snippet(SnippetKind::mask_mod, text));
}
