// bench --suite splits: each row next to the same call unsplit, and what it refuses.
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

TEST_CASE("cli splits bench: dense, packed and paged rows, which a CPU does not split") {
  const Ended ended = bench_splits({"--head-dim", "16", "--budget-ms", "1", "--json"});
  INFO(ended.err);
  REQUIRE(ended.status == 0);
  const nlohmann::json rows = ended.json().at("rows");
  CHECK(rows.size() == 9);
  for (const nlohmann::json& row : rows) {
    CHECK(row.at("ms").get<double>() > 0);
    CHECK(row.at("unsplit_ms").get<double>() > 0);
    CHECK(row.at("ratio").get<double>() > 0);
    CHECK(row.at("kernel").get<std::string>().find("split") == std::string::npos);
  }
}

TEST_CASE("cli splits bench: sizes and specs of one's own are refused") {
  const Ended sized = bench_splits({"--q-len", "64"});
  CHECK(sized.status == 2);
  CHECK_THAT(sized.err, ContainsSubstring("--suite splits takes no --q-len"));
  CHECK(bench_splits({"--only", "causal"}).status == 2);
  CHECK_THAT(bench_splits({"--batch-invariant"}).err,
             ContainsSubstring("--suite splits takes no --batch-invariant"));
}
