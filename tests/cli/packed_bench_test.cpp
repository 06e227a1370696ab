// bench of packed specs.
#include <set>
#include <sstream>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;

namespace {

constexpr const char* kPacked = R"json({
  "name": "packed", "dtype": "f16", "head_dim": 16, "layout": "packed", "block": [64, 64],
  "mask_mod": "q_idx >= kv_idx"})json";

// Packed tests of this executable run on the emulated GPU too.
std::string device() {
  const char* const given = std::getenv("TILEWRIGHT_TEST_DEVICE");
  return given == nullptr ? "cpu" : given;
}

Ended bench(std::vector<std::string> words) {
  words.insert(words.begin(), "bench");
  words.insert(words.end(), {"--device", device(), "--budget-ms", "1"});
  return start(words, {}, std::chrono::minutes(10));
}

nlohmann::json rows_of(const Ended& ended) {
  INFO(ended.err);
  REQUIRE(ended.status == 0);
  return ended.json()["rows"];
}

void require_refused(const Ended& ended, const std::string& words) {
  REQUIRE(ended.status == 2);
  REQUIRE_THAT(ended.err, ContainsSubstring(words));
}

}  // namespace

TEST_CASE("cli packed bench: a packed spec of one's own is of the suite of packed calls") {
  const Folder folder;
  const Ended ended = bench({"--spec", folder.write("s.json", kPacked), "--inputs",
                             "random:2,1/20:20", "--batch-invariant", "--json"});
  INFO(ended.err);
  REQUIRE(ended.status == 0);
  REQUIRE(ended.json()["suite"] == "serving");
}

TEST_CASE("cli packed bench: --batch-invariant is for packed calls") {
  const Folder folder;
  const std::string dense = folder.write("d.json", R"({"dtype": "f32", "head_dim": 16})");
  require_refused(bench({"--spec", dense, "--batch-invariant"}), "is for packed specs");
  require_refused(bench({"--suite", "mods", "--batch-invariant"}), "is for packed ones");
}

TEST_CASE("cli packed bench: a step of decoding says which kernel serves it") {
  const Folder folder;
  const auto row = rows_of(bench({"--spec", folder.write("s.json", kPacked), "--inputs",
                                  "random:2,1/1:60x2", "--json"}))
                       .at(0);
  CHECK(row.at("kernel") == (device() == "cpu" ? "forward" : "forward_decode"));
}

TEST_CASE("cli packed bench: --splits is a number of parts") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPacked);
  const Ended ended = bench({"--spec", spec, "--inputs", "random:2,1/1:60x2", "--splits", "2"});
  INFO(ended.err);
  REQUIRE(ended.status == 0);
  require_refused(bench({"--spec", spec, "--splits", "-1"}), "--splits");
  require_refused(bench({"--suite", "masks", "--splits", "2"}), "--suite masks takes no --splits");
}

TEST_CASE("cli packed bench: one call counts the elements that its sequences keep") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPacked);
  const nlohmann::json rows =
      rows_of(bench({"--spec", spec, "--inputs", "random:4,2/100:100,3:50x2,0:7", "--json"}));
  REQUIRE(rows.size() == 1);
  const nlohmann::json& row = rows[0];
  REQUIRE(row["inputs"] == "random:4,2/100:100,3:50x2,0:7");
  REQUIRE(row["total_q"] == 106);
  REQUIRE(row["total_kv"] == 207);
  // 1 to 100 elements of 100, and 48, 49 and 50 of 50 twice.
  const double pairs = 100 * 100 + 2 * 3 * 50;
  REQUIRE_THAT(row["kept"].get<double>(), WithinAbs((5050 + 2 * 147) / pairs, 1e-9));
  // Of the first sequence's four tiles of 64 x 64, three; of the others' one each.
  REQUIRE_THAT(row["density"].get<double>(), WithinAbs(5.0 / 6, 1e-9));
  REQUIRE_THAT(row["gflops_dense"].get<double>() * row["ms"].get<double>() * 1e6,
               WithinAbs(2.0 * (16 + 16) * 4 * pairs, 1));
  REQUIRE(row["plan_ms"].get<double>() > 0);
  REQUIRE(row["plan_timing"] ==
          (device() == "cpu" ? "the host's clock" : "CUDA events, replayed graph"));
}

TEST_CASE("cli packed bench: a buffer with rows of the packed tensors") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({
    "dtype": "f32", "head_dim": 16, "layout": "packed", "mask_mod": "doc[q_token] == doc[kv_token]",
    "buffers": {"doc": {"dtype": "i32", "shape": ["total_kv"]}}})json");
  const std::string zeros =
      write_zeros(folder, "z.safetensors", {{"doc", tilewright::DType::i32, {60}}});
  const nlohmann::json rows = rows_of(
      bench({"--spec", spec, "--inputs", "random:1,1/30:40,20:20", "--buffers", zeros, "--json"}));
  REQUIRE(rows[0]["kept"] == 1);
}

TEST_CASE("cli packed bench: --serve answers packed requests") {
  const std::string request = R"({"spec": {"dtype": "f32", "head_dim": 16, "layout": "packed"})";
  const Ended ended =
      shell("printf '%s\\n' '" + request + R"(, "inputs": "random:2,1/30:40x3"}' ')" + request +
            R"(}' ')" + request + R"(, "inputs": "random:2,1/30:40", "q_len": 7}' | )" +
            "$tilewright bench --serve --budget-ms 1 --device " + device());
  REQUIRE(ended.status == 0);
  std::istringstream lines(ended.out);
  std::vector<nlohmann::json> answers;
  for (std::string line; std::getline(lines, line);) answers.push_back(nlohmann::json::parse(line));
  REQUIRE(answers.size() == 3);
  REQUIRE(answers[0]["total_q"] == 90);
  REQUIRE(answers[0]["kept"] == 1);
  REQUIRE(answers[0]["plan_ms"].get<double>() > 0);
  REQUIRE_THAT(answers[1]["error"]["message"].get<std::string>(),
               ContainsSubstring("no \"inputs\""));
  REQUIRE_THAT(answers[2]["error"]["message"].get<std::string>(),
               ContainsSubstring("--q-len and --inputs both give sizes"));
}

TEST_CASE("cli packed bench: the suite serving on a CPU") {
  const nlohmann::json rows =
      rows_of(start({"bench", "--suite", "serving", "--q-len", "256", "--heads", "2", "--head-dim",
                     "16", "--budget-ms", "1", "--threads", "1", "--device", "cpu", "--json"},
                    {}, std::chrono::minutes(10)));
  std::set<std::string> compared;
  for (const nlohmann::json& row : rows) {
    CAPTURE(row.dump());
    REQUIRE(row["ms"].get<double>() > 0);
    REQUIRE(row["plan_share"].get<double>() > 0);
    if (!row.contains("ratio")) continue;
    compared.insert(row["variant"].get<std::string>() + " to " +
                    row["reference"].get<std::string>());
    // Rates of the same unit of work.
    REQUIRE(row["ratio"].get<double>() > 0.01);
    REQUIRE(row["ratio"].get<double>() < 100);
  }
  REQUIRE(compared == std::set<std::string>{
                          "causal to dense", "alibi_causal to dense",
                          "alibi_causal to packed causal", "softcap_causal to dense",
                          "softcap_causal to packed causal", "window_1024 to dense",
                          "window_1024 to packed causal", "block_sparse to dense, all tiles"});
  REQUIRE(rows[1]["sequences"] == "128+64+32+16+8x2");
  REQUIRE(rows[1]["inputs"] == "random:2,2/128:128,64:64,32:32,16:16,2:2x8");
}

TEST_CASE("cli packed bench: the suite paged on a CPU") {
  const nlohmann::json rows =
      rows_of(start({"bench", "--suite", "paged", "--q-len", "256", "--heads", "2", "--head-dim",
                     "16", "--budget-ms", "1", "--threads", "1", "--device", "cpu", "--json"},
                    {}, std::chrono::minutes(10)));
  REQUIRE(rows.size() == 22);
  std::set<std::string> compared;
  for (const nlohmann::json& row : rows) {
    CAPTURE(row.dump());
    REQUIRE(row["kv_gbytes_per_s"].get<double>() > 0);
    if (row.contains("ratio")) compared.insert(row["reference"]);
  }
  REQUIRE(compared == std::set<std::string>{"all in pages", "decode", "decode of 1k", "packed"});
  REQUIRE(rows[5]["inputs"] == "random:2,2/1:128x64/page=16");
  // K and V of 64 sequences of 128 columns, 2 heads and 16 numbers of 4 bytes.
  const double bytes = rows[5]["kv_gbytes_per_s"].get<double>() * rows[5]["ms"].get<double>() * 1e6;
  REQUIRE_THAT(bytes, WithinAbs(64.0 * 128 * 2 * 2 * 16 * 4, 1));
  require_refused(bench({"--suite", "paged", "--batch", "2"}), "--batch is for dense calls");
}

TEST_CASE("cli packed bench: new rows beside pages") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "f32", "head_dim": 16,
    "layout": "packed", "kv_layout": "paged", "kv_new": true})json");
  const nlohmann::json rows =
      rows_of(bench({"--spec", spec, "--inputs", "random:2,1/8:40,1:33x2/page=16", "--json"}));
  REQUIRE(rows.size() == 1);
  REQUIRE(rows[0]["ms"].get<double>() > 0);
}

TEST_CASE("cli packed bench: a row of the suite that is compared with a dense call") {
  const nlohmann::json rows =
      rows_of(bench({"--suite", "serving", "--only", "block_sparse", "--head-dim", "16", "--q-len",
                     "200", "--heads", "1", "--json"}));
  REQUIRE(rows.size() == 1);
  const nlohmann::json& row = rows[0];
  REQUIRE(row["reference"] == "dense, all tiles");
  REQUIRE(row["ratio_of"] == "gflops_tiles");
  // The causal tiles of 192 x 64, seven of eight, and as many operations as both count.
  REQUIRE(row["density"] == 0.875);
  const double work = row["ratio"].get<double>() * row["ms"].get<double>();
  REQUIRE_THAT(work / row["reference_ms"].get<double>(), WithinAbs(0.875, 1e-9));
}

TEST_CASE("cli packed bench: --only leaves rows out") {
  const auto listed = [](const std::string& suite, const std::string& text) {
    return start({"bench", "--suite", suite, "--device", "cpu", "--list", "--only", text});
  };
  REQUIRE(listed("serving", "64x").json().size() == 2);
  REQUIRE(listed("serving", "alibi_causal").json().size() == 2);
  REQUIRE(listed("serving", "packed causal").json().size() == 3);
  REQUIRE(listed("dense", "f16 d64").json().size() == 2);  // bf16 too
  require_refused(listed("mods", "nothing"), "no row of the suite holds \"nothing\"");
  // The error lists what there is.
  REQUIRE_THAT(listed("mods", "nothing").err, ContainsSubstring("causal f32 d64 batch 1"));
  REQUIRE_THAT(listed("serving", "nothing").err, ContainsSubstring("block_sparse"));
  require_refused(start({"bench", "--suite", "launch", "--only", "dense"}), "takes no --only");
}

TEST_CASE("cli packed bench: --list names packed calls as --serve takes them") {
  const Ended ended = start({"bench", "--suite", "serving", "--list", "--device", "cpu"},
                            {{"TILEWRIGHT_CXX", "/nowhere"}});
  REQUIRE(ended.status == 0);
  for (const nlohmann::json& row : ended.json()) {
    REQUIRE(row["spec"]["layout"] == "packed");
    REQUIRE_THAT(row["inputs"].get<std::string>(), Catch::Matchers::StartsWith("random:"));
    REQUIRE(row.size() == 2);
  }
}

TEST_CASE("cli packed bench: host time of forward and rebuild") {
  const Folder folder;
  const nlohmann::json rows =
      rows_of(bench({"--suite", "launch", "--spec", folder.write("s.json", kPacked), "--json"}));
  REQUIRE(rows[0]["variant"] == "packed");
  REQUIRE(rows[0]["ms"].get<double>() > 0);
}

TEST_CASE("cli packed bench: the backward pass of one call") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"({
    "name": "learnt", "dtype": "f32", "head_dim": 16, "layout": "packed", "mask_mod": "q_idx >= kv_idx"})");
  const std::string lengths = "random:2,1/40:60,7:7";
  const nlohmann::json rows =
      rows_of(bench({"--suite", "backward", "--spec", spec, "--inputs", lengths, "--json"}));
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["gradients"] == nlohmann::json({"q", "k", "v"}));
  CHECK(rows[0]["total_kv"] == 67);
  CHECK(rows[0]["inputs"] == lengths);
  CHECK(rows[0]["gflops"].get<double>() > 0);
  require_refused(bench({"--suite", "backward", "--spec", spec}), "and the spec is packed");
}

TEST_CASE("cli packed bench: what cannot be measured is refused") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPacked);
  const std::string dense = folder.write("d.json", R"({"dtype": "f32", "head_dim": 16})");
  const std::string lengths = "random:2,1/4:8";
  for (const std::string suite : {"dense", "mods", "growth", "masks", "start"}) {
    require_refused(bench({"--suite", suite, "--spec", spec}), "and the spec is packed");
  }
  require_refused(bench({"--spec", spec, "--list"}), "and the spec is packed");
  require_refused(bench({"--suite", "serving", "--spec", dense}), "the spec is dense");
  require_refused(bench({"--suite", "serving", "--spec", dense, "--inputs", "random:1,2,1,8,8"}),
                  "the spec is dense");
  require_refused(bench({"--suite", "masks", "--spec", spec, "--inputs", lengths}),
                  "takes no --inputs");
  require_refused(bench({"--inputs", lengths}), "--inputs are those of a spec of your own");
  require_refused(bench({"--spec", spec, "--inputs", "f.safetensors"}), "is no random:");
  require_refused(bench({"--spec", spec, "--inputs", "random:1,2,2,3,4"}),
                  "no lengths of sequences");
  require_refused(bench({"--spec", dense, "--inputs", lengths}), "layout is not \"packed\"");
  require_refused(bench({"--spec", spec, "--inputs", lengths, "--heads", "2"}),
                  "--heads and --inputs both give sizes");
  require_refused(bench({"--spec", spec, "--inputs", "random:2,1/0:8"}), "no rows of q");
  require_refused(bench({"--suite", "serving", "--batch", "2"}), "--batch is for dense calls");
}

TEST_CASE("cli: bench takes the sizes of a dense call as run does") {
  const Folder folder;
  const std::string spec = folder.write("d.json", R"({"dtype": "f32", "head_dim": 16})");
  const nlohmann::json rows =
      rows_of(start({"bench", "--spec", spec, "--inputs", "random:2,4,2,30,40", "--budget-ms", "1",
                     "--device", "cpu", "--json"}));
  REQUIRE(rows[0]["batch"] == 2);
  REQUIRE(rows[0]["num_kv_heads"] == 2);
  REQUIRE(rows[0]["kv_len"] == 40);
}
