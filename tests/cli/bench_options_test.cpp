// bench: an option that a suite has no use for is refused, in place of being left out of account.
#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

using Words = std::vector<std::string>;

Ended bench(Words more) {
  more.insert(more.begin(), {"bench", "--device", "cpu"});
  return start(more);
}

void require_refused(const Words& words, const std::string& message, const std::string& hint) {
  const Ended ended = bench(words);
  INFO(ended.err);
  CHECK(ended.status == 2);
  CHECK_THAT(ended.err, ContainsSubstring(message) && ContainsSubstring(hint));
}

}  // namespace

TEST_CASE("cli bench options: each suite refuses those that it has no use for") {
  const auto [suite, option, value] = GENERATE(table<std::string, std::string, std::string>({
      {"dense", "--deterministic", ""},    {"dense", "--repeats", "2"},
      {"mods", "--deterministic", ""},     {"mods", "--repeats", "2"},
      {"mods", "--repeats", "0"},          {"growth", "--kv-len", "64"},
      {"growth", "--repeats", "2"},        {"masks", "--dtype", "f16"},
      {"masks", "--head-dim", "64"},       {"masks", "--hot", ""},
      {"serving", "--deterministic", ""},  {"paged", "--repeats", "2"},
      {"launch", "--q-len", "64"},         {"launch", "--dtype", "f16"},
      {"compile", "--threads", "1"},       {"compile", "--budget-ms", "1"},
      {"compile", "--seed", "1"},          {"start", "--q-len", "64"},
      {"start", "--threads", "1"},         {"context_parallel", "--threads", "1"},
      {"context_parallel", "--seed", "1"}, {"backward", "--hot", ""},
      {"splits", "--deterministic", ""},   {"splits", "--kv-heads", "1"},
  }));
  Words words = {"--suite", suite, option};
  if (!value.empty()) words.push_back(value);
  require_refused(words, "--suite " + suite + " takes no " + option,
                  "leave " + option + " out, or take --suite \"");
}

TEST_CASE("cli bench options: what a spec of one's own says already is refused") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  require_refused({"--spec", spec, "--dtype", "f16"}, "--dtype is for specs of a suite",
                  "leave --dtype out");
  require_refused({"--spec", spec, "--head-dim", "64"}, "--head-dim is for specs of a suite", "");
  require_refused({"--spec", spec, "--deterministic"}, "--suite dense takes no --deterministic",
                  "take --suite \"backward\"");
  require_refused({"--suite", "compile", "--spec", spec, "--buffers", "f.safetensors"},
                  "--suite compile takes no --buffers", "leave --buffers out");
}

TEST_CASE("cli bench options: --serve refuses what its requests do not use") {
  for (const Words& words :
       {Words{"--threads", "1"}, Words{"--suite", "masks"}, Words{"--spec", "s.json"},
        Words{"--deterministic"}, Words{"--only", "causal"}, Words{"--dtype", "f16"}}) {
    Words all = {"--serve"};
    all.insert(all.end(), words.begin(), words.end());
    require_refused(all, "bench --serve takes no " + words[0], "a request has the spec");
  }
}

TEST_CASE("cli bench options: --dtype and --head-dim choose among dense's rows on a CPU") {
  CHECK(bench({"--list"}).json().size() == 6);
  const nlohmann::json rows = bench({"--list", "--dtype", "f16", "--head-dim", "32"}).json();
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["spec"]["dtype"] == "f16");
  CHECK(rows[0]["spec"]["head_dim"] == 32);
}

TEST_CASE("cli bench options: the backward pass is measured on each number of threads") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const Ended ended =
      bench({"--suite", "backward", "--spec", spec, "--inputs", "random:1,2,2,32,32", "--budget-ms",
             "1", "--threads", "1,3", "--json"});
  INFO(ended.err);
  REQUIRE(ended.status == 0);
  const nlohmann::json rows = ended.json()["rows"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["threads"] == 1);
  CHECK(rows[1]["threads"] == 3);
}
