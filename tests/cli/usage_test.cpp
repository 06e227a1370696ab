#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<std::string> kVerbs = {"run",  "check",       "render", "explain", "compile",
                                         "mask", "bench",       "cache",  "doctor",  "precompile",
                                         "fuzz", "completions", "manual"};

void require_usage_error(const Ended& ended, const std::string& text) {
  REQUIRE(ended.status == 2);
  REQUIRE(ended.out.empty());
  REQUIRE_THAT(ended.err, ContainsSubstring("error[usage]"));
  REQUIRE_THAT(ended.err, ContainsSubstring(text));
}

}  // namespace

TEST_CASE("cli: --version prints the version, and nothing else") {
  const Ended ended = start({"--version"});
  REQUIRE(ended.status == 0);
  REQUIRE_THAT(ended.out, Catch::Matchers::StartsWith("tilewright "));
  REQUIRE(ended.err.empty());
}

TEST_CASE("cli: --help names every verb") {
  const Ended ended = start({"--help"});
  REQUIRE(ended.status == 0);
  for (const std::string& verb : kVerbs) REQUIRE_THAT(ended.out, ContainsSubstring("\n  " + verb));
}

TEST_CASE("cli: every verb has --help with an example that begins with its own name") {
  const std::string verb = GENERATE(from_range(kVerbs));
  const Ended ended = start({verb, "--help"});
  REQUIRE(ended.status == 0);
  REQUIRE_THAT(ended.out, ContainsSubstring("Example:\n  tilewright " + verb));
  REQUIRE(ended.err.empty());
}

TEST_CASE("cli: no verb is a usage error") {
  require_usage_error(start({}), "--help lists the verbs");
  require_usage_error(start({"--lines"}), "the first word is a verb");
}

TEST_CASE("cli: an unknown verb names the nearest one") {
  require_usage_error(start({"rnu"}), "did you mean \"run\"?");
  require_usage_error(start({"something"}), "unknown verb \"something\"");
}

TEST_CASE("cli: an unknown option names the nearest one, also where a required one is missing") {
  require_usage_error(start({"run", "s.json", "--input", "x", "--output", "y"}),
                      "did you mean \"--inputs\"?");
  require_usage_error(start({"mask", "s.json", "--qlen=4"}), "did you mean \"--q-len\"?");
}

TEST_CASE("cli: --list of a suite that has none says which have") {
  require_usage_error(start({"bench", "--suite", "compile", "--list", "--device", "cpu"}),
                      "--list prints the calls of \"dense\", \"mods\", \"growth\", \"serving\", "
                      "\"paged\", \"backward\" or \"splits\"");
  require_usage_error(start({"bench", "--suite", "compiles", "--list", "--device", "cpu"}),
                      "did you mean \"compile\"?");
}

TEST_CASE("cli: what is missing, superfluous or no number is a usage error") {
  require_usage_error(start({"run", "s.json", "--inputs", "x"}), "--outputs is required");
  require_usage_error(start({"render", "a.json", "b.json"}), "b.json");
  require_usage_error(start({"mask", "s.json", "--q-len", "many", "--kv-len", "4"}), "--q-len");
  require_usage_error(start({"render"}), "SPEC is required");
}

TEST_CASE("cli: a misspelt verb of a verb names the nearest one") {
  require_usage_error(start({"cache", "lss"}), "did you mean \"ls\"?");
}

TEST_CASE("cli: with --json an error is JSON on stdout too") {
  const Ended ended = start({"render", "/no/such/spec.json", "--json"});
  REQUIRE(ended.status == 2);
  REQUIRE_THAT(ended.err, ContainsSubstring("error[file]"));
  const nlohmann::json error = ended.json().at("error");
  REQUIRE(error.at("code") == "file");
  for (const char* key : {"message", "place", "notes", "hint"}) REQUIRE(error.contains(key));
}

TEST_CASE("cli: a JSON error holds the place of a wrong key") {
  const Folder folder;
  const std::string spec =
      folder.write("s.json", "{\n  \"dtype\": \"f32\",\n  \"hed_dim\": 64\n}\n");
  const nlohmann::json error = start({"render", spec, "--json"}).json().at("error");
  REQUIRE(error.at("place").at("line") == 3);
  REQUIRE(error.at("place").at("column") == 3);
  REQUIRE_THAT(error.at("hint").get<std::string>(), ContainsSubstring("head_dim"));
}

TEST_CASE("cli: a reader that goes away is no error, a full disk is") {
  const Folder folder;
  folder.write("s.json", kCausal);
  const std::string render = "\"$tilewright\" render '" + folder.path("s.json") + "'";
  const Ended closed = shell("(sleep 0.3; " + render + ") | true; exit ${PIPESTATUS[0]}");
  REQUIRE(closed.status == 0);
  REQUIRE(closed.err.empty());
  const Ended full = shell(render + " > /dev/full");
  REQUIRE(full.status == 3);
  REQUIRE_THAT(full.err, ContainsSubstring("error[disk]"));
}

TEST_CASE("cli: with closed standard streams nothing is written into other files") {
  const Folder folder;
  folder.write("s.json", kPlain);
  const std::string run = "\"$tilewright\" run '" + folder.path("s.json") +
                          "' --inputs random:1,1,1,16,16 --outputs '" + folder.path("out") + "'";
  REQUIRE(shell(run).status == 0);
  const auto size = std::filesystem::file_size(folder.path("out"));
  REQUIRE(shell(run + " <&- >&- 2>&-").status == 0);
  REQUIRE(std::filesystem::file_size(folder.path("out")) == size);
  REQUIRE(folder.names() == std::vector<std::string>{"out", "s.json"});
}
