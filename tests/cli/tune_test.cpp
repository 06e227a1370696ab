// tune: what it measures, prints and remembers.

#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Tuned {
  Folder folder;
  std::string spec = folder.write("causal.json", kCausal);

  Environment environment(const Environment& more = {}) const {
    Environment all = {{"TILEWRIGHT_CACHE", folder.path("cache")}, {"TILEWRIGHT_DEVICE", "cpu"}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Ended tune(std::vector<std::string> more, const Environment& variables = {}) const {
    more.insert(more.begin(), {"tune", spec, "--budget-ms", "2"});
    return start(more, environment(variables), std::chrono::minutes(5));
  }

  Ended forget(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"tune", spec, "--forget"});
    return start(more, environment());
  }

  // The tactic that a call by `run` takes.
  std::string tactic(const Environment& variables = {}) const {
    const Ended ended = start(
        {"run", spec, "--inputs", "random:1,2,2,70,70", "--outputs", folder.path("out"), "--json"},
        environment(variables));
    INFO(ended.err);
    REQUIRE(ended.status == 0);
    return ended.json().at("tactic").get<std::string>();
  }
};

}  // namespace

TEST_CASE("tune: each shape has its times, and what is remembered is what calls take") {
  const Tuned tuned;
  const std::string before = tuned.tactic();
  const Ended ended = tuned.tune({"--shape", "1,2,2,200,200", "--shape", "2,2,1,70,300", "--json"});
  INFO(ended.err);
  REQUIRE(ended.status == 0);
  const nlohmann::json facts = ended.json();
  CHECK(facts.at("remembered") == true);
  CHECK(facts.at("candidates").get<int>() >= 5);
  CHECK(facts.at("wrong").empty());
  CHECK(facts.at("before") == before);
  REQUIRE(facts.at("shapes").size() == 2);
  CHECK(facts.at("shapes").at(0).at("shape") == "1,2,2,200,200");
  CHECK(facts.at("shapes").at(1).at("shape") == "2,2,1,70,300");
  for (const nlohmann::json& shape : facts.at("shapes")) {
    CHECK(shape.at("tactic") == facts.at("tactic"));
    CHECK(shape.at("before_ms").get<double>() > 0);
    // None is lost.
    CHECK(shape.at("after_ms").get<double>() <= 1.0102 * shape.at("before_ms").get<double>());
  }
  CHECK(tuned.tactic() == facts.at("tactic"));
  CHECK(start({"explain", tuned.spec, "--json"}, tuned.environment()).json().at("tactic") ==
        facts.at("tactic"));
  CHECK(tuned.tactic({{"TILEWRIGHT_TUNED", "0"}}) == before);
  CHECK(tuned.tactic({{"TILEWRIGHT_JIT", "off"}, {"TILEWRIGHT_TUNED", "0"}}) == before);
  CHECK(tuned.tactic({{"TILEWRIGHT_JIT", "off"}}) == before);

  const Ended kept = tuned.forget({"--dry-run", "--json"});
  CHECK(kept.status == 0);
  CHECK(kept.json() == nlohmann::json({{"remembered", true}, {"forgotten", false}}));
  CHECK(tuned.tactic() == facts.at("tactic"));
  CHECK_THAT(tuned.forget({"--dry-run"}).out, ContainsSubstring("without --dry-run"));

  const Ended forgotten = tuned.forget({"--json"});
  CHECK(forgotten.status == 0);
  CHECK(forgotten.json() == nlohmann::json({{"remembered", false}, {"forgotten", true}}));
  CHECK(tuned.tactic() == before);
}

TEST_CASE("tune: a dry run remembers nothing") {
  const Tuned tuned;
  const Ended ended = tuned.tune({"--shape", "1,2,2,100,100", "--dry-run"});
  INFO(ended.err);
  CHECK(ended.status == 0);
  CHECK_THAT(ended.out, ContainsSubstring("1,2,2,100,100"));
  CHECK_THAT(tuned.forget().out, ContainsSubstring("nothing was remembered"));
}

TEST_CASE("tune: what it cannot do is said") {
  const Tuned tuned;
  const Folder& folder = tuned.folder;
  const auto message = [&](const std::string& spec, std::vector<std::string> more,
                           const Environment& variables = {}) {
    more.insert(more.begin(), {"tune", spec});
    const Ended ended = start(more, tuned.environment(variables));
    CHECK(ended.status == 2);
    return ended.err;
  };
  CHECK_THAT(message(tuned.spec, {}), ContainsSubstring("--shape is required"));
  CHECK_THAT(message(tuned.spec, {"--shape", "1,2,2"}), ContainsSubstring("1,2,2"));
  CHECK_THAT(message(tuned.spec, {"--forget", "--shape", "1,2,2,9,9"}),
             ContainsSubstring("--shape excludes --forget"));
  const std::string four = message(tuned.spec, {"--shape", "1,8,8,700"});
  CHECK_THAT(four, ContainsSubstring("--shape \"1,8,8,700\" has 4 sizes, but needs 5"));
  CHECK_THAT(four, ContainsSubstring("write B,HQ,HKV,SQ,SKV ") && !ContainsSubstring("random:"));
  CHECK_THAT(message(tuned.spec, {"--shape", "1,8,x,7,7"}), ContainsSubstring("--shape HKV"));
  const std::string packed =
      folder.write("packed.json", R"({"dtype": "f32", "head_dim": 16, "layout": "packed"})");
  CHECK_THAT(message(packed, {"--shape", "1,2,2,9,9"}), ContainsSubstring("the spec is packed"));
  const std::string forced =
      folder.write("forced.json", R"({"dtype": "f32", "head_dim": 16, "tactic": "cpu"})");
  CHECK_THAT(message(forced, {"--shape", "1,2,2,9,9"}), ContainsSubstring("forces a tactic"));
  CHECK_THAT(message(tuned.spec, {"--shape", "1,2,2,9,9"}, {{"TILEWRIGHT_JIT", "off"}}),
             ContainsSubstring("TILEWRIGHT_JIT=off"));
}
