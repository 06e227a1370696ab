#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "generator/render/templates.hpp"
#include "generator/snippet/snippet.hpp"
#include "runtime/library/kernel_library.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/full_run.hpp"
#include "tests/support/nvrtc.hpp"

using namespace tilewright;
using Clock = std::chrono::steady_clock;

namespace {

struct Hostile {
  std::string name;
  SnippetKind kind;
  std::string text;
  std::string expect;
};

std::vector<Hostile> hostile_snippets() {
  const auto data = nlohmann::json::parse(
      read_text_file(TILEWRIGHT_SOURCE_DIR "/tests/runtime/hostile_snippets.json"));
  std::vector<Hostile> all;
  for (const auto& item : data.at("snippets")) {
    std::string text = item.value("text", item.value("prefix", ""));
    for (int i = 0; i < item.value("count", 0); ++i) text += item.at("unit").get<std::string>();
    text += item.value("suffix", "");
    all.push_back({item.at("name"),
                   item.at("kind") == "mask_mod" ? SnippetKind::mask_mod : SnippetKind::score_mod,
                   std::move(text), item.at("expect")});
  }
  return all;
}

/// Sets variables of the environment for one test.
class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& values) {
    for (const auto& [name, value] : values) {
      const char* before = std::getenv(name.c_str());
      before_[name] = before ? before : "";
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Variables() {
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  std::map<std::string, std::string> before_;  // an empty variable counts as unset
};

// "compiled", or what the error said.
std::string outcome(const Hostile& hostile, const Target& target, const Toolchain& toolchain,
                    ErrorCode& code) {
  Spec spec;
  spec.dtype = DType::f16;
  spec.head_dim = 16;
  (hostile.kind == SnippetKind::mask_mod ? spec.mask_mod : spec.score_mod) = hostile.text;
  const std::string kernel = hostile.kind == SnippetKind::mask_mod ? "mask_exact" : "forward";
  try {
    build_kernel(spec, target, KernelVariant::parse(kernel), toolchain);
    return "compiled";
  } catch (const Error& error) {
    code = error.code();
    return error.what();
  }
}

bool shows_a_file(const std::string& words) {
  for (const char* content : {"root:x:", "root:*:", "daemon:", "HOME=", "PATH="}) {
    if (words.find(content) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("hostile snippets: each ends in a structured error within its limits") {
  const std::vector<Hostile> all = hostile_snippets();
  const Variables variables({{"TILEWRIGHT_WORKER", TILEWRIGHT_TEST_WORKER},
                             {"TILEWRIGHT_COMPILE_TIMEOUT", is_full_run() ? "10" : "2"},
                             {"TILEWRIGHT_COMPILE_MEMORY", "1024"}});
  const Toolchain toolchain{.store = std::make_shared<cache::Store>(cache::Store::Options{}),
                            .templates = default_template_loader(),
                            .diagnostics = {}};
  std::vector<Target> targets = {Target::host_cpu()};
  if (!test::nvrtc_is_missing()) targets.push_back(Target::parse("sm_90"));
  std::map<std::string, int> counts;
  double longest = 0;
  std::string longest_name;
  std::size_t number = 0;
  for (const Hostile& hostile : all) {
    CAPTURE(hostile.name);
    ++number;
    if (hostile.expect == "refused") {
      REQUIRE_THROWS_AS(check_snippet(hostile.kind, hostile.text), Error);
    }
    for (const Target& target : targets) {
      // What the checker refuses never gets as far as a target.
      const bool refused = hostile.expect == "refused";
      if (refused && !target.is_cpu()) continue;
      // The short run gives each compiler every other one.
      const bool is_turn = (number % 2 == 0) == target.is_cpu();
      if (!refused && !is_full_run() && targets.size() > 1 && !is_turn) continue;
      CAPTURE(target.name());
      const auto start = Clock::now();
      ErrorCode code = ErrorCode::internal;
      const std::string words = outcome(hostile, target, toolchain, code);
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (seconds > longest) longest_name = hostile.name + " for " + target.name();
      longest = std::max(longest, seconds);
      INFO(words.substr(0, 2000));
      if (hostile.expect != "any") REQUIRE(words != "compiled");
      if (words != "compiled") {
        // What a compiler notices only at the end of the function around it is a template's.
        REQUIRE((code == ErrorCode::snippet || code == ErrorCode::compiler ||
                 code == ErrorCode::kernel_template));
        if (hostile.expect == "refused") REQUIRE(code == ErrorCode::snippet);
        REQUIRE(words.size() < 20'000);
        REQUIRE_FALSE(shows_a_file(words));
        REQUIRE(words.find('\x1b') == std::string::npos);
      }
      REQUIRE(seconds < 30);
      ++counts[words == "compiled"           ? "compiled"
               : hostile.expect == "refused" ? "refused"
                                             : "failed"];
    }
  }
  std::printf(
      "[worker] %zu hostile snippets: %d refused, %d failed in a compiler, %d compiled; the "
      "longest took %.1f s (%s)\n",
      all.size(), counts["refused"], counts["failed"], counts["compiled"], longest,
      longest_name.c_str());
  REQUIRE(all.size() >= 50);
}
