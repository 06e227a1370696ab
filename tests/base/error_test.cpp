#include "base/error.hpp"

#include "tests/support/catch.hpp"

using tilewright::Error;
using tilewright::ErrorCode;

TEST_CASE("error: the report shows message, place, caret, hint and notes in that order") {
  const Error error({.code = ErrorCode::snippet,
                     .message = "'slope' was not declared",
                     .place = tilewright::SourceLocation{"score_mod", 2, 9, "  score + slope[h]"},
                     .notes = {"buffers: slopes\nscalars: cap"},
                     .hint = "did you mean \"slopes\"?"});
  REQUIRE(std::string(error.what()) ==
          "error[snippet]: 'slope' was not declared\n"
          "  --> score_mod:2:9\n"
          "   |   score + slope[h]\n"
          "   |         ^\n"
          "  hint: did you mean \"slopes\"?\n"
          "  note: buffers: slopes\n"
          "        scalars: cap");
}

TEST_CASE("error: a caret stands below the right letter where the line holds tabs") {
  const Error error({.code = ErrorCode::spec,
                     .message = "m",
                     .place = tilewright::SourceLocation{"f", 1, 3, "\t x"},
                     .hint = ""});
  REQUIRE_THAT(error.what(), Catch::Matchers::ContainsSubstring("   | \t x\n   | \t ^"));
}

TEST_CASE("error: what was not precompiled has a code of its own") {
  REQUIRE(std::string(Error(ErrorCode::missing_kernel, "m").what()) == "error[missing_kernel]: m");
}
