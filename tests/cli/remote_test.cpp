// The remote cache from the command line: two machines and a server.

#include <chrono>

#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/http_server.hpp"

using namespace tilewright;
using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

// A machine of its own as far as its cache goes.
struct Machine {
  Machine(const Folder& folder, const std::string& name, const std::string& url,
          const std::string& mode)
      : environment({{"TILEWRIGHT_CACHE", folder.path(name)},
                     {"TILEWRIGHT_REMOTE_CACHE", url},
                     {"TILEWRIGHT_REMOTE_CACHE_MODE", mode}}) {}

  nlohmann::json run(std::vector<std::string> words) const {
    words.emplace_back("--json");
    const Ended ended = start(words, environment);
    INFO(ended.err);
    REQUIRE(ended.status == 0);
    REQUIRE(ended.err.empty());
    return ended.json();
  }

  Environment environment;
};

std::vector<std::string> use(const Folder& folder, const std::string& spec) {
  return {"run",      spec, "--inputs", "random:1,1,1,16,16", "--outputs", folder.path("out"),
          "--device", "cpu"};
}

std::vector<std::string> sources(const nlohmann::json& facts) {
  std::vector<std::string> found;
  for (const auto& kernel : facts["kernels"]) found.push_back(kernel["source"]);
  return found;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("cli: what one machine compiles, another one fetches, and says so") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const KeepingServer server;
  const Machine first(folder, "first", server.url(), "readwrite");
  const Machine second(folder, "second", server.url(), "read");
  REQUIRE(sources(first.run(use(folder, spec))) == Words{"built", "built"});
  REQUIRE(server.kept().size() == 4);

  const nlohmann::json explained = second.run({"cache", "explain", spec});
  std::size_t hits = 0;
  for (const auto& kernel : explained["kernels"]) {
    const auto& place = kernel["looked_in"].back();
    REQUIRE(place["where"] == server.url());
    REQUIRE_THAT(place["by"].get<std::string>(), ContainsSubstring("key "));
    hits += place["hit"] == true ? 1 : 0;
  }
  REQUIRE(hits == 2);

  REQUIRE(sources(second.run(use(folder, spec))) == Words{"remote", "remote"});
  REQUIRE(sources(second.run(use(folder, spec))) == Words{"disk", "disk"});
  REQUIRE(server.kept().size() == 4);
}

TEST_CASE("cli: doctor and cache stats ask the remote cache") {
  const Folder folder;
  const KeepingServer server;
  const std::string with_password = "http://me:secret@" + server.url().substr(7);
  const Machine machine(folder, "cache", with_password, "readwrite");
  const nlohmann::json stats = machine.run({"cache", "stats"})["remote_cache"];
  REQUIRE(stats["url"] == server.url());
  REQUIRE(stats["mode"] == "readwrite");
  REQUIRE(stats["answers"] == true);
  REQUIRE(stats["timeout_s"] == 3);
  const Ended doctor = start({"doctor"}, machine.environment);
  REQUIRE_THAT(doctor.out, ContainsSubstring(server.url() + ", readwrite, answers in") &&
                               !ContainsSubstring("secret"));
  REQUIRE(start({"doctor", "--json"}, machine.environment).json()["remote_cache"] != nullptr);

  const Machine none(folder, "cache", "", "");
  REQUIRE(none.run({"cache", "stats"})["remote_cache"] == nullptr);
}

TEST_CASE("cli: a remote cache that stalls costs its limit, and doctor says what to do") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const HttpServer server([](const Asked&) { return Reply{.stall = std::chrono::hours(1)}; });
  Machine machine(folder, "cache", server.url(), "readwrite");
  machine.environment.emplace_back("TILEWRIGHT_REMOTE_CACHE_TIMEOUT", "0.2");
  const Ended ended = start(use(folder, spec), machine.environment);
  REQUIRE(ended.status == 0);
  REQUIRE_THAT(ended.err, ContainsSubstring("cannot be relied on") &&
                              ContainsSubstring("no answer within 0.2 s"));
  REQUIRE(ended.err.find("cannot be relied on") == ended.err.rfind("cannot be relied on"));

  const Ended doctor = start({"doctor"}, machine.environment);
  REQUIRE(doctor.status == 0);  // kernels run all the same
  REQUIRE_THAT(doctor.out, ContainsSubstring("the remote cache cannot be used") &&
                               ContainsSubstring("check TILEWRIGHT_REMOTE_CACHE"));
}

TEST_CASE("cli: a remote cache that cannot be understood is an error before anything is compiled") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const Machine machine(folder, "cache", "cache.example:8080", "");
  const Ended ended = start(use(folder, spec), machine.environment);
  REQUIRE(ended.status == 2);
  REQUIRE_THAT(ended.err, ContainsSubstring("is no URL of a remote cache"));
  REQUIRE(start({"cache", "stats"}, machine.environment).status == 2);
  const Ended doctor = start({"doctor"}, machine.environment);
  REQUIRE(doctor.status == 3);
  REQUIRE_THAT(doctor.out, ContainsSubstring("give one such as http://cache.example:8080"));
}
