#include <filesystem>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/nvrtc.hpp"
#include "tests/support/slow_kernel.hpp"

using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kHalf = R"json({"dtype": "bf16", "head_dim": 64})json";

}  // namespace

TEST_CASE("cli: each verb that takes a target refuses a spec of too many buffers for a GPU alike") {
  const Folder folder;
  nlohmann::json spec = {{"dtype", "f16"}, {"head_dim", 16}, {"score_mod", "score"}};
  for (int i = 0; i < 59; ++i) {
    spec["buffers"]["x" + std::to_string(i)] = {{"dtype", "f32"}, {"shape", {"num_q_heads"}}};
  }
  const std::string path = folder.write("s.json", spec.dump());
  for (const std::vector<std::string>& verb : std::vector<std::vector<std::string>>{
           {"compile"}, {"compile", "--list"}, {"render"}, {"explain"}, {"cache", "explain"}}) {
    std::vector<std::string> words = verb;
    words.insert(words.end(), {path, "--target", "sm_90a"});
    const Ended ended = start(words);
    CAPTURE(words, ended.out, ended.err);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.err,
               ContainsSubstring("error[spec]: 59 buffers and 0 scalars take 3352 bytes") &&
                   ContainsSubstring("58 buffers fit"));
  }
  CHECK(start({"compile", path, "--list", "--target", "cpu-x86-64-v3"}).status == 0);
}

TEST_CASE("cli: compile says what a GPU's kernel takes, and nothing slow of a good one") {
  if (nvrtc_is_missing()) return;
  const Folder folder;
  const Ended good = start({"compile", folder.write("s.json", kHalf), "--target", "sm_90a",
                            "--kernel", "forward", "--json"});
  REQUIRE(good.status == 0);
  const nlohmann::json kernel = good.json()["kernels"][0];
  REQUIRE(kernel["registers"] > 32);
  REQUIRE(kernel["spill_bytes"] == 0);
  REQUIRE(kernel["shared_bytes"] > 16 * 1024);
  REQUIRE(kernel["cubin_bytes"] == kernel["bytes"]);
  REQUIRE(kernel["performance_warnings"] == nlohmann::json::array());
  REQUIRE(good.err.find("warning") == std::string::npos);
}

TEST_CASE("cli: a target that no GPU asks for is compiled with a note that names the right one") {
  if (nvrtc_is_missing()) return;
  const Folder folder;
  const std::string spec = folder.write("s.json", kHalf);
  const auto compile = [&](const char* target) {
    return start({"compile", spec, "--target", target, "--kernel", "forward", "--json"});
  };
  const Ended plain = compile("sm_90");
  REQUIRE(plain.status == 0);
  REQUIRE_THAT(plain.err,
               ContainsSubstring("note: an H100, H200 or GH200 asks for kernels for sm_90a"));
  REQUIRE(plain.json()["notes"].size() == 1);
  REQUIRE_THAT(compile("sm_100f").err, ContainsSubstring("compile for sm_100a"));
  for (const char* target : {"sm_80", "sm_90a", "sm_120a"}) {
    const Ended asked_for = compile(target);
    REQUIRE(asked_for.json()["notes"].empty());
    REQUIRE(asked_for.err.find("note:") == std::string::npos);
  }
}

TEST_CASE("cli: compile warns of what ptxas serialises, and is done") {
  if (nvrtc_is_missing()) return;
  const Folder folder;
  std::filesystem::create_directories(folder.path("cuda/kernels"));
  folder.write("cuda/kernels/portable_forward.cu.jinja", kSlowKernel);
  const Ended slow = start({"compile", folder.write("s.json", kHalf), "--target", "sm_90a",
                            "--kernel", "forward_unaligned", "--json"},
                           {{"TILEWRIGHT_TEMPLATES", folder.path("")}});
  REQUIRE(slow.status == 0);
  const nlohmann::json kernel = slow.json()["kernels"][0];
  REQUIRE(kernel["performance_warnings"].size() == 2);
  REQUIRE_THAT(kernel["performance_warnings"][1].get<std::string>(), ContainsSubstring("C7511"));
  REQUIRE_THAT(slow.err, ContainsSubstring("warning: forward_unaligned for sm_90a will be slow: "));
  REQUIRE_THAT(slow.err, ContainsSubstring("(C7508)"));
}
