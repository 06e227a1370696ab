#include "generator/spec/mask_combination.hpp"

#include "generator/snippet/snippet.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

const MaskMod kCausal{.text = "q_idx >= kv_idx", .name = "causal"};
const MaskMod kWindow{.text = "q_idx - kv_idx < window",
                      .scalars = {{"window", {.dtype = i32, .default_value = 64}}},
                      .name = "window"};
const MaskMod kDocuments{
    .text = "const int mine = doc[q_idx];\nreturn mine == doc[kv_idx];  // same",
    .buffers = {{"doc", {.dtype = i32, .shape = {NamedDim::kv_len}}}},
    .name = "documents"};

template <typename Action>
Error error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "nothing was thrown");
}

}  // namespace

TEST_CASE("mask combination: expressions stand in brackets on lines of their own") {
  const MaskMod both = mask_and({kCausal, kWindow});
  CHECK(both.text == "(\nq_idx >= kv_idx\n) && (\nq_idx - kv_idx < window\n)");
  CHECK(both.scalars == kWindow.scalars);
  CHECK(mask_or({kCausal, kWindow}).text ==
        "(\nq_idx >= kv_idx\n) || (\nq_idx - kv_idx < window\n)");
}

TEST_CASE("mask combination: a body becomes a lambda, and a comment swallows nothing") {
  const MaskMod both = mask_or({kDocuments, kCausal});
  CHECK(
      both.text ==
      "(\n[&]() -> bool {\nconst int mine = doc[q_idx];\nreturn mine == doc[kv_idx];  // same\n}()"
      "\n) || (\nq_idx >= kv_idx\n)");
  CHECK(check_snippet(SnippetKind::mask_mod, both.text).is_expression);
  CHECK(both.buffers == kDocuments.buffers);
}

TEST_CASE("mask combination: combinations nest, and one mask stays as it is") {
  const MaskMod all = mask_and({mask_or({kDocuments, kCausal}), kWindow});
  CHECK(check_snippet(SnippetKind::mask_mod, all.text).is_expression);
  CHECK(all.buffers.size() == 1);
  CHECK(all.scalars.size() == 1);
  CHECK(mask_and({kWindow}) == kWindow);
  CHECK_THAT(error_of([] { mask_and({}); }).what(), ContainsSubstring("mask_and of no masks"));
}

TEST_CASE("mask combination: a mask without a snippet keeps everything") {
  CHECK(mask_and({MaskMod{}, kCausal}) == kCausal);
  CHECK(mask_or({kCausal, MaskMod{}}).text.empty());
}

TEST_CASE("mask combination: equal declarations are one, different ones are refused") {
  MaskMod other = kWindow;
  CHECK(mask_and({kWindow, other}).scalars == kWindow.scalars);
  other.scalars["window"].default_value = 65;
  const Error scalar = error_of([&] { mask_and({kWindow, other}); });
  CHECK(scalar.code() == ErrorCode::spec);
  CHECK_THAT(scalar.what(), ContainsSubstring("the scalar \"window\" otherwise"));
  const MaskMod buffer{.text = "window[q_idx] > kv_idx",
                       .buffers = {{"window", {.dtype = i32, .shape = {NamedDim::q_len}}}}};
  CHECK_THAT(error_of([&] {
               mask_or({kWindow, buffer});
             }).what(),
             ContainsSubstring("with mask 2, \"window\" is a buffer and a scalar"));
}

TEST_CASE("mask combination: a refused snippet is shown with its own name, line and column") {
  const MaskMod wrong{.text = "const int x = 1;\nreturn q_idx] > x;", .name = "wrong"};
  const Error error = error_of([&] { mask_and({kCausal, kDocuments, wrong}); });
  REQUIRE(error.place());
  CHECK(to_string(*error.place()) == "wrong:2:13");
  CHECK(error.place()->excerpt == "return q_idx] > x;");
}

TEST_CASE("mask combination: an error about the combined text is moved into its part") {
  const MaskMod all = mask_and({mask_or({kCausal, kDocuments}), kWindow});
  for (const auto& [part, line] : {std::pair{"documents", 2}, std::pair{"window", 1}}) {
    const std::string part_text = part == kWindow.name ? kWindow.text : "return mine";
    const std::size_t offset = all.text.find(part_text);
    const Error error =
        in_its_part(snippet_error(SnippetKind::mask_mod, all.text, offset + 3, "wrong", ""), all);
    REQUIRE(error.place());
    CHECK(error.place()->file == part);
    CHECK(error.place()->line == line);
    CHECK(error.place()->column == 4);
    CHECK(error.place()->excerpt.starts_with(part_text));
  }
  const Error bracket =
      in_its_part(snippet_error(SnippetKind::mask_mod, all.text, 0, "wrong", ""), all);
  CHECK(to_string(*bracket.place()) == "mask_mod:1:1");
}

TEST_CASE("mask combination: a spec gives its mask and takes another") {
  Spec spec{.dtype = f32, .head_dim = 16};
  spec.score_mod = "score * cap";
  spec.mask_mod = "doc[q_idx] == doc[kv_idx] && kv_idx < last";
  spec.buffers = kDocuments.buffers;
  spec.scalars = {{"cap", {.dtype = f32}}, {"last", {.dtype = i32}}};
  const MaskMod mask = mask_of(spec);
  CHECK(mask.buffers == spec.buffers);
  CHECK(mask.scalars.size() == 1);
  CHECK(mask.scalars.contains("last"));

  const Spec windowed = with_mask(spec, mask_and({kCausal, kWindow}));
  CHECK(windowed.buffers.empty());
  CHECK(windowed.scalars.contains("cap"));
  CHECK(windowed.scalars.contains("window"));
  CHECK(!windowed.scalars.contains("last"));
  validate(windowed);
  CHECK(with_mask(spec, mask) == spec);
}
