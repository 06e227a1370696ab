#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

const Environment kOnCpu = {{"TILEWRIGHT_DEVICE", "cpu"}};

TEST_CASE("cli: fuzz says what it did, and a seed repeats") {
  const Folder folder;
  const std::vector<std::string> words = {
      "fuzz", "--cases",      "6",     "--seed",           "42",    "--device", "cpu", "--compiles",
      "0",    "--no-offsets", "--out", folder.path("out"), "--json"};
  const Ended ended = start(words, kOnCpu);
  REQUIRE(ended.status == 0);
  const nlohmann::json report = ended.json();
  CHECK(report.at("seed") == 42);
  CHECK(report.at("cases") == 6);
  CHECK(report.at("kernels") >= 2);
  CHECK(report.at("failures").empty());
  CHECK(report.at("relations").size() == 29);
  CHECK(report.at("pairs").at("covered") > 500);
  CHECK(start(words, kOnCpu).json().at("pairs") == report.at("pairs"));
}

TEST_CASE("cli: fuzz finds undefined behaviour of a user's snippet, and replays it") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"({
    "dtype": "f32", "head_dim": 16,
    "score_mod": "score + bias[q_idx + q_len % 2]",
    "buffers": {"bias": {"dtype": "f32", "shape": ["q_len"]}}
  })");
  const Ended ended = start({"fuzz", "--spec", spec, "--cases", "12", "--seed", "1", "--device",
                             "cpu", "--compiles", "0", "--no-offsets", "--out", folder.path("out")},
                            kOnCpu);
  REQUIRE(ended.status == 1);
  CHECK_THAT(ended.err, ContainsSubstring("outside its extent"));
  CHECK_THAT(ended.out, ContainsSubstring("undefined"));
  // The message of the smallest case: one query suffices.
  CHECK_THAT(ended.out, ContainsSubstring("index 1 of buffer \"bias\" is outside its extent 1"));
  CHECK_THAT(ended.out, ContainsSubstring("tilewright fuzz --replay"));
  std::string found;
  bool has_source = false;
  for (const auto& file : std::filesystem::directory_iterator(folder.path("out"))) {
    if (file.path().extension() == ".json") found = file.path().string();
    has_source = has_source || file.path().extension() == ".cpp";
  }
  REQUIRE_FALSE(found.empty());
  CHECK(has_source);
  const Ended again = start({"fuzz", "--replay", found, "--json"}, kOnCpu);
  CHECK(again.status == 1);
  CHECK(again.json().at("failures").at(0).at("failure") == "undefined");
}

TEST_CASE("cli: fuzz keeps to self-attention where it is asked to, and says that it can") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({
    "dtype": "f32", "head_dim": 16,
    "mask_mod": "doc(b, q_idx) == doc(b, kv_idx)",
    "buffers": {"doc": {"dtype": "i32", "shape": ["batch", "kv_len"], "range": [0, 7]}}
  })json");
  const auto fuzz = [&](const char* limit) {
    return start({"fuzz", "--spec", spec, "--cases", "12", "--seed", "3", "--device", "cpu",
                  "--compiles", "0", "--out", folder.path("out"), limit},
                 kOnCpu);
  };
  const Ended other_lengths = fuzz("--no-offsets");
  REQUIRE(other_lengths.status == 1);
  CHECK_THAT(other_lengths.out, ContainsSubstring("--self-attention"));
  const Ended alike = fuzz("--self-attention");
  INFO(alike.err << alike.out);
  CHECK(alike.status == 0);
  CHECK_THAT(alike.out, ContainsSubstring("12 calls of kernels from 1 snippet ran"));
  CHECK_THAT(alike.out, StartsWith("ok: nothing failed\n"));
}

TEST_CASE("cli: fuzz gives null dimensions the extents of --buffer, and says that it can") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({
    "dtype": "f32", "head_dim": 16, "score_mod": "score + bias[kv_idx - q_idx + q_len - 1]",
    "buffers": {"bias": {"dtype": "f32", "shape": [null]}}})json");
  const auto fuzz = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "fuzz",     "--spec", spec,    "--cases",          "8",          "--seed", "3",
        "--device", "cpu",    "--out", folder.path("out"), "--compiles", "0",      "--no-offsets"};
    words.insert(words.end(), more.begin(), more.end());
    return start(words, kOnCpu);
  };
  const Ended as_check = fuzz({});
  CHECK(as_check.status == 1);
  CHECK_THAT(as_check.out,
             ContainsSubstring("index 64 of buffer \"bias\" is outside its extent 64") &&
                 ContainsSubstring("--buffer bias=N gives them N"));
  const Ended longer = fuzz({"--buffer", "bias=4000"});
  INFO(longer.out << longer.err);
  CHECK(longer.status == 0);
  const Ended too_short = fuzz({"--buffer", "bias=2"});
  CHECK(too_short.status == 1);
  CHECK_THAT(too_short.out,
             ContainsSubstring("is outside its extent 2") && !ContainsSubstring("--buffer bias=N"));
  CHECK(fuzz({"--buffer", "bias=4,4"}).status == 2);
  CHECK(fuzz({"--buffer", "other=4"}).status == 2);
  CHECK(start({"fuzz", "--buffer", "bias=4"}, kOnCpu).status == 2);
}

TEST_CASE("cli: fuzz counts what was refused, and its advice fits the finding") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({
    "dtype": "f32", "head_dim": 16, "score_mod": "score + kv_idx % (q_idx - q_idx)"})json");
  const Ended refused = start({"fuzz", "--spec", spec, "--cases", "6", "--seed", "3", "--device",
                               "cpu", "--out", folder.path("out"), "--compiles", "0"},
                              kOnCpu);
  INFO(refused.err << refused.out);
  CHECK(refused.status == 1);
  CHECK_THAT(refused.out, StartsWith("FAILED: 6 of 6 cases"));
  CHECK_THAT(refused.out, ContainsSubstring(": 0 calls of kernels from "));
  CHECK_THAT(refused.out, ContainsSubstring("6 more of 6 were refused before their kernel ran"));
  CHECK_THAT(refused.out, !ContainsSubstring("; 0 kernels were compiled"));
  CHECK_THAT(refused.out, ContainsSubstring("needs a guard"));
  CHECK_THAT(refused.out, !ContainsSubstring("--self-attention"));
}

TEST_CASE("cli: fuzz keeps a spec's gradients, and says what no case has for them") {
  const Folder folder;
  const auto fuzz = [&](const std::string& score_mod, const std::string& more) {
    const std::string spec = folder.write(
        "s.json",
        fmt::format(R"({{"dtype": "f32", "head_dim": 16, "score_mod": "{}"{}}})", score_mod, more));
    std::vector<std::string> words = {
        "fuzz",       "--spec", spec,     "--cases", "2",     "--device",        "cpu",
        "--compiles", "0",      "--seed", "5",       "--out", folder.path("out")};
    if (more.empty()) words.emplace_back("--gradients");
    return start(words, kOnCpu);
  };
  const Ended kept = fuzz("score + 1", R"(, "outputs": ["out", "lse"], "gradients": ["q", "v"])");
  CHECK(kept.status == 0);
  CHECK_THAT(kept.err, ContainsSubstring("each case has gradients, so none has dtype=f8e4m3"));
  CHECK_THAT(kept.out, StartsWith("ok: nothing failed"));
  const Ended asked = fuzz("score + 1", "");
  CHECK(asked.status == 0);
  CHECK_THAT(asked.err, ContainsSubstring("each case has gradients"));
  const char* const lambda = "auto f = [=](float x) { return 2 * x; }; return f(score);";
  const auto says = [](const Ended& refused, const char* what) {
    CHECK(refused.status == 2);
    CHECK_THAT(refused.err, StartsWith("error[snippet]: no derivative of this snippet") &&
                                ContainsSubstring("score_mod:1:") &&
                                ContainsSubstring("write it without lambdas") &&
                                ContainsSubstring(what));
  };
  says(fuzz(lambda, ""), "or fuzz it without --gradients");
  says(fuzz(lambda, R"(, "outputs": ["out", "lse"], "gradients": ["q"])"),
       "or fuzz a copy without \"gradients\"");
}

TEST_CASE("cli: fuzz refuses what makes no sense") {
  CHECK(start({"fuzz", "--seed", "-1", "--cases", "1"}, kOnCpu).status == 2);
  CHECK(start({"fuzz", "--seconds", "3", "--cases", "1"}, kOnCpu).status == 2);
  CHECK(start({"fuzz", "--replay", "/no/such/case.json"}, kOnCpu).status == 2);
  const Ended ended = start({"fuzz", "--device", "cuda:1", "--cases", "1"}, kOnCpu);
  CHECK(ended.status == 2);
  CHECK_THAT(ended.err, ContainsSubstring("CUDA_VISIBLE_DEVICES"));
}

TEST_CASE("cli: fuzz refuses --bounded-waits where no kernel of Hopper runs") {
  const Folder folder;
  const std::string fuzz_case = folder.write("case.json", R"({
    "spec": {"dtype": "f32", "head_dim": 16}, "shape": {"q_len": 2, "kv_len": 2}})");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"fuzz", "--cases", "1", "--device", "cpu", "--bounded-waits"},
        std::vector<std::string>{"fuzz", "--replay", fuzz_case, "--bounded-waits"}}) {
    const Ended ended = start(words, kOnCpu);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.err, ContainsSubstring(
                              "--bounded-waits is of Hopper's kernels, and cases run on the CPU"));
  }
}

TEST_CASE("cli: fuzz --replay takes nothing else, and refuses a case that is out of place") {
  const Folder folder;
  const auto written = [&](const char* fields) {
    return folder.write("case.json", fmt::format(R"({{"spec": {{"dtype": "f32", "head_dim": 16}},
      "shape": {{"batch": 1, "num_q_heads": 1, "num_kv_heads": 1, "q_len": 2, "kv_len": 2}}{}}})",
                                                 fields));
  };
  const std::string honest = written("");
  REQUIRE(start({"fuzz", "--replay", honest}, kOnCpu).status == 0);
  const std::vector<std::vector<std::string>> others = {
      {"--cases", "4"}, {"--spec", honest}, {"--seed", "1"}, {"--out", "x"}, {"--no-offsets"}};
  for (const std::vector<std::string>& other : others) {
    CAPTURE(other);
    std::vector<std::string> words = {"fuzz", "--replay", honest};
    words.insert(words.end(), other.begin(), other.end());
    const Ended ended = start(words, kOnCpu);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.err, ContainsSubstring("--replay"));
  }
  for (const auto& [fields, message] :
       {std::pair(R"(, "scalars": {"window": 3})", "no scalar \"window\""),
        std::pair(R"(, "free_dim": 0)", "free_dim is 0"),
        std::pair(R"(, "target": "sm_90a", "kernel": "forwards")", "\"forwards\" is no kernel"),
        std::pair(R"(, "target": "sm_1", "kernel": "forward")", "sm_1")}) {
    const Ended ended = start({"fuzz", "--replay", written(fields)}, kOnCpu);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.err, ContainsSubstring(message));
  }
}

TEST_CASE("cli: fuzz ends with what the machine lacks or the snippet does wrong") {
  const Folder folder;
  const std::vector<std::string> words = {
      "fuzz", "--cases", "2", "--device", "cpu", "--compiles", "0", "--out", folder.path("out")};
  Environment environment = kOnCpu;
  environment.emplace_back("TILEWRIGHT_CXX", "nosuchcc");
  const Ended no_compiler = start(words, environment);
  CHECK(no_compiler.status == 3);
  CHECK_THAT(no_compiler.err, ContainsSubstring("nosuchcc"));
  const std::string fuzz_case = folder.write("case.json", R"({
    "spec": {"dtype": "f32", "head_dim": 16}, "shape": {"q_len": 2, "kv_len": 2}})");
  CHECK(start({"fuzz", "--replay", fuzz_case}, environment).status == 3);
  environment.back() = {"TILEWRIGHT_JIT", "off"};
  const Ended no_jit = start(words, environment);
  CHECK(no_jit.status == 3);
  CHECK_THAT(no_jit.err, ContainsSubstring("TILEWRIGHT_JIT"));

  std::vector<std::string> with_spec = words;
  with_spec.insert(with_spec.end(),
                   {"--spec", folder.write("s.json", R"({"score_mod": "score + slope"})")});
  const Ended snippet = start(with_spec, kOnCpu);
  CHECK(snippet.status == 2);
  CHECK_THAT(snippet.err, ContainsSubstring("slope"));

  folder.write("file", "");
  std::vector<std::string> nowhere = words;
  nowhere.back() = folder.path("file/out");
  const Ended unwritable = start(nowhere, kOnCpu);
  CHECK(unwritable.status == 3);
  CHECK_THAT(unwritable.err, ContainsSubstring("--out"));
}

TEST_CASE("cli: fuzz leaves the files that it names, and shows each place that is undefined") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"({
    "dtype": "f32", "head_dim": 16,
    "score_mod": "int y = 7 << (kv_len % 2 == 1 ? 33 : 1);\nreturn score + bias[q_len % 2 == 1 ? q_len : 0] + y * 0.01f;",
    "buffers": {"bias": {"dtype": "f32", "shape": ["q_len"]}}
  })");
  const Ended ended =
      start({"fuzz", "--spec", spec, "--cases", "20", "--seed", "7", "--device", "cpu",
             "--compiles", "0", "--no-offsets", "--out", folder.path("out"), "--json"},
            kOnCpu);
  REQUIRE(ended.status == 1);
  const nlohmann::json failures = ended.json().at("failures");
  REQUIRE(failures.size() == 2);
  std::set<std::string> named, there;
  std::string places;
  for (const nlohmann::json& failure : failures) {
    CHECK(failure.at("failure") == "undefined");
    places += failure.at("group").get<std::string>();
    named.insert(failure.at("case").get<std::string>());
  }
  CHECK_THAT(places, ContainsSubstring("score_mod:1") && ContainsSubstring("score_mod:2"));
  for (const auto& file : std::filesystem::directory_iterator(folder.path("out"))) {
    if (file.path().extension() == ".json") there.insert(file.path().string());
  }
  CHECK(named == there);
}

TEST_CASE("cli: fuzz --compiles without NVRTC is refused before a case runs, with what to do") {
  const Folder folder;
  const Ended ended = start({"fuzz", "--cases", "2", "--compiles", "100", "--device", "cpu",
                             "--seed", "3", "--out", folder.path("out")},
                            {{"TILEWRIGHT_NVRTC", folder.path("none.so")}});
  CHECK(ended.status == 3);
  CHECK_THAT(ended.err, ContainsSubstring("error[compiler]: NVRTC, CUDA's run-time compiler") &&
                            ContainsSubstring("or leave --compiles out"));
  CHECK_THAT(ended.out, !ContainsSubstring("compile_error"));
}

}  // namespace
