#include <filesystem>
#include <string>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

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
  CHECK(report.at("relations").size() == 14);
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
}

TEST_CASE("cli: fuzz refuses what makes no sense") {
  CHECK(start({"fuzz", "--seed", "-1", "--cases", "1"}, kOnCpu).status == 2);
  CHECK(start({"fuzz", "--seconds", "3", "--cases", "1"}, kOnCpu).status == 2);
  CHECK(start({"fuzz", "--replay", "/no/such/case.json"}, kOnCpu).status == 2);
  const Ended ended = start({"fuzz", "--device", "cuda:1", "--cases", "1"}, kOnCpu);
  CHECK(ended.status == 2);
  CHECK_THAT(ended.err, ContainsSubstring("CUDA_VISIBLE_DEVICES"));
}

}  // namespace
