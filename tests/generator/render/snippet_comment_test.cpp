#include "generator/render/snippet_comment.hpp"

#include <sstream>
#include <string>
#include <vector>

#include "generator/render/kernel_source.hpp"
#include "generator/render/templates.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;

Spec spec_of(const std::string& score_mod, DType dtype = bf16) {
  return {.dtype = dtype,
          .head_dim = 64,
          .score_mod = score_mod,
          .buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}},
          .scalars = {{"cap", {.dtype = f32, .default_value = 50.0}}}};
}

std::vector<std::string> comment(const std::string& score_mod,
                                 ScoreForm form = ScoreForm::reduced) {
  const Spec spec = spec_of(score_mod);
  return snippet_comment(SpecFacts(spec), SnippetKind::score_mod, form);
}

TEST_CASE("snippet comments: the user's text and the fast paths that changed it") {
  using Lines = std::vector<std::string>;
  const std::string alibi = "score +\n\tslopes[h] * (kv_idx - q_idx)";
  CHECK(comment(alibi) == Lines{"score_mod of the spec:", "  score +",
                                "   slopes[h] * (kv_idx - q_idx)",
                                "score_slope: the kernel adds (kv_idx - q_idx) times the slope, "
                                "which follows."});
  CHECK(comment(alibi, ScoreForm::simplified).size() == 3);
  CHECK(comment("2 * cap * tanh(score / cap)").at(2) ==
        "score_factors: the kernel multiplies scores by 1 / cap and what follows by 2 * cap.");
  CHECK(comment("cap * tanh(score / cap)").at(3) ==
        "fixed_maximum: the softmax subtracts one bound from all scores.");
  CHECK(comment("score * score").size() == 2);
  CHECK(comment("").empty());
}

// A comment's line that ended with a backslash would take the function's first line with it.
TEST_CASE("snippet comments: no text ends a comment or joins the next line to it") {
  for (const char* refused :
       {"score // \\", "score // \\  ", "score // \\\n + 1", "score // ?\?/"}) {
    CHECK_THROWS_AS(comment(refused), Error);
  }
  const std::vector<std::string> texts = {"score /* */ // */ \\ a ", "score // a\r\n + 1 /*\n\n*/",
                                          "score // \xc3\xa9 // a", "score // \\ /"};
  for (const std::string& text : texts) {
    INFO(text);
    for (const std::string& line : comment(text)) {
      CHECK(line.find_first_of("\n\r\v\f") == std::string::npos);
      CHECK_FALSE(line.ends_with('\\'));
      CHECK_FALSE(line.ends_with("?\?/"));
      CHECK_FALSE(line.ends_with(' '));
    }
    // Every line up to the function's is a comment.
    const std::string kernel =
        render_kernel(spec_of(text, f32), Target::parse("sm_80"), KernelVariant::parse("forward"),
                      *default_template_loader())
            .text;
    const std::size_t begin = kernel.find("\n// score_mod of the spec:\n");
    REQUIRE(begin != std::string::npos);
    std::istringstream lines(kernel.substr(begin + 1));
    for (std::string line;
         std::getline(lines, line) && line != "template <bool tw_inside = false>";) {
      CHECK(line.starts_with("//"));
      CHECK_FALSE(line.ends_with('\\'));
    }
  }
}

}  // namespace
