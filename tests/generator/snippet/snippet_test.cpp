#include "generator/snippet/snippet.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "generator/snippet/number.hpp"
#include "generator/spec/spec_json.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/snippet_mutations.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

Error refusal(const std::string& text, SnippetKind kind = SnippetKind::mask_mod) {
  try {
    check_snippet(kind, text);
  } catch (const Error& error) {
    return error;
  }
  FAIL("accepted: " << text);
  return Error(ErrorCode::internal, "");
}

struct Refused {
  std::string text;
  int line;
  int column;
  std::string message;
};

void check_refusals(const std::vector<Refused>& cases) {
  for (const Refused& refused : cases) {
    CAPTURE(refused.text);
    const Error error = refusal(refused.text);
    CHECK(error.code() == ErrorCode::snippet);
    CHECK_THAT(error.message(), ContainsSubstring(refused.message));
    CHECK_FALSE(error.hint().empty());
    REQUIRE(error.place());
    CHECK(error.place()->file == "mask_mod");
    CHECK(error.place()->line == refused.line);
    CHECK(error.place()->column == refused.column);
  }
}

std::string repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

bool is_expression(const std::string& text) {
  return check_snippet(SnippetKind::mask_mod, text).is_expression;
}

std::vector<std::string> texts_of(std::string_view snippet) {
  std::vector<std::string> texts;
  for (const SnippetToken& token : tokenize(snippet, SnippetKind::mask_mod)) {
    texts.emplace_back(token.text);
  }
  return texts;
}

}  // namespace

TEST_CASE("snippet: text without a semicolon at its top level is an expression") {
  CHECK(is_expression("q_idx >= kv_idx"));
  CHECK(is_expression("q_idx >= kv_idx // a comment at the end; with a semicolon"));
  CHECK(is_expression("[](int x){ return x; }(q_idx) > 3"));
  CHECK(is_expression("x[f({1, 2})] == ';'"));
  CHECK_FALSE(is_expression("return q_idx >= kv_idx;"));
  CHECK_FALSE(is_expression("auto f = [](int x){ return x; }; return f(1);"));
  CHECK_FALSE(is_expression("if (h > 2) { return true; } else { return false; }"));
  CHECK_FALSE(is_expression("{ return true; }"));
}

TEST_CASE("snippet: what people write passes") {
  const std::string text = GENERATE(
      "for (int i = 0; i < 4; ++i) { if (i == h) return true; } return false;",
      "const float w[3] = {0.25f, .5, 1e-3}; return w[h % 3] > 0.1;",
      "switch (h) { case 0: return true; default: return q_idx >= kv_idx; }",
      "constexpr int n = 1'000'000; auto g = [&](auto x) mutable -> int { return x + n; }; "
      "return g(1) > 0x1F;",
      "static_cast<float>(q_idx) > 0x1.8p+3 and not (b == 1 or h == 2)",
      "/* h */ q_idx >= kv_idx /* \?\?= # */", "/* \xC3\xA9t\xC3\xA9 */ q_idx > kv_idx",
      "do { return true; } while (false); return false;", "q_idx\r\n>= kv_idx\r\n",
      "a[b[0]] > 1 ? true : false", "using T = float; return T(q_idx) > 1;");
  REQUIRE_NOTHROW(check_snippet(SnippetKind::mask_mod, text));
}

TEST_CASE("snippet: names are sorted, once each, without keywords and members") {
  const Snippet snippet = check_snippet(
      SnippetKind::score_mod, "const int n = bias.size(1); return score + bias(h, n) + cap.h_kv;");
  REQUIRE(snippet.names == std::vector<std::string>{"bias", "cap", "h", "n", "score"});
  CHECK(snippet.mentions("h"));
  CHECK_FALSE(snippet.mentions("size"));
  CHECK_FALSE(snippet.mentions("h_kv"));
  CHECK_FALSE(snippet.mentions("return"));
}

TEST_CASE("snippet: brackets that do not match are named in both places") {
  check_refusals({{"(q_idx", 1, 1, "( is never closed"},
                  {"q_idx)", 1, 6, ") closes nothing"},
                  {"a) + (b", 1, 2, ") closes nothing"},
                  {"(\n  q_idx]", 2, 8, "] closes (, which was opened in line 1, column 1"},
                  {"return x; } int f() { return 1;", 1, 11, "} closes nothing"},
                  {"{ return 1;", 1, 1, "{ is never closed"}});
  const Error error = refusal("max(\n  q_idx]");
  REQUIRE(error.notes().size() == 1);
  CHECK_THAT(error.notes()[0], ContainsSubstring("mask_mod:1:4"));
  CHECK_THAT(error.what(), ContainsSubstring("   |   q_idx]\n   |        ^"));
}

TEST_CASE("snippet: nothing that is left open can swallow what follows") {
  check_refusals({{"\"abc", 1, 1, "a string is not closed"},
                  {"q_idx == 'a", 1, 10, "a character is not closed"},
                  {"'\\'", 1, 1, "a character is not closed"},
                  {"\"a\nb\"", 1, 1, "a string is not closed"},
                  {"q_idx /* > 1", 1, 7, "a comment is not closed"},
                  {"q_idx /*/", 1, 7, "a comment is not closed"},
                  {"R\"(q_idx)\"", 1, 1, "raw string"},
                  {"u8R\"(q_idx)\"", 1, 1, "raw string"},
                  {"q_idx // \\", 1, 10, "a backslash at the end of a line"},
                  {"q_idx // \\\n > 1", 1, 10, "a backslash at the end of a line"},
                  {"q_idx // \\ \t\r\n > 1", 1, 10, "a backslash at the end of a line"},
                  {"q_idx // \?\?/\n > 1", 1, 10, "trigraph"}});
}

TEST_CASE("snippet: preprocessor directives are refused in every disguise") {
  check_refusals({{"#define q_idx 1\nq_idx", 1, 1, "preprocessor"},
                  {"q_idx\n  # include <x>", 2, 3, "preprocessor"},
                  {"q_idx\n/* x */ #if 1", 2, 9, "preprocessor"},
                  {"q_idx\n%: define x", 2, 1, "preprocessor"},
                  {"q_idx\n\?\?=define x", 2, 1, "preprocessor"},
                  {"q_idx\n\\\n#define x", 2, 1, "a backslash at the end of a line"},
                  {"a ## b", 1, 3, "preprocessor"},
                  {"a %:%: b", 1, 3, "preprocessor"},
                  {"_Pragma(\"x\") 1", 1, 1, "reserved"}});
}

TEST_CASE("snippet: what has no place in a snippet is refused with a reason") {
  check_refusals({{"asm(\"hlt\"), q_idx", 1, 1, "\"asm\" is not allowed"},
                  {"__asm__(\"hlt\")", 1, 1, "\"__asm__\" is reserved"},
                  {"[[likely]] return 1;", 1, 2, "attribute"},
                  {"[ [likely]] return 1;", 1, 3, "attribute"},
                  {"__attribute__((x)) int y = 1; return y;", 1, 1, "reserved"},
                  {"tw_real x = 1; return x;", 1, 1, "reserved"},
                  {"int tilewright_x = 1; return 1;", 1, 5, "reserved"},
                  {"int a__b = 1; return 1;", 1, 5, "reserved"},
                  {"static int x = 1; return x;", 1, 1, "\"static\" is not allowed"},
                  {"sizeof(int) == 4 && q_idx >= kv_idx", 1, 1, "\"sizeof\" is not allowed"},
                  {"kv_idx % alignof(int)", 1, 10, "\"alignof\" is not allowed"},
                  {"goto end; end: return 1;", 1, 1, "\"goto\" is not allowed"},
                  {"struct S { int x; }; return 1;", 1, 1, "\"struct\" is not allowed"},
                  {"*new int(3)", 1, 2, "\"new\" is not allowed"},
                  {"using namespace std; return 1;", 1, 7, "\"namespace\" is not allowed"},
                  {"std::max(q_idx, 1) > 2", 1, 4, ":: is not available"},
                  {"::exit(1)", 1, 1, ":: is not available"},
                  {"a<:0:> > 1", 1, 2, "digraph <:"},
                  {"<% return 1; %>", 1, 1, "digraph <%"},
                  {"({ int x = 1; x; })", 1, 13, "statement inside ({ })"},
                  {"q_idx $ 1", 1, 7, "'$' means nothing"},
                  {"q_idx @ 1", 1, 7, "'@' means nothing"}});
}

TEST_CASE("snippet: a division as Python writes it is refused, comments are not") {
  for (const char* text : {"q_idx // 2 == 0", "(q_idx + 1) //2", "x[i]//16 > 1", "b // h",
                           "return q_idx // 2;", "q_idx // num_kv_heads + 1", "q_idx // 64\n"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(check_snippet(SnippetKind::mask_mod, text),
                      ContainsSubstring("begins a comment in C++"));
  }
  for (const char* text : {"q_idx >= kv_idx // causal", "q_idx >= kv_idx // 2 tokens apart",
                           "q_idx >= kv_idx && // kv_idx\nq_idx < 9", "return q_idx > 1; // 2",
                           "q_idx >= kv_idx //", "q_idx // the row\n>= kv_idx"}) {
    CAPTURE(text);
    CHECK_NOTHROW(check_snippet(SnippetKind::mask_mod, text));
  }
}

TEST_CASE("snippet: bytes that hide what code does are refused") {
  check_refusals({{std::string("q_idx \0 > 1", 11), 1, 7, "control character 0x00"},
                  {"q_idx \x1B[31m", 1, 7, "control character 0x1b"},
                  {"q_idx \r#define", 1, 7, "control character 0x0d"},
                  {"q_idx \f", 1, 7, "control character 0x0c"},
                  {"q_\xC3\xAFx > 1", 1, 3, "outside ASCII"},
                  {"q_idx /* \xE2\x80\xAE */", 1, 10, "invisible character"},
                  {"q_idx /* \xFF */", 1, 10, "UTF-8"},
                  {"q_idx /* \xED\xA0\x80 */", 1, 10, "UTF-8"}});
}

TEST_CASE("snippet: an empty text, and a body that gives no value") {
  check_refusals(
      {{"", 1, 1, "mask_mod is empty"},
       {" \n // only a comment\n", 1, 1, "mask_mod is empty"},
       {"int x = 1;", 1, 10, "never returns a value"},
       {"return;", 1, 1, "return has no value"},
       {"if (h == 0) return ;\nreturn score;", 1, 13, "return has no value"},
       {"auto f = [](int x) { return x; };\nf(1);", 2, 5, "never returns a value"},
       {"auto f = [](int x = int{3}) { return x; }; f(1);", 1, 48, "never returns a value"},
       {"return q_idx > 1", 1, 17, "ends without ;"},
       {"int x = 1; return x", 1, 20, "ends without ;"},
       {"return 1; if (h)", 1, 17, "ends without ;"},
       {"if (h) return 1; else", 1, 22, "ends without ;"}});
}

TEST_CASE("snippet: numbers that no interpretation takes are refused") {
  check_refusals({{"q_idx > 0x", 1, 9, "has no digits"},
                  {"q_idx > 1e", 1, 9, "no digits in its exponent"},
                  {"q_idx > 1.0L", 1, 9, "long double"},
                  {"q_idx > 1.0q", 1, 9, "goes on with \"q\""},
                  {"q_idx > 12abc", 1, 9, "goes on with \"abc\""},
                  {"q_idx > 1.2.3", 1, 9, "goes on with \".3\""},
                  {"q_idx > 0x1e+3", 1, 9, "goes on with \"+3\""},
                  {"q_idx > 0x1.8", 1, 9, "no exponent"},
                  {"q_idx > 1_x", 1, 9, "goes on with \"_x\""}});
  for (const char* right : {"0", "12u", "1'000ull", "0b1'01", "0xFFlu", "017", "1.", ".5", "1e-3",
                            "1E+3f", "0x1p-4", "0x.8P2F", "0xep1"}) {
    CAPTURE(right);
    CHECK(read_number(right).fault.empty());
  }
  CHECK(read_number("0x1e3").is_floating == false);
  CHECK(read_number("1e3").is_floating);
  CHECK(read_number("1e3f").has_suffix);
}

TEST_CASE("snippet: limits on nesting, statements and size") {
  CHECK_NOTHROW(check_snippet(SnippetKind::mask_mod, repeated("(", 64) + "1" + repeated(")", 64)));
  CHECK_THAT(refusal(repeated("(", 65) + "1" + repeated(")", 65)).message(),
             ContainsSubstring("more than 64 deep"));
  CHECK_THAT(refusal(repeated("!", 2000) + "h").message(), ContainsSubstring("more than 1024"));
  CHECK_THAT(refusal(repeated("if (h) ", 300) + "return 1; return 0;").message(),
             ContainsSubstring("more than 1024"));
  CHECK_NOTHROW(check_snippet(SnippetKind::mask_mod,
                              "const int t[] = {" + repeated("1, ", 5000) + "1}; return t[h];"));
  CHECK_THAT(refusal(repeated("a", 65 * 1024)).message(), ContainsSubstring("longer than 65536"));
  CHECK_NOTHROW(check_snippet(SnippetKind::mask_mod, "h > 1 //" + repeated("x", 64 * 1024 - 8)));
}

TEST_CASE("snippet: tokens carry their kind and place") {
  const auto tokens = tokenize("a<=b /* c */\n  1'0.5f \"x\\\"y\" '\\''", SnippetKind::mask_mod);
  REQUIRE(tokens.size() == 6);
  CHECK(tokens[1].text == "<=");
  CHECK(tokens[1].column == 2);
  CHECK(tokens[3].text == "1'0.5f");
  CHECK(tokens[3].kind == SnippetToken::Kind::number);
  CHECK(tokens[3].line == 2);
  CHECK(tokens[3].column == 3);
  CHECK(tokens[4].kind == SnippetToken::Kind::string);
  CHECK(tokens[4].text == "\"x\\\"y\"");
  CHECK(tokens[5].kind == SnippetToken::Kind::character);
  CHECK(texts_of("a<<=b>>c->d...e.5") ==
        std::vector<std::string>{"a", "<<=", "b", ">>", "c", "->", "d", "...", "e", ".5"});
  CHECK(texts_of("x<::y")[1] == "<");
  CHECK(texts_of("x<:::y")[1] == "<:");
}

TEST_CASE("snippet: names_available lists what the kind of snippet sees") {
  Spec spec;
  spec.buffers["bias"] = {.dtype = f16, .shape = {NamedDim::num_q_heads, FreeDim{}, 7}};
  spec.buffers["slopes"] = {.dtype = f32, .shape = {NamedDim::num_q_heads}};
  spec.scalars["cap"] = {};
  const std::string score = names_available(spec, SnippetKind::score_mod);
  CHECK_THAT(score, ContainsSubstring("num_kv_heads, score"));
  CHECK_THAT(score,
             ContainsSubstring("bias(num_q_heads, free, 7) (f16), slopes[num_q_heads] (f32)"));
  CHECK_THAT(score, ContainsSubstring("scalars: cap (f32)"));
  CHECK_THAT(score, ContainsSubstring("tanh"));
  CHECK(names_available(spec, SnippetKind::mask_mod).find("score") == std::string::npos);
}

TEST_CASE("snippet: every function that messages offer is known") {
  const std::string names = names_available(Spec{}, SnippetKind::mask_mod);
  for (const std::string& name : snippet_functions()) {
    CAPTURE(name);
    const bool has_f = name.ends_with("f") && name.size() > 3;
    CHECK_THAT(names, ContainsSubstring(has_f ? name.substr(0, name.size() - 1) : name));
  }
}

TEST_CASE("snippet: 2,000 mutations of the examples pass, or are refused inside the snippet") {
  std::vector<std::pair<SnippetKind, std::string>> snippets;
  for (const auto& entry : std::filesystem::directory_iterator(TILEWRIGHT_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".json") continue;
    const Spec spec = spec_from_file(entry.path());
    if (!spec.score_mod.empty()) snippets.emplace_back(SnippetKind::score_mod, spec.score_mod);
    if (!spec.mask_mod.empty()) snippets.emplace_back(SnippetKind::mask_mod, spec.mask_mod);
  }
  REQUIRE(snippets.size() >= 20);
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const auto& [kind, text] = snippets[seed % snippets.size()];
    const std::string mutation = testing::mutate_snippet(text, kind, seed);
    REQUIRE(mutation == testing::mutate_snippet(text, kind, seed));
    try {
      check_snippet(kind, mutation);
    } catch (const Error& error) {
      ++refused;
      CAPTURE(mutation, error.what());
      REQUIRE(error.code() == ErrorCode::snippet);
      REQUIRE(error.place());
      const SourceLocation place = *error.place();
      REQUIRE(place.file == to_string(kind));
      std::size_t start = 0;
      for (int line = 1; line < place.line; ++line) {
        start = mutation.find('\n', start) + 1;
        REQUIRE(start > 0);
      }
      const std::string line = mutation.substr(start, mutation.find('\n', start) - start);
      REQUIRE(place.line >= 1);
      REQUIRE(place.column >= 1);
      REQUIRE(place.column <= static_cast<int>(line.size()) + 1);
    }
  }
  CHECK(refused > 500);
  CHECK(refused < 1900);
}
