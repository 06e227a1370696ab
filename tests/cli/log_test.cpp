// TILEWRIGHT_LOG: what is made, found and missed.

#include <fstream>
#include <sstream>
#include <string>

#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

// Runs the spec with an own cache, and returns what was logged.
std::string logged(const Folder& folder, const std::string& level, const std::string& cache) {
  const std::string spec = folder.write("spec.json", kCausal), log = folder.path("log");
  std::ofstream{log};
  const Ended ended = start(
      {"run", spec, "--inputs", "random:1,1,1,64,64", "--outputs", folder.path("out.safetensors")},
      {{"TILEWRIGHT_LOG", log + level},
       {"TILEWRIGHT_CACHE", folder.path(cache)},
       {"TILEWRIGHT_DEVICE", "cpu"}});
  INFO(ended.err);
  REQUIRE(ended.status == 0);
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("cli: TILEWRIGHT_LOG tells what was missed, made and found, and the fast paths") {
  const Folder folder;
  const std::string first = logged(folder, "", "cache");
  CHECK_THAT(first, ContainsSubstring("info miss spec=\"causal\" kernel=forward_masked_lse"));
  CHECK_THAT(first, ContainsSubstring("info kernel spec=\"causal\" kernel=forward_masked_lse") &&
                        ContainsSubstring("source=built key="));
  CHECK_THAT(first, ContainsSubstring("info attention spec=\"causal\" device=cpu") &&
                        ContainsSubstring("fast_paths=proved_mask"));
  CHECK_THAT(first, !ContainsSubstring(" debug "));

  const std::string second = logged(folder, ":debug", "cache");
  CHECK_THAT(second, ContainsSubstring("source=disk") && !ContainsSubstring("miss"));
  CHECK_THAT(second, ContainsSubstring("debug no_fast_path spec=\"causal\" path=score_slope"));
}

TEST_CASE("cli: a log that cannot be opened is a warning") {
  const Folder folder;
  const std::string spec = folder.write("spec.json", kPlain);
  const Ended ended = start(
      {"run", spec, "--inputs", "random:1,1,1,64,64", "--outputs", folder.path("out.safetensors")},
      {{"TILEWRIGHT_LOG", "/nonexistent/log"}, {"TILEWRIGHT_DEVICE", "cpu"}});
  CHECK(ended.status == 0);
  CHECK_THAT(ended.err, ContainsSubstring("TILEWRIGHT_LOG: cannot open \"/nonexistent/log\""));
}
