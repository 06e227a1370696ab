#include "generator/spec/gradients.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "generator/render/kernel_source.hpp"
#include "generator/render/templates.hpp"
#include "generator/spec/spec_json.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

std::string spec_text(const std::string& gradients, const std::string& more = "") {
  return R"({"dtype": "f32", "head_dim": 16, "score_mod": "score * cap + slopes[h] + n + table[0]",
"mask_mod": "q_idx >= kv_idx + far[0]",
"buffers": {"slopes": {"dtype": "f32", "shape": [4]}, "table": {"dtype": "i32", "shape": [4]},
            "far": {"dtype": "f32", "shape": [4]}, "unread": {"dtype": "f32", "shape": [4]}},
"scalars": {"cap": {"dtype": "f32"}, "n": {"dtype": "i32"}},
"outputs": ["out", "lse"], "gradients": )" +
         gradients + more + "}";
}

std::string refusal(const std::string& text) {
  try {
    spec_from_json(text, "s.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::spec);
    return error.message() + " | " + error.hint();
  }
  return "none";
}

TEST_CASE("gradients: names of tensors, buffers and scalars, in the order of kernels") {
  const Spec spec = spec_from_json(spec_text(R"(["slopes", "v", "cap", "q"])"), "s.json");
  CHECK(gradient_names(spec) == std::vector<std::string>{"slopes", "cap"});
  CHECK(has_gradient(spec, "q"));
  CHECK_FALSE(has_gradient(spec, "k"));
  CHECK(spec_from_json(to_json(spec), "s.json") == spec);
}

TEST_CASE("gradients: what has none is refused by its name") {
  const std::pair<std::string, std::string> cases[] = {
      {R"("q")", "list of names"},
      {"[]", "list of names"},
      {"[1]", "string"},
      {R"(["q", "q"])", "names \"q\" twice"},
      {R"(["slope"])", "did you mean \"slopes\""},
      {R"(["q_idx"])", "which is not there"},
      {R"(["table"])", "the buffer \"table\", which is i32"},
      {R"(["n"])", "the scalar \"n\", which is i32"},
      {R"(["far"])", "which mask_mod alone reads"},
      {R"(["unread"])", "which score_mod does not read"},
  };
  for (const auto& [gradients, words] : cases) {
    CAPTURE(gradients);
    CHECK_THAT(refusal(spec_text(gradients)), ContainsSubstring(words));
  }
}

TEST_CASE("gradients: need lse, a dense layout, and their own names") {
  const auto of = [](const std::string& fields) {
    return R"({"dtype": "f32", "head_dim": 16, "gradients": ["q"], )" + fields + "}";
  };
  CHECK_THAT(refusal(of(R"("outputs": ["out"])")),
             ContainsSubstring("\"outputs\": [\"out\", \"lse\"]"));
  CHECK_THAT(refusal(of(R"("outputs": ["out", "max_scores"])")),
             ContainsSubstring("\"outputs\": [\"out\", \"lse\", \"max_scores\"]"));
  CHECK_NOTHROW(of(R"("outputs": ["out", "lse"], "layout": "packed")"));
  CHECK_THAT(refusal(of(R"("outputs": ["out", "lse"], "layout": "packed", "kv_layout": "paged")")),
             ContainsSubstring("k and v in pages have none"));
  for (const char* const name : {"q", "dout", "dlse", "lse", "out", "dq", "d_x"}) {
    CAPTURE(name);
    const std::string buffer = R"("outputs": ["out", "lse"], "buffers": {")" + std::string(name) +
                               R"(": {"dtype": "f32", "shape": []}})";
    CHECK_THAT(refusal(of(buffer)), ContainsSubstring("one of its own tensors"));
  }
}

TEST_CASE("gradients: kernels of each target, and of snippets whose text says the derivative") {
  const Spec spec = spec_from_json(spec_text(R"(["q"])"), "s.json");
  std::vector<std::string> names;
  for (const KernelVariant& variant : kernel_set(spec, Target::parse("cpu-x86-64-v3"))) {
    names.push_back(variant.name());
  }
  CHECK(std::count(names.begin(), names.end(), "backward") == 1);
  CHECK(std::count(names.begin(), names.end(), "backward_masked") == 1);
  names.clear();
  for (const KernelVariant& variant : kernel_set(spec, Target::parse("sm_90a"))) {
    names.push_back(variant.name());
  }
  CHECK(std::count(names.begin(), names.end(), "backward") == 1);
  CHECK(std::count(names.begin(), names.end(), "backward_masked_unaligned") == 1);
  Spec opaque = spec;
  opaque.score_mod = "float a[1] = {score}; return a[0] + slopes[h];";
  CHECK_THROWS_WITH(render_kernel(opaque, Target::parse("cpu-x86-64-v3"), backward_kernel(opaque),
                                  *default_template_loader()),
                    ContainsSubstring("no derivative of this snippet"));
  Spec none = spec;
  none.gradients.clear();
  CHECK_THROWS_WITH(render_kernel(none, Target::parse("cpu-x86-64-v3"), backward_kernel(none),
                                  *default_template_loader()),
                    ContainsSubstring("names no gradients"));
}

}  // namespace
