#include "generator/messages/usual_mistakes.hpp"

#include <string>

#include "base/error.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/spec/dtype.hpp"
#include "generator/spec/spec_json.hpp"
#include "generator/spec/target.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("usual mistakes: what other libraries call it has an answer, a name of ours has none") {
  for (const char* name :
       {"q", "kv", "inf", "NEG_INF", "True", "None", "lambda", "where", "sigmoid", "torch", "math",
        "np", "causal", "window_size", "block_size", "sinks"}) {
    CAPTURE(name);
    CHECK_FALSE(usual_mistake(MistakeIn::snippet, name).empty());
  }
  for (const std::string& name : snippet_variables()) {
    CAPTURE(name);
    CHECK(usual_mistake(MistakeIn::snippet, name).empty());
  }
  for (const std::string& name : snippet_functions()) {
    CAPTURE(name);
    CHECK(usual_mistake(MistakeIn::snippet, name).empty());
  }
  for (const std::string& name : Target::all_names()) {
    CHECK(usual_mistake(MistakeIn::target, name).empty());
  }
  CHECK(usual_mistake(MistakeIn::snippet, "zzz").empty());
  CHECK_THAT(std::string(usual_mistake(MistakeIn::device, "GPU")), ContainsSubstring("\"cuda\""));
  CHECK_THAT(std::string(usual_mistake(MistakeIn::device, "rocm")), ContainsSubstring("NVIDIA"));
  CHECK_THAT(std::string(usual_mistake(MistakeIn::option, "--spec")),
             ContainsSubstring("SPEC is the first argument"));
}

TEST_CASE("usual mistakes: a key of another library is answered with the key to write") {
  const auto [key, hint] =
      GENERATE(table<std::string, std::string>({{"causal", "q_idx >= kv_idx"},
                                                {"is_causal", "q_idx >= kv_idx"},
                                                {"window_size", "mask_mod"},
                                                {"block_size", "\"block\": [128, 128]"},
                                                {"num_heads", "each call"},
                                                {"sm_scale", "\"scale\""}}));
  CAPTURE(key);
  try {
    spec_from_json(R"({"dtype": "f32", "head_dim": 64, ")" + key + R"(": 1})", "s.json");
    FAIL_CHECK("accepted");
  } catch (const Error& error) {
    CHECK_THAT(error.hint(), ContainsSubstring(hint));
  }
}
