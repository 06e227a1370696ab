#include "generator/snippet/notes.hpp"

#include <cmath>
#include <filesystem>
#include <string>

#include "generator/snippet/dropout_note.hpp"
#include "generator/spec/spec_json.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

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

namespace {

std::vector<SnippetNote> notes_on_dropout(const std::string& text) {
  Spec spec{.dtype = f32, .head_dim = 64, .dropout = text};
  spec.scalars["seed"] = {.dtype = i64};
  validate(spec);
  return snippet_notes(spec);
}

}  // namespace

TEST_CASE("snippet notes: a probability of dropout that is a number outside 0 to 1 is told") {
  struct Case {
    const char* text;
    const char* message;
    const char* hint;
  };
  const Case noted = GENERATE(Case{"1", "from 1 on every weight is dropped", "below 1"},
                              Case{"1.0f", "out is 0", "such as 0.1f"},
                              Case{"10", "dropout is 10, and from 1 on", "for 10 % write 0.1f"},
                              Case{"2.5e2", "from 1 on", "from 0 to below 1"},
                              Case{"-0.1f", "below 0 no weight is dropped", "from 0 to below 1"},
                              Case{"NAN", "is NaN: every weight is dropped", "from 0 to below 1"});
  CAPTURE(noted.text);
  const std::vector<SnippetNote> notes = notes_on_dropout(noted.text);
  REQUIRE(notes.size() == 1);
  CHECK(to_string(notes[0]).starts_with("dropout:1:1: "));
  CHECK_THAT(to_string(notes[0]),
             ContainsSubstring(noted.message) && ContainsSubstring(noted.hint));
}

TEST_CASE("snippet notes: a dropout that a call's values put outside 0 to 1 is told") {
  const auto note_of = [](const std::string& text, const std::vector<double>& of_heads) {
    Spec spec{.dtype = f32, .head_dim = 64, .dropout = text};
    spec.scalars = {{"seed", {.dtype = i64}}, {"p", {.dtype = f32}}};
    const auto note = dropout_note(spec, of_heads);
    return note ? to_string(*note) : "";
  };
  CHECK(note_of("p", {0, 0.5, 0.999}).empty());
  CHECK_THAT(note_of("p", {1, 1}),
             StartsWith("dropout:1:1: dropout is 1 by this call's values, and "
                        "from 1 on every weight is dropped"));
  CHECK_THAT(note_of("p", {NAN}), ContainsSubstring("dropout is NaN by this call's values: every"));
  CHECK_THAT(note_of("p * h", {0, 10}), ContainsSubstring("dropout is 10 in head 1, and from 1") &&
                                            ContainsSubstring("for 10 % write 0.1f"));
  CHECK_THAT(note_of("p", {-0.5}), ContainsSubstring("below 0 no weight is dropped"));
  CHECK(note_of("1", {1}).empty());                          // snippet_notes() tells it
  CHECK(note_of("h < 2 ? 0.0f : 1.0f", {0, 0, 1}).empty());  // its author chose it
}

TEST_CASE("snippet notes: a usual probability of dropout has none") {
  const char* const text = GENERATE("0", "0.0f", "0.1", "0.999f", "-0.0", "h < 2 ? 0.0f : 1.0f");
  CAPTURE(text);
  CHECK(notes_on_dropout(text).empty());
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
