// `tilewright cache`, and what is found again.

#include <filesystem>
#include <fstream>

#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/nvrtc.hpp"

using namespace tilewright;
using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

// A folder with a spec and a cache of its two kernels.
struct Cached {
  Cached() : environment({{"TILEWRIGHT_CACHE", folder.path("cache")}}) {
    const std::string spec = folder.write("s.json", kCausal);
    const Ended ended =
        start({"run", spec, "--inputs", "random:1,1,1,16,16", "--outputs", folder.path("out")},
              environment);
    INFO(ended.err);
    REQUIRE(ended.status == 0);
  }

  Ended cache(std::vector<std::string> words) const {
    words.insert(words.begin(), "cache");
    return start(words, environment);
  }

  fs::path an_entry() const {
    for (const auto& item : fs::recursive_directory_iterator(folder.path("cache"))) {
      if (item.path().extension() == ".twk") return item.path();
    }
    FAIL("no entry");
    return {};
  }

  Folder folder;
  Environment environment;
};

}  // namespace

TEST_CASE("cli: cache verify reads everything, and its status says whether it is good") {
  const Cached cached;
  const Ended good = cached.cache({"verify", "--json"});
  REQUIRE(good.status == 0);
  REQUIRE(good.json()["entries"] == 2);
  REQUIRE(good.json()["ok"] == true);

  std::ofstream(cached.an_entry(), std::ios::app) << "x";
  const Ended bad = cached.cache({"verify"});
  REQUIRE(bad.status == 1);
  REQUIRE_THAT(bad.out, ContainsSubstring("digest does not match") && ContainsSubstring("1 bad"));
  const Ended facts = cached.cache({"verify", "--json"});
  REQUIRE(facts.status == 1);
  REQUIRE(facts.json()["bad"].size() == 1);
}

TEST_CASE("cli: cache prune leaves at most what it is told") {
  const Cached cached;
  const Ended nothing = cached.cache({"prune", "--json"});
  REQUIRE(nothing.status == 0);
  REQUIRE(nothing.json()["removed_entries"] == 0);
  REQUIRE(nothing.json()["max_bytes"] == std::int64_t{4} << 30);
  const auto bytes = nothing.json()["bytes"].get<std::uint64_t>();
  const Ended some = cached.cache({"prune", "--max-size", std::to_string(bytes - 1), "--json"});
  REQUIRE(some.json()["removed_entries"] == 1);
  REQUIRE(some.json()["entries"] == 1);
  REQUIRE(cached.cache({"stats", "--json"}).json()["entries"] == 1);

  const Ended wrong = cached.cache({"prune", "--max-size", "much"});
  REQUIRE(wrong.status == 2);
  REQUIRE_THAT(wrong.err, ContainsSubstring("--max-size much is no size"));
  REQUIRE(cached.cache({"ls", "--max-size", "1G"}).status == 2);
}

TEST_CASE("cli: the limit of the cache comes from the environment") {
  Cached cached;
  cached.environment.push_back({"TILEWRIGHT_CACHE_MAX_SIZE", "1"});
  REQUIRE(cached.cache({"stats", "--json"}).json()["max_bytes"] == 1);
  REQUIRE(cached.cache({"prune", "--json"}).json()["entries"] == 0);
  cached.environment.back().second = "lots";
  REQUIRE(cached.cache({"prune", "--max-size", "1G", "--json"}).status == 0);
  const Ended wrong = cached.cache({"stats"});
  REQUIRE(wrong.status == 2);
  REQUIRE_THAT(wrong.err, ContainsSubstring("TILEWRIGHT_CACHE_MAX_SIZE is \"lots\""));
}

TEST_CASE("cli: doctor is ready without leave to compile where the cache serves") {
  Cached cached;
  cached.environment.push_back({"TILEWRIGHT_JIT", "off"});
  const Ended ended = start({"doctor", "--json"}, cached.environment);
  INFO(ended.out);
  REQUIRE(ended.status == 0);
  REQUIRE(ended.json()["ready"] == true);
  REQUIRE_THAT(ended.out, ContainsSubstring("only kernels of the cache run"));
  cached.environment.front().second = cached.folder.path("empty");
  REQUIRE(start({"doctor", "--json"}, cached.environment).status == 3);
}

TEST_CASE("cli: a cache that cannot be read does not pass for an empty one") {
  const Cached cached;
  fs::permissions(cached.folder.path("cache"), fs::perms::all);
  for (const char* action : {"ls", "stats", "verify", "prune", "clear"}) {
    const Ended ended = cached.cache({action, "--json"});
    CAPTURE(action);
    REQUIRE(ended.status == 3);
    REQUIRE_THAT(ended.err, ContainsSubstring("others can write to it"));
  }
}

TEST_CASE("cli: a CUDA kernel on disk is found without NVRTC and without a worker") {
  if (nvrtc_is_missing()) return;
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const std::string worker = folder.path("worker");
  const auto set_worker = [&](const std::string& body) {
    std::ofstream(worker) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(worker, fs::perms::owner_all);
  };
  const Environment environment = {{"TILEWRIGHT_CACHE", folder.path("cache")},
                                   {"TILEWRIGHT_WORKER", worker}};
  const auto compile = [&] {
    return start({"compile", spec, "--target", "sm_90", "--kernel", "forward_masked_lse", "--json"},
                 environment);
  };
  set_worker("exec " TILEWRIGHT_EXECUTABLE " \"$@\"");
  const Ended first = compile();
  INFO(first.err);
  REQUIRE(first.status == 0);
  set_worker("exit 1");
  const Ended second = compile();
  INFO(second.err);
  REQUIRE(second.status == 0);
  REQUIRE(second.json()["kernels"][0]["source"] == "disk");

  // A note that was touched is not trusted: a worker is asked, and the note written anew.
  const fs::path note = fs::directory_iterator(folder.path("cache/v1/notes"))->path();
  const auto size = fs::file_size(note);
  std::ofstream(note, std::ios::app) << "x";
  REQUIRE(compile().status == 0);  // what is on disk is found without knowing the compiler
  REQUIRE(fs::file_size(note) == size + 1);
  set_worker("exec " TILEWRIGHT_EXECUTABLE " \"$@\"");
  REQUIRE(compile().status == 0);
  REQUIRE(fs::file_size(note) == size);
}
