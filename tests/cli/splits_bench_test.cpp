// bench --suite splits: its rows, of which a CPU splits none, and what it refuses.
#include <string>
#include <vector>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

Ended bench_splits(std::vector<std::string> more) {
  std::vector<std::string> words = {"bench", "--suite", "splits", "--device", "cpu"};
  words.insert(words.end(), more.begin(), more.end());
  return start(words);
}

}  // namespace

TEST_CASE("cli splits bench: dense, packed and paged rows, which a CPU compares with nothing") {
  const Ended ended = bench_splits({"--head-dim", "16", "--budget-ms", "1", "--json"});
  INFO(ended.err);
  REQUIRE(ended.status == 0);
  const nlohmann::json rows = ended.json().at("rows");
  CHECK(rows.size() == 9);
  for (const nlohmann::json& row : rows) {
    CHECK(row.at("ms").get<double>() > 0);
    CHECK_FALSE(row.contains("unsplit_ms"));
    CHECK_FALSE(row.contains("ratio"));
    CHECK(row.at("kernel").get<std::string>().find("split") == std::string::npos);
  }
}

TEST_CASE("cli splits bench: --only chooses rows and --list shows them") {
  const Ended listed = bench_splits({"--head-dim", "16", "--list"});
  INFO(listed.err);
  REQUIRE(listed.status == 0);
  const nlohmann::json all = listed.json();
  CHECK(all.size() == 9);
  CHECK(all.at(0).at("kv_len") == 131072 / 16);
  CHECK(all.at(7).at("inputs") == "random:8,8/32:2048x2");
  const Ended only =
      bench_splits({"--head-dim", "16", "--only", "softcap", "--budget-ms", "1", "--threads", "1"});
  INFO(only.err);
  REQUIRE(only.status == 0);
  CHECK_THAT(only.out, ContainsSubstring("softcap_causal") && ContainsSubstring("1x32:8192") &&
                           !ContainsSubstring("dense") && !ContainsSubstring("times as fast"));
  CHECK_THAT(bench_splits({"--only", "nothing"}).err,
             ContainsSubstring("no row of the suite holds \"nothing\""));
}

TEST_CASE("cli splits bench: sizes, specs and threads of one's own are refused") {
  const Ended sized = bench_splits({"--q-len", "64"});
  CHECK(sized.status == 2);
  CHECK_THAT(sized.err, ContainsSubstring("--suite splits takes no --q-len"));
  CHECK_THAT(bench_splits({"--batch-invariant"}).err,
             ContainsSubstring("--suite splits takes no --batch-invariant"));
  CHECK_THAT(bench_splits({"--threads", "1,2"}).err,
             ContainsSubstring("--suite splits takes one number of --threads"));
}
