#include "generator/snippet/notes.hpp"

#include <filesystem>
#include <string>

#include "generator/spec/spec_json.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<SnippetNote> notes_on(const std::string& text, bool is_score_mod) {
  Spec spec{.dtype = f32, .head_dim = 64};
  (is_score_mod ? spec.score_mod : spec.mask_mod) = text;
  validate(spec);
  return snippet_notes(spec);
}

}  // namespace

TEST_CASE("snippet notes: what may mean something else is told, with what to write") {
  struct Case {
    const char* text;
    bool is_score_mod;
    int column;
    const char* hint;
  };
  const Case noted = GENERATE(
      Case{"(h ^ 2) > b", false, 4, "pow(h, 2)"},
      Case{"h & b == 1", false, 3, "write (h & b) == 1"},
      Case{"1 == h & 1", false, 8, "write 1 == (h & 1)"},
      Case{"!h == b", false, 1, "write !(h == b)"}, Case{"not h == b", false, 1, "write !(h == b)"},
      Case{"h == 1 && b == 2 || q_idx == 3", false, 18, "brackets"},
      Case{"h > 010", false, 5, "leave out the 0"},
      Case{"(q_idx - kv_idx) % 3 == 1", false, 18, "floor_mod(q_idx - kv_idx, 3)"},
      Case{"-h % 3 > 1", false, 4, "floor_mod(-h, 3)"},
      Case{"h == 1; return true;", false, 1, "return it"},
      Case{"score * (1 / 2)", true, 12, "1.0f / 2"},
      Case{"score + 1 / (h + 1)", true, 11, "1.0f / (h + 1)"},
      Case{"float(h)", true, 1, "score + ..."});
  CAPTURE(noted.text);
  const std::vector<SnippetNote> notes = notes_on(noted.text, noted.is_score_mod);
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].place.column == noted.column);
  CHECK_THAT(to_string(notes[0]), ContainsSubstring(noted.hint));
}

TEST_CASE("snippet notes: what says what it means has none") {
  const char* const mask =
      GENERATE("(h > 1) ^ (b > 1)", "h < 3 & b < 4", "(h & 1) == 0", "not (h == b)", "!h && b == 1",
               "(h == 1 && b == 2) || q_idx == 3", "(q_idx - kv_idx) % 2 == 0",
               "const auto& x = h; return x == 1;",
               "auto f = [&](int x) { return x < 3; }; f(h); return f(b);",
               "for (int i = 0; i < 3; i += 1) { if (i == h) return true; } return false;");
  CAPTURE(mask);
  CHECK(notes_on(mask, false).empty());
  CHECK(notes_on("score * (4 / 2)", true).empty());
  CHECK(notes_on("score * 1.0f / 2", true).empty());
  CHECK(notes_on("int x = 3; x += 2; score *= 2; return score * x;", true).empty());
}

TEST_CASE("snippet notes: no example has one") {
  const std::filesystem::path folder = std::filesystem::path(TILEWRIGHT_SOURCE_DIR) / "examples";
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".json") continue;
    CAPTURE(file.path().string());
    CHECK(snippet_notes(spec_from_file(file.path())).empty());
    ++count;
  }
  CHECK(count > 15);
}
