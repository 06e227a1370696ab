// bench --suite backward: which calls it has, and specs that can have no gradients.
#include <string>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

Ended bench(std::vector<std::string> more) {
  std::vector<std::string> words = {"bench", "--suite", "backward", "--device", "cpu"};
  words.insert(words.end(), more.begin(), more.end());
  return start(words);
}

TEST_CASE("cli backward bench: --list and --only") {
  const nlohmann::json all = bench({"--list"}).json();
  REQUIRE(all.size() >= 5);
  for (const nlohmann::json& row : all) {
    INFO(row.dump());
    CHECK(row["spec"]["gradients"].size() >= 3);
    CHECK(row["q_len"] == 1024);
  }
  CHECK(bench({"--list", "--only", "causal f32 d64"}).json().size() == 2);  // alibi_causal too
  const Ended unknown = bench({"--list", "--only", "nothing"});
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.err, ContainsSubstring("no row of the suite holds \"nothing\"") &&
                              ContainsSubstring("causal f32 d64 batch 1, heads 4/4"));
}

TEST_CASE("cli bench and tune: NaN of a snippet is the user's to mend") {
  const Folder folder;
  const std::string spec = folder.write(
      "s.json", R"x({"dtype": "f32", "head_dim": 16, "score_mod": "sqrt(score - 100.0)"})x");
  const auto refused = [](const Ended& ended) {
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.err, ContainsSubstring("error[snippet]") &&
                              ContainsSubstring("hint: score_mod may give NaN or infinity"));
  };
  refused(bench({"--spec", spec, "--inputs", "random:1,1,1,64,64", "--budget-ms", "1"}));
  refused(start({"bench", "--device", "cpu", "--spec", spec, "--inputs", "random:1,1,1,64,64",
                 "--budget-ms", "1"}));
  refused(start({"tune", spec, "--device", "cpu", "--shape", "1,1,1,64,64", "--budget-ms", "1",
                 "--dry-run"}));
}

TEST_CASE("cli backward bench: a spec that can have no gradients is told who asks for them") {
  const Folder folder;
  const auto refused = [&](const std::string& keys, std::vector<std::string> more) {
    const std::string spec =
        folder.write("s.json", R"({"dtype": "f32", "head_dim": 16, )" + keys + "}");
    more.insert(more.begin(), {"--spec", spec});
    const Ended ended = bench(more);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.err, ContainsSubstring("error[usage]: --suite backward asks for gradients, "
                                            "which the spec cannot have: "));
    return ended.err;
  };
  const std::string scaled = refused(R"("k_scale": "0.5f")", {"--inputs", "random:1,2,2,64,64"});
  CHECK_THAT(scaled, ContainsSubstring("k_scale") && ContainsSubstring("--suite dense"));
  CHECK_THAT(refused(R"("f32_products": "tf32")", {}), ContainsSubstring("f32_products"));
  CHECK_THAT(refused(R"("layout": "packed", "kv_layout": "paged")",
                     {"--inputs", "random:2,2/8:8/page=16"}),
             ContainsSubstring("pages") && ContainsSubstring("--suite serving"));
}

TEST_CASE("cli backward bench: a buffer that sink reads too has no gradient") {
  const Folder folder;
  const std::string spec =
      folder.write("s.json", R"({"dtype": "f32", "head_dim": 16, "score_mod": "score * a[h] + c[h]",
                    "sink": "a[h]", "buffers": {"a": {"dtype": "f32", "shape": ["num_q_heads"]},
                                                "c": {"dtype": "f32", "shape": ["num_q_heads"]}}})");
  const nlohmann::json rows = bench({"--list", "--spec", spec}).json();
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["spec"]["gradients"] == nlohmann::json({"q", "k", "v", "c"}));
}

TEST_CASE("cli backward bench: the gradient of a buffer of f64 is f32") {
  const Folder folder;
  const std::string spec =
      folder.write("s.json", R"({"dtype": "f32", "head_dim": 16, "score_mod": "score + c[h]",
                    "buffers": {"c": {"dtype": "f64", "shape": ["num_q_heads"]}}})");
  const Ended ended = bench({"--spec", spec, "--inputs", "random:1,2,2,32,32", "--budget-ms", "1",
                             "--threads", "1", "--json"});
  INFO(ended.out << ended.err);
  CHECK(ended.status == 0);
}

TEST_CASE("cli backward bench: calls that are repeated have equal bits") {
  const Folder folder;
  const std::string spec = folder.write(
      "s.json",
      R"({"dtype": "f32", "head_dim": 16, "outputs": ["out", "lse"], "gradients": ["q"]})");
  const Ended ended = bench({"--spec", spec, "--inputs", "random:1,2,2,32,32", "--budget-ms", "1",
                             "--threads", "1", "--deterministic", "--repeats", "3", "--json"});
  INFO(ended.out << ended.err);
  CHECK(ended.status == 0);
  CHECK(bench({"--repeats", "-1"}).status == 2);
}

}  // namespace
