#include <filesystem>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

using Words = std::vector<std::string>;

// Every option that names an output, with a command that is right without it.
std::vector<std::pair<Words, std::string>> output_options(const std::string& spec,
                                                          const std::string& manifest) {
  const Words mask = {"mask", spec, "--q-len", "64", "--kv-len", "64"};
  return {{{"run", spec, "--inputs", "random:1,1,1,16,16"}, "--outputs"},
          {{"check", spec, "--inputs", "random:1,1,1,16,16"}, "--outputs"},
          {mask, "--outputs"},
          {mask, "--flex"},
          {mask, "--picture"},
          {{"compile", spec}, "-o"},
          {{"precompile", manifest, "--targets", "cpu"}, "--out"},
          {{"cache", "export"}, "--out"},
          {{"fuzz", "--cases", "1"}, "--out"}};
}

Ended with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return start(words, {{"TILEWRIGHT_DEVICE", "cpu"}});
}

}  // namespace

TEST_CASE("cli: every option that names an output refuses what cannot be written before any work") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const std::string manifest = folder.write("m.json", R"({"specs": ["s.json"]})");
  std::filesystem::create_symlink("nowhere", folder.path("dangling"));
  const std::string file = folder.write("file", "");
  for (const auto& [words, option] : output_options(spec, manifest)) {
    const bool is_folder = words[0] == "fuzz" || option == "-o";
    Words wrong = {"", file + "/below", "/proc/none/x.svg"};
    if (words[0] != "fuzz") wrong.push_back(folder.path("dangling"));
    if (!is_folder) wrong.insert(wrong.end(), {folder.path(""), folder.path("none/x.svg")});
    for (const std::string& path : wrong) {
      const Ended ended = with(words, {option, path});
      CAPTURE(words, option, path, ended.err);
      CHECK(ended.status == (path.empty() ? 2 : 3));
      CHECK_THAT(ended.err, ContainsSubstring(path.empty() ? "error[usage]" : "error[disk]"));
      CHECK_THAT(ended.err, ContainsSubstring(option == "-o" && path.empty() ? "-o" : option));
      CHECK_THAT(ended.err, !ContainsSubstring("[1/"));  // no progress: nothing was compiled
    }
  }
  CHECK(folder.names() == Words{"dangling", "file", "m.json", "s.json"});
}

// Root too: the kernel's own folders take none.
TEST_CASE("cli: compile asks for another folder where the one that is named cannot be made") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  for (const std::string path : {"/sys/tilewright-test/", "/proc/tilewright-test/sub/"}) {
    const Ended ended = with({"compile", spec}, {"-o", path});
    INFO(ended.err);
    CHECK(ended.status == 3);
    CHECK_THAT(ended.err, ContainsSubstring("-o \"" + path + "\" cannot be written: ") &&
                              ContainsSubstring("choose a folder that you may write to"));
  }
}

TEST_CASE("cli: an empty value is refused for every option that takes one, however it is written") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  for (const Words& words :
       {Words{"run", spec, "--inputs", "", "--outputs", "/dev/null"},
        Words{"run", spec, "--inputs=", "--outputs", "/dev/null"},
        Words{"run", "", "--inputs", "random:1,1,1,16,16", "--outputs", "/dev/null"},
        Words{"run", spec, "--inputs", "random:1,1,1,16,16", "--outputs=", "--json"},
        Words{"render", spec, "--target", ""}, Words{"compile", spec, "-o", ""},
        Words{"cache", "prune", "--max-size", ""}, Words{"bench", "--threads", ""}}) {
    const Ended ended = start(words);
    CAPTURE(words, ended.err);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.err, ContainsSubstring("is empty"));
  }
}

TEST_CASE("cli: /dev/null, pipes and /dev/stdout take outputs, and stay what they are") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const std::string manifest = folder.write("m.json", R"({"specs": ["s.json"]})");
  for (const auto& [words, option] : output_options(spec, manifest)) {
    if (words[0] == "fuzz" || words[0] == "cache") continue;
    const Ended ended = with(words, {option, "/dev/null"});
    CAPTURE(words, option, ended.err);
    CHECK(ended.status == 0);
    CHECK(std::filesystem::is_character_file("/dev/null"));
  }
  REQUIRE(with({"run", spec, "--inputs", "random:1,1,1,16,16"}, {"--outputs", folder.path("file")})
              .status == 0);
  const std::string run =
      "\"$tilewright\" run '" + spec + "' --inputs random:1,1,1,16,16 --outputs ";
  const std::string same = " && cmp - '" + folder.path("file") + "'";
  const Ended piped =
      shell("set -o pipefail; " + run + "/dev/stdout | cmp - '" + folder.path("file") + "'");
  CAPTURE(piped.err);
  CHECK(piped.status == 0);
  CHECK_THAT(piped.err, ContainsSubstring("wrote /dev/stdout"));
  const Ended fifo = shell("mkfifo '" + folder.path("p") + "'; cmp '" + folder.path("p") + "' '" +
                           folder.path("file") + "' & " + run + "'" + folder.path("p") +
                           "' >/dev/null && wait $!");
  CAPTURE(fifo.err);
  CHECK(fifo.status == 0);
  CHECK(std::filesystem::is_fifo(folder.path("p")));
}

TEST_CASE("cli: two outputs are two files") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const Words mask = {"mask", spec, "--q-len", "64", "--kv-len", "64", "--outputs"};
  std::filesystem::create_directory(folder.path("d"));
  for (const std::string& other : {folder.path("x"), folder.path("d/../x"), folder.path("./x")}) {
    const Ended ended = with(mask, {folder.path("x"), "--flex", other});
    CAPTURE(other, ended.err);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.err, ContainsSubstring("--outputs and --flex are the same file"));
  }
  CHECK(with(mask, {"/dev/null", "--flex", "/dev/null"}).status == 0);
}

TEST_CASE("cli: compile -o that would write nothing is an error") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"({"dtype": "f32", "head_dim": 16,
      "mask_mod": "int x = q_idx; for (int i = 0; i < kv_idx % 3; ++i) x += i; return x > kv_idx;"})");
  const Ended list = start({"compile", spec, "--json"});
  REQUIRE(list.status == 0);
  const nlohmann::json listed = list.json();
  for (const auto& kernel : listed.at("kernels")) {
    if (kernel.at("compiles").get<bool>()) continue;
    const Ended ended = start({"compile", spec, "--kernel", kernel.at("name").get<std::string>(),
                               "-o", folder.path("x.so")});
    CHECK(ended.status == 2);
    CHECK_THAT(ended.err, ContainsSubstring("was not written"));
  }
}

TEST_CASE(
    "cli: a mask that no memory holds is refused at once, with the bytes that it would take") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const auto begin = std::chrono::steady_clock::now();
  const Ended ended = start({"mask", spec, "--q-len", "2147482623", "--kv-len", "2147482623"});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CAPTURE(ended.err);
  CHECK(ended.status == 3);
  CHECK_THAT(ended.err, ContainsSubstring("error[memory]") && ContainsSubstring("GiB") &&
                            ContainsSubstring("but this machine has"));
  CHECK(took.count() < 15);  // the compiles included
}
