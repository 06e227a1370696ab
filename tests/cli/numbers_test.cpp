#include <string>
#include <vector>

#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Option {
  std::vector<std::string> words;  // of a command that needs nothing but the option's value
  std::string name;
};

std::vector<Option> whole_options(const std::string& spec) {
  const std::vector<std::string> run = {"run",       spec,       "--inputs", "random:1,1,1,16,16",
                                        "--outputs", "/dev/null"};
  const std::vector<std::string> mask = {"mask", spec, "--q-len", "64", "--kv-len", "64"};
  const std::vector<std::string> picture = {"mask",     spec, "--q-len",   "64",
                                            "--kv-len", "64", "--picture", "/tmp/x.svg"};
  const std::vector<std::string> bench = {"bench", "--list"};
  const std::vector<std::string> fuzz = {"fuzz", "--out", "/tmp/fuzz-none"};
  std::vector<Option> options;
  for (const char* name : {"--q-offset", "--kv-offset", "--seed"}) options.push_back({run, name});
  for (const char* name :
       {"--q-offset", "--kv-offset", "--seed", "--batch", "--q-heads", "--kv-heads"})
    options.push_back({mask, name});
  for (const char* name : {"--b", "--h"}) options.push_back({picture, name});
  for (const char* name : {"--head-dim", "--batch", "--heads", "--kv-heads", "--q-len", "--kv-len",
                           "--seed", "--keep", "--threads"})
    options.push_back({bench, name});
  for (const char* name : {"--seconds", "--cases", "--compiles", "--seed", "--workers"})
    options.push_back({fuzz, name});
  options.push_back({{"mask", spec, "--kv-len", "64"}, "--q-len"});
  options.push_back({{"mask", spec, "--q-len", "64"}, "--kv-len"});
  options.push_back({{"precompile", "none.json", "--out", "/tmp/x.twb"}, "--jobs"});
  return options;
}

std::vector<Option> number_options(const std::string& spec) {
  return {{{"run", spec, "--inputs", "random:1,1,1,16,16", "--outputs", "/dev/null"}, "--scale"},
          {{"mask", spec, "--q-len", "64", "--kv-len", "64"}, "--score"},
          {{"bench", "--list"}, "--budget-ms"}};
}

void require_refused(const Option& option, const std::string& value) {
  std::vector<std::string> words = option.words;
  words.insert(words.end(), {option.name, value});
  const Ended ended = start(words);
  CAPTURE(words, ended.err);
  CHECK(ended.status == 2);
  CHECK_THAT(ended.err, ContainsSubstring("error[usage]") && ContainsSubstring(option.name));
}

}  // namespace

TEST_CASE("cli: every option that takes a whole number refuses what is none") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  for (const Option& option : whole_options(spec)) {
    for (const char* value : {"", " ", "1 ", " 1", "+1", "0x10", "1.0", "1e2", "nan", "inf",
                              "18446744073709551616", "99999999999999999999999", "-1x", "\u0661"}) {
      require_refused(option, value);
    }
    const bool is_offset = option.name.ends_with("offset");
    if (is_offset) require_refused(option, "9223372036854775808");
    if (is_offset) require_refused(option, "-9223372036854775809");
    if (!is_offset) require_refused(option, "-1");
  }
}

TEST_CASE("cli: every option that takes a number refuses what is none") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  for (const Option& option : number_options(spec)) {
    for (const char* value : {"", " ", "1 ", " 1", "+1", "0x1p3", "nan", "inf", "-inf", "infinity",
                              "1e400", "1,5", "one", "1.0f"}) {
      require_refused(option, value);
    }
  }
}

TEST_CASE("cli: a seed of 64 bits is taken as it is, and one more is refused") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPlain);
  const auto run = [&](const std::string& seed) {
    return start({"run", spec, "--inputs", "random:1,1,1,16,16", "--outputs", folder.path("o"),
                  "--seed", seed});
  };
  REQUIRE(run("18446744073709551615").status == 0);
  const Ended ended = run("18446744073709551616");
  REQUIRE(ended.status == 2);
  REQUIRE_THAT(ended.err, ContainsSubstring("--seed: \"18446744073709551616\" is no whole number "
                                            "from 0 to 18446744073709551615"));
}

TEST_CASE("cli: sizes of bench --serve are whole numbers") {
  for (const char* value :
       {"1.5", "-1", "\"8\"", "1e400", "18446744073709551616", "true", "null"}) {
    const Ended ended =
        shell("echo '{\"spec\": {\"dtype\": \"f32\", \"head_dim\": 64}, \"batch\": " +
              std::string(value) + "}' | \"$tilewright\" bench --serve --device cpu");
    CAPTURE(value, ended.out);
    CHECK_THAT(ended.out, ContainsSubstring("\"error\""));
  }
}
