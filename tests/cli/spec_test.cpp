// What is wrong with a spec is said before anything is rendered, compiled or written.

#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct WrongSpec {
  std::string text;
  std::string code;
  std::string words;
};

}  // namespace

TEST_CASE("cli: a wrong spec is one error with a code, and leaves no output") {
  const WrongSpec wrong = GENERATE(values<WrongSpec>({
      {"", "spec", ""},
      {"dtype: f32", "spec", ""},
      {"[1, 2]", "spec", ""},
      {R"({"dtype": "f32"})", "spec", "head_dim"},
      {R"({"dtype": "f32", "head_dim": 7})", "spec", "7"},
      {R"({"dtype": "f33", "head_dim": 16})", "spec", "f33"},
      {R"({"dtype": "f32", "head_dim": 16, "gradients": true})", "spec", "list of names"},
      {R"({"dtype": "f32", "head_dim": 16, "kv_layout": "paged"})", "spec", "layout is"},
      {R"({"dtype": "f32", "head_dim": 16, "mask_mood": "true"})", "spec", "mask_mod"},
      {R"({"dtype": "f32", "head_dim": 16, "mask_mod": "(q_idx"})", "snippet", "mask_mod"},
      {R"({"dtype": "f32", "head_dim": 16, "mask_mod": "#define x"})", "snippet", "mask_mod:1:1"},
  }));
  const Folder folder;
  const std::string spec = folder.write("s.json", wrong.text);
  const Ended ended = start(
      {"run", spec, "--inputs", "random:1,1,1,16,16", "--outputs", folder.path("out.safetensors")});
  INFO(wrong.text << "\n" << ended.err);
  REQUIRE(ended.status == 2);
  REQUIRE_THAT(ended.err, ContainsSubstring("error[" + wrong.code + "]"));
  REQUIRE_THAT(ended.err, ContainsSubstring(wrong.words));
  REQUIRE(ended.out.empty());
  REQUIRE(folder.names() == std::vector<std::string>{"s.json"});
}

TEST_CASE("cli: a snippet that does not compile is an error at its own line and column") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"({"dtype": "f32", "head_dim": 16,
    "score_mod": "float twice = score * 2;\nreturn twice + slope;"})");
  const Ended ended = start(
      {"run", spec, "--inputs", "random:1,1,1,16,16", "--outputs", folder.path("out.safetensors")});
  REQUIRE(ended.status == 2);
  REQUIRE_THAT(ended.err, ContainsSubstring("error[snippet]"));
  REQUIRE_THAT(ended.err, ContainsSubstring("score_mod:2:16"));
  REQUIRE(folder.names() == std::vector<std::string>{"s.json"});
}

TEST_CASE("cli: a misspelt function is named in words of the snippet, with the right one") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "f32", "head_dim": 16,
    "score_mod": "50.0 * tahn(score / 50.0)"})json");
  const Ended ended = start({"check", spec, "--device", "cpu", "--inputs", "random:1,1,1,16,16"});
  REQUIRE(ended.status == 2);
  CHECK_THAT(ended.err, ContainsSubstring("error[snippet]: "));
  CHECK_THAT(ended.err, ContainsSubstring("did you mean \"tanh\"?"));
  CHECK_THAT(ended.err.substr(0, ended.err.find("  note:")),
             !ContainsSubstring("template parameter"));
}

TEST_CASE("cli: a path through a snippet that returns nothing is an error at its end") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "f32", "head_dim": 16,
    "mask_mod": "if (q_idx >= kv_idx) { return true; }"})json");
  const Ended ended =
      start({"mask", spec, "--q-len", "40", "--kv-len", "40"}, {{"TILEWRIGHT_DEVICE", "cpu"}});
  REQUIRE(ended.status == 2);
  CHECK_THAT(ended.err, ContainsSubstring("error[snippet]: control reaches end"));
  CHECK_THAT(ended.err, ContainsSubstring("mask_mod:1:38"));
  CHECK_THAT(ended.err, ContainsSubstring("add a return at the end"));
}

TEST_CASE("cli: a snippet that divides by zero is an error, not a crash") {
  const Folder folder;
  const std::string spec = folder.write(
      "s.json", R"({"dtype": "f32", "head_dim": 16, "mask_mod": "q_idx / (kv_idx - 3) > 1"})");
  const std::string out = folder.path("out.safetensors");
  const std::vector<std::string> call = {"--inputs", "random:1,1,1,16,16", "--outputs", out};
  for (const char* verb : {"run", "check"}) {
    std::vector<std::string> arguments = {verb, spec, "--json"};
    arguments.insert(arguments.end(), call.begin(), call.end());
    const Ended ended = start(arguments);
    INFO(verb << ": " << ended.err);
    REQUIRE(ended.status == 2);
    REQUIRE_THAT(ended.err, ContainsSubstring("error[snippet]"));
    REQUIRE(ended.json().at("error").at("code") == "snippet");
  }
  REQUIRE(folder.names() == std::vector<std::string>{"s.json"});
}

TEST_CASE("cli: every integer division by zero is the snippet's error, with either compiler") {
  const Folder folder;
  const auto [place, snippet] = GENERATE(table<std::string, std::string>({
      {"score_mod", "score + kv_idx % (q_idx - q_idx)"},
      {"score_mod", "score + kv_idx / (q_idx - q_idx)"},
      {"score_mod", "int d = q_idx - kv_idx; return score + 7 / d;"},
      {"mask_mod", "kv_idx % (q_idx - q_idx) == 0"},
      {"mask_mod", "1 % (kv_idx - 3) < 5"},
  }));
  const std::string spec = folder.write(
      "s.json", R"({"dtype": "f32", "head_dim": 16, ")" + place + "\": \"" + snippet + "\"}");
  for (const char* compiler : {"g++", "clang++"}) {
    const Environment environment = {{"TILEWRIGHT_DEVICE", "cpu"}, {"TILEWRIGHT_CXX", compiler}};
    for (const std::string verb : {"run", "check"}) {
      std::vector<std::string> words = {
          verb, spec, "--inputs", "random:1,1,1,16,16", "--outputs", folder.path("o")};
      const Ended ended = start(words, environment);
      CAPTURE(compiler, verb, snippet, ended.err, ended.out);
      CHECK(ended.status == 2);
      CHECK_THAT(ended.err, ContainsSubstring("error[snippet]"));
      CHECK_THAT(ended.err, ContainsSubstring("by zero"));  // `check` names the place
    }
  }
}

TEST_CASE("cli: each verb that runs a snippet reports a division by zero, and of the least int") {
  const Folder folder;
  const std::string spec = folder.write(
      "zero.json",
      R"({"dtype": "f32", "head_dim": 16, "mask_mod": "kv_idx % (q_idx - q_idx) == 0"})");
  const std::string least = folder.write(
      "least.json",
      R"({"dtype": "f32", "head_dim": 16, "mask_mod": "(-2147483647 - 1) / (q_idx - 1 - kv_idx) > kv_idx"})");
  const std::string inputs = "random:1,1,1,8,8";
  const std::vector<std::pair<std::vector<std::string>, int>> calls = {
      {{"mask", spec, "--q-len", "8", "--kv-len", "8"}, 2},
      {{"bench", "--spec", spec, "--q-len", "64", "--batch", "1", "--heads", "1"}, 2},
      {{"fuzz", "--spec", spec, "--cases", "2", "--workers", "1", "--out", folder.path("f")}, 1},
      {{"mask", least, "--q-len", "8", "--kv-len", "8"}, 2},
      {{"run", least, "--inputs", inputs, "--outputs", folder.path("o")}, 2},
      {{"check", least, "--inputs", inputs}, 2},
  };
  for (const auto& [words, status] : calls) {
    const Ended ended = start(words, {{"TILEWRIGHT_DEVICE", "cpu"}});
    CAPTURE(words, ended.err, ended.out);
    CHECK(ended.status == status);
    CHECK_THAT(ended.err + ended.out, ContainsSubstring("by zero") || ContainsSubstring("by -1"));
  }
}

TEST_CASE("cli: a spec that is a folder or not there is a file error") {
  const Folder folder;
  for (const std::string& path : {folder.path(""), folder.path("no.json")}) {
    const Ended ended = start({"render", path});
    REQUIRE(ended.status == 2);
    REQUIRE_THAT(ended.err, ContainsSubstring("error[file]"));
  }
}
