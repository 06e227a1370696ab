#include "generator/snippet/words.hpp"

#include <string>
#include <vector>

#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

// Of the text's only "[".
bool opens_lambda_in(const std::string& text) {
  const std::vector<SnippetToken> tokens = tokenize(text, SnippetKind::score_mod);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text == "[") return opens_lambda(tokens, i);
  }
  FAIL("no bracket in " << text);
  return false;
}

}  // namespace

TEST_CASE("snippet words: a bracket with no value before it opens a lambda") {
  for (const char* text :
       {"[&] { return 1; }()", "return [=](int x) { return x; }(3);", "score + [&] { return 1; }()",
        "auto [a, c] = pair;", "q_idx > 1 and [&] { return true; }()"}) {
    CAPTURE(text);
    CHECK(opens_lambda_in(text));
  }
  for (const char* text : {"bias[h]", "(bias)[h]", "return bias[h];"}) {
    CAPTURE(text);
    CHECK_FALSE(opens_lambda_in(text));
  }
}

TEST_CASE("snippet words: comparisons are no assignments") {
  for (const char* text : {"=", "+=", "<<=", "--", "and_eq"}) CHECK(is_assignment(text));
  for (const char* text : {"==", "<=", ">=", "!=", "not_eq", "and"})
    CHECK_FALSE(is_assignment(text));
}

TEST_CASE("snippet words: bitwise operators evaluate both sides") {
  for (const char* text : {"&&", "||", "and", "or"}) CHECK(is_conditional_operator(text));
  for (const char* text : {"&", "|", "bitand", "bitor"}) CHECK_FALSE(is_conditional_operator(text));
}
