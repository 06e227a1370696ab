// What the verbs do where nothing is wrong.

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/file_io.hpp"
#include "runtime/api/safetensors.hpp"
#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string kShape = "random:2,4,2,100,130";

nlohmann::json done(const Ended& ended) {
  INFO(ended.err);
  REQUIRE(ended.status == 0);
  return ended.json();
}

void require_keys(const nlohmann::json& object, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    INFO(key);
    REQUIRE(object.contains(key));
  }
}

std::vector<float> floats(const std::string& file, const std::string& name) {
  const TensorFile contents = read_safetensors(file);
  const TensorView view = contents.tensors.at(name).view();
  const auto* data = static_cast<const float*>(view.data);
  return {data, data + view.numel()};
}

// A line of a table that says how long a step took, in whichever unit suits the machine.
auto has_time_of(const std::string& step) {
  return Catch::Matchers::Matches("[^]*\n" + step + " +[0-9.]+ [mun]?s[ \n][^]*");
}

}  // namespace

TEST_CASE("cli: run writes out and lse, and says what it did and how long each step took") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const std::string outputs = folder.path("out.safetensors");
  const Ended ended = start({"run", spec, "--inputs", kShape, "--outputs", outputs});
  INFO(ended.err);
  REQUIRE(ended.status == 0);
  REQUIRE_THAT(ended.out, ContainsSubstring("causal on cpu"));
  REQUIRE_THAT(ended.out, ContainsSubstring("compile"));  // from disk, where there is no time
  for (const char* step : {"render", "load", "mask", "forward", "write"}) {
    CHECK_THAT(ended.out, has_time_of(step));
  }
  const TensorFile file = read_safetensors(outputs);
  REQUIRE(file.tensors.size() == 2);
  REQUIRE(file.tensors.at("out").describe() == "f32 [2, 4, 100, 16]");
  REQUIRE(file.tensors.at("lse").describe() == "f32 [2, 4, 100]");
  REQUIRE(folder.names() == std::vector<std::string>{"out.safetensors", "s.json"});
}

TEST_CASE("cli: run --json has the facts under stable keys") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const nlohmann::json facts =
      done(start({"run", spec, "--inputs", kShape, "--outputs", folder.path("o"), "--json"}));
  require_keys(facts, {"device", "target", "kernel", "tactic", "shape", "kernels", "mask",
                       "times_ms", "outputs"});
  require_keys(facts["times_ms"], {"render", "compile", "load", "mask", "forward", "write"});
  REQUIRE(facts["kernel"] == "forward_masked_lse");
  REQUIRE(facts["shape"]["kv_len"] == 130);
}

TEST_CASE("cli: the same seed gives the same result, another seed another one") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const auto result = [&](const std::string& seed) {
    const std::string file = folder.path("out" + seed);
    const Ended ended = start({"run", spec, "--inputs", kShape, "--outputs", file, "--seed", seed});
    REQUIRE(ended.status == 0);
    return floats(file, "out");
  };
  const std::vector<float> first = result("1");
  REQUIRE(first == result("1"));
  REQUIRE(first != result("2"));
}

TEST_CASE("cli: a file's tensors are what is computed with") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  // Equal scores: every row is the mean of the rows of v that it sees; v counts its rows.
  Tensor v = Tensor::zeros(f32, {1, 1, 4, 16});
  for (int i = 0; i < 64; ++i) static_cast<float*>(v.data())[i] = static_cast<float>(i / 16);
  const Tensor zeros = Tensor::zeros(f32, {1, 1, 4, 16});
  write_safetensors(folder.path("in"), {{"q", zeros.view()}, {"k", zeros.view()}, {"v", v.view()}});
  const auto out_with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "run", spec, "--inputs", folder.path("in"), "--outputs", folder.path("out")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = start(arguments);
    INFO(ended.err);
    REQUIRE(ended.status == 0);
    std::vector<float> firsts;
    const std::vector<float> out = floats(folder.path("out"), "out");
    for (std::size_t row = 0; row < 4; ++row) firsts.push_back(out[row * 16]);
    return firsts;
  };
  REQUIRE(out_with({}) == std::vector<float>{0, 0.5, 1, 1.5});
  REQUIRE(out_with({"--q-offset", "1"}) == std::vector<float>{0.5, 1, 1.5, 1.5});
  REQUIRE(out_with({"--kv-offset", "2"}) == std::vector<float>{0, 0, 0, 0.5});
}

TEST_CASE("cli: check says ok with the numbers of the rule") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kDocuments);
  const std::vector<std::string> arguments = {"check", spec,       "--inputs",
                                              kShape,  "--scalar", "cap=0.5"};
  std::vector<std::string> json = arguments;
  json.push_back("--json");
  const nlohmann::json report = done(start(json));
  require_keys(report, {"ok", "error_max", "error_rms", "bound", "lse_error", "undefined"});
  REQUIRE(report["ok"] == true);
  REQUIRE(report["error_max"].get<double>() <= report["bound"].get<double>());
  const Ended ended = start(arguments);
  REQUIRE(ended.status == 0);
  REQUIRE_THAT(ended.out, ContainsSubstring("\nok\n"));
  REQUIRE_THAT(ended.out, ContainsSubstring("error max"));
  REQUIRE(folder.names() == std::vector<std::string>{"s.json"});
}

TEST_CASE("cli: check shows what the checked interpretation found, at its place") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"({"dtype": "f32", "head_dim": 16,
    "score_mod": "score + table[q_idx]",
    "buffers": {"table": {"dtype": "f32", "shape": [8]}}})");
  const std::vector<std::string> arguments = {"check", spec, "--inputs", "random:1,1,1,9,4"};
  const Ended ended = start(arguments);
  REQUIRE(ended.status == 0);
  REQUIRE_THAT(ended.out, ContainsSubstring("warning: "));
  REQUIRE_THAT(ended.out, ContainsSubstring("--> score_mod:1:9\n"));
}

TEST_CASE("cli: check ends with 1 where the kernel is wrong") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPlain);
  const std::string templates = folder.path("templates");
  std::filesystem::copy(TILEWRIGHT_SOURCE_DIR "/templates", templates,
                        std::filesystem::copy_options::recursive);
  const std::string kernel = templates + "/cpu/forward.hpp";
  std::string text = read_text_file(kernel);
  const std::string right = "arguments.scale";
  REQUIRE(text.find(right) != std::string::npos);
  folder.write("templates/cpu/forward.hpp",
               text.replace(text.find(right), right.size(), "1.5f * arguments.scale"));
  const Environment environment = {{"TILEWRIGHT_TEMPLATES", templates},
                                   {"TILEWRIGHT_CACHE", folder.path("cache")}};
  const std::vector<std::string> arguments = {"check", spec, "--inputs", kShape};
  const Ended ended = start(arguments, environment);
  INFO(ended.err);
  REQUIRE(ended.status == 1);
  REQUIRE_THAT(ended.out, ContainsSubstring("NOT OK"));
  std::vector<std::string> json = arguments;
  json.push_back("--json");
  const Ended facts = start(json, environment);
  REQUIRE(facts.status == 1);
  REQUIRE(facts.json()["ok"] == false);
  REQUIRE(facts.json()["error_max"].get<double>() > facts.json()["bound"].get<double>());
  REQUIRE_FALSE(facts.json()["reasons"].empty());
}

TEST_CASE("cli: render prints the kernel that run would use, or the one asked for") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const Ended forward = start({"render", spec});
  REQUIRE(forward.status == 0);
  REQUIRE_THAT(forward.out, ContainsSubstring("tilewright_forward"));
  REQUIRE_THAT(forward.out, ContainsSubstring("q_idx >= kv_idx"));
  REQUIRE_THAT(forward.out, !ContainsSubstring("#line"));
  const Ended mask = start({"render", spec, "--kernel", "mask_exact", "--lines"});
  REQUIRE(mask.status == 0);
  REQUIRE_THAT(mask.out, ContainsSubstring("tilewright_mask_row"));
  REQUIRE_THAT(mask.out, ContainsSubstring("#line"));
}

TEST_CASE("cli: an unknown kernel or target names the nearest one") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const Ended kernel = start({"render", spec, "--kernel", "mask_exat"});
  REQUIRE(kernel.status == 2);
  REQUIRE_THAT(kernel.err, ContainsSubstring("did you mean \"mask_exact\"?"));
  for (const char* verb : {"render", "compile"}) {
    const Ended target = start({verb, spec, "--target", "sm_90b"});
    REQUIRE(target.status == 2);
    REQUIRE_THAT(target.err, ContainsSubstring("sm_90a"));
  }
}

TEST_CASE("cli: compile --list names the closed set and needs no compiler") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const nlohmann::json list =
      done(start({"compile", spec, "--target", "cpu-x86-64-v3", "--list", "--json"},
                 {{"TILEWRIGHT_CXX", "/nonexistent"}}));
  std::vector<std::string> names;
  for (const nlohmann::json& kernel : list["kernels"]) names.push_back(kernel["name"]);
  for (const char* name : {"forward_masked_lse", "mask_exact", "mask_proved"}) {
    REQUIRE(std::count(names.begin(), names.end(), name) == 1);
  }
}

TEST_CASE("cli: compile reports every kernel, and -o writes one or, into a folder, all") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const nlohmann::json report = done(start(
      {"compile", spec, "--target", "cpu-x86-64-v3", "-o", folder.path("kernels/"), "--json"}));
  REQUIRE(report["kernels"].size() > 2);
  for (const nlohmann::json& kernel : report["kernels"]) {
    require_keys(
        kernel, {"name", "ms", "registers", "spill_bytes", "shared_bytes", "cubin_bytes", "bytes"});
    const std::string file = folder.path("kernels/" + kernel["name"].get<std::string>() + ".so");
    REQUIRE(std::filesystem::file_size(file) == kernel["bytes"].get<std::uintmax_t>());
  }
  const Ended one = start({"compile", spec, "--target", "cpu-x86-64-v3", "--kernel", "mask_exact",
                           "-o", folder.path("one.so")});
  REQUIRE(one.status == 0);
  REQUIRE(std::filesystem::file_size(folder.path("one.so")) ==
          std::filesystem::file_size(folder.path("kernels/mask_exact.so")));
}

TEST_CASE("cli: mask counts the tiles and writes the lists") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const nlohmann::json counts =
      done(start({"mask", spec, "--q-len", "256", "--kv-len", "256", "--outputs",
                  folder.path("lists"), "--picture", folder.path("mask.txt"), "--json"}));
  REQUIRE(counts["partial"] == 4);
  REQUIRE(counts["full"] == 6);
  REQUIRE(counts["empty"] == 6);
  REQUIRE(counts["density"].get<double>() == 10.0 / 16);
  REQUIRE(counts["path"] == "proved");
  REQUIRE(counts["tiles_evaluated"].get<int>() <= 16);
  const TensorFile lists = read_safetensors(folder.path("lists"));
  REQUIRE(lists.tensors.at("row_offsets").describe() == "i64 [5]");
  REQUIRE(lists.tensors.at("indices").describe() == "i32 [4]");
  REQUIRE(lists.tensors.at("full_row_offsets").describe() == "i64 [5]");
  REQUIRE(lists.tensors.at("full_indices").describe() == "i32 [6]");
  REQUIRE(std::filesystem::file_size(folder.path("mask.txt")) > 16);
}

TEST_CASE("cli: mask has lists per batch and per head only where the snippet names them") {
  const Folder folder;
  const std::string causal = folder.write("s.json", kCausal);
  const std::string documents = folder.write("d.json", kDocuments);
  const std::vector<std::string> sizes = {"--q-len", "128",       "--kv-len", "128",   "--batch",
                                          "3",       "--q-heads", "2",        "--json"};
  const auto counts = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), sizes.begin(), sizes.end());
    return done(start(arguments));
  };
  REQUIRE(counts({"mask", causal})["batch"] == 1);
  const nlohmann::json of_documents = counts({"mask", documents, "--scalar", "cap=1"});
  REQUIRE(of_documents["batch"] == 3);
  REQUIRE(of_documents["heads"] == 1);
}

TEST_CASE("cli: mask refuses what it cannot draw or has no mask for") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const std::vector<std::string> sizes = {"--q-len", "64", "--kv-len", "64"};
  const auto refused = [&](std::vector<std::string> arguments, const std::string& words) {
    arguments.insert(arguments.end(), sizes.begin(), sizes.end());
    const Ended ended = start(arguments);
    REQUIRE(ended.status == 2);
    REQUIRE_THAT(ended.err, ContainsSubstring(words));
  };
  refused({"mask", spec, "--picture", folder.path("m.jpg")}, "no known format");
  refused({"mask", folder.write("p.json", kPlain)}, "no mask_mod");
  const Ended empty = start({"mask", spec, "--q-len", "0", "--kv-len", "64"});
  REQUIRE(empty.status == 2);
  REQUIRE_THAT(empty.err, ContainsSubstring("q_len is 0"));
}

TEST_CASE("cli: the second run takes its kernels from the disk") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const Environment environment = {{"TILEWRIGHT_CACHE", folder.path("cache")}};
  const auto sources = [&] {
    std::vector<std::string> found;
    const nlohmann::json facts = done(start(
        {"run", spec, "--inputs", "random:1,1,1,16,16", "--outputs", folder.path("out"), "--json"},
        environment));
    for (const nlohmann::json& kernel : facts["kernels"]) found.push_back(kernel["source"]);
    return found;
  };
  REQUIRE(sources() == std::vector<std::string>{"built", "built"});
  REQUIRE(sources() == std::vector<std::string>{"disk", "disk"});

  const nlohmann::json list = done(start({"cache", "ls", "--json"}, environment));
  REQUIRE(list["entries"].size() == 2);
  require_keys(list["entries"][0], {"key", "bytes", "created", "last_used", "metadata"});
  const nlohmann::json stats = done(start({"cache", "stats", "--json"}, environment));
  REQUIRE(stats["entries"] == 2);
  REQUIRE(stats["bytes"].get<int>() > 0);
  REQUIRE(done(start({"cache", "clear", "--json"}, environment))["removed_entries"] == 2);
  REQUIRE(done(start({"cache", "stats", "--json"}, environment))["entries"] == 0);
}

TEST_CASE("cli: doctor finds what this test needs") {
  const Folder folder;
  const nlohmann::json facts =
      done(start({"doctor", "--json"}, {{"TILEWRIGHT_CACHE", folder.path("cache")}}));
  require_keys(facts, {"cpu", "compiler", "gpu", "nvrtc", "cache", "worker", "environment",
                       "problems", "ready"});
  REQUIRE(facts["ready"] == true);
  REQUIRE(facts["compiler"]["found"] == true);
  REQUIRE(facts["cache"]["writable"] == true);
  REQUIRE(facts["environment"]["TILEWRIGHT_CACHE"] == folder.path("cache"));
  const Ended text = start({"doctor"});
  REQUIRE(text.status == 0);
  REQUIRE_THAT(text.out, ContainsSubstring("ready"));
}

TEST_CASE("cli: every suite of bench measures and reports") {
  const std::string suite = GENERATE(
      values<std::string>({"dense", "mods", "growth", "masks", "launch", "compile", "start"}));
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  std::vector<std::string> words = {"bench", "--suite",  suite, "--spec",
                                    spec,    "--device", "cpu", "--json"};
  const bool has_sizes = suite != "launch" && suite != "compile" && suite != "start";
  if (has_sizes) words.insert(words.end(), {"--q-len", "128", "--heads", "1"});
  if (suite != "compile") words.insert(words.end(), {"--budget-ms", "1"});
  if (has_sizes || suite == "launch") words.insert(words.end(), {"--threads", "1,2"});
  const nlohmann::json results = done(start(words));
  REQUIRE(results["suite"] == suite);
  REQUIRE(results["device"] == "cpu");
  REQUIRE(results["rows"].size() == (suite == "compile" ? 1 : 2));
  REQUIRE(results["rows"][0]["variant"] == "causal");
  if (suite == "compile") {
    const nlohmann::json& row = results["rows"][0];
    REQUIRE(row["alone_least_ms"].get<double>() > 0);
    REQUIRE(row["alone_ms"].get<double>() >= row["alone_least_ms"].get<double>());
    REQUIRE(row["cold_ms"].get<double>() > row["compile_ms"].get<double>());
    REQUIRE(row["slowest"].get<std::string>().size() > 0);
  }
}

TEST_CASE("cli: bench counts the elements that a mask keeps, not its tiles") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const nlohmann::json row =
      done(start({"bench", "--spec", spec, "--q-len", "200", "--kv-len", "100", "--heads", "1",
                  "--budget-ms", "1", "--device", "cpu", "--json"}))["rows"][0];
  // 100 rows that keep 1 to 100 elements, and 100 that keep all.
  REQUIRE_THAT(row["kept"].get<double>(), Catch::Matchers::WithinAbs(15050.0 / 20000, 1e-9));
  REQUIRE(row["density"] == 0.875);  // tiles of 64 x 64
  REQUIRE_THAT(row["gflops"].get<double>() / row["gflops_dense"].get<double>(),
               Catch::Matchers::WithinAbs(0.7525, 1e-9));
}

TEST_CASE("cli: bench --serve answers a row for each request, and an error where one is wrong") {
  const Ended ended = shell(
      "printf '%s\\n' '{\"spec\": {\"dtype\": \"f32\", \"head_dim\": 16}, \"q_len\": 32}' "
      "'{\"spc\": 1}' 'no JSON' "
      "'{\"spec\": {\"dtype\": \"f32\", \"head_dim\": 16}, \"q_len\": 33, \"heads\": 3}' | "
      "$tilewright bench --serve --device cpu --budget-ms 1");
  REQUIRE(ended.status == 0);
  std::istringstream lines(ended.out);
  std::vector<nlohmann::json> answers;
  for (std::string line; std::getline(lines, line);) answers.push_back(nlohmann::json::parse(line));
  REQUIRE(answers.size() == 4);
  REQUIRE(answers[0]["q_len"] == 32);
  REQUIRE_THAT(answers[1]["error"]["message"].get<std::string>(), ContainsSubstring("\"spc\""));
  REQUIRE(answers[1]["error"]["hint"] == "did you mean \"spec\"?");
  REQUIRE(answers[2]["error"]["code"] == "usage");
  REQUIRE(answers[3]["num_q_heads"] == 3);
}

TEST_CASE("cli: bench --list names what a suite measures, and measures nothing") {
  const Ended ended = start({"bench", "--suite", "mods", "--list", "--device", "cpu"},
                            {{"TILEWRIGHT_CXX", "/nowhere"}});
  const nlohmann::json rows = done(ended);
  REQUIRE(rows.size() == 9);
  REQUIRE(rows[1]["spec"]["mask_mod"] == "q_idx >= kv_idx");
  REQUIRE(rows[1]["kv_len"].get<int>() > 0);
}

TEST_CASE("cli: bench takes buffers from a file, for a spec of one's own alone") {
  const Folder folder;
  const std::string spec =
      folder.write("s.json", R"({"dtype": "f32", "head_dim": 16, "mask_mod": "keep[kv_idx] != 0",
                    "buffers": {"keep": {"dtype": "i32", "shape": ["kv_len"]}}})");
  const std::string zeros = write_zeros(folder, "z.safetensors", {{"keep", DType::i32, {40}}});
  const std::vector<std::string> words = {
      "bench",       "--spec", spec,       "--q-len", "40",        "--heads", "1",
      "--budget-ms", "1",      "--device", "cpu",     "--buffers", zeros,     "--json"};
  REQUIRE(done(start(words))["rows"][0]["kept"] == 0);
  REQUIRE(start({"bench", "--buffers", zeros, "--device", "cpu"}).status == 2);
  const std::string others = write_zeros(folder, "o.safetensors", {{"kep", DType::i32, {40}}});
  const Ended ended = start({"bench", "--spec", spec, "--buffers", others, "--device", "cpu"});
  REQUIRE(ended.status == 2);
  REQUIRE_THAT(ended.err, ContainsSubstring("\"kep\""));
}

TEST_CASE("cli: bench refuses what no memory holds") {
  const Ended ended = start({"bench", "--q-len", "2000000000"});
  REQUIRE(ended.status == 3);
  REQUIRE_THAT(ended.err, ContainsSubstring("but this machine has"));
}

TEST_CASE("cli: bench --hot and a request's budget that mean nothing are refused") {
  const Ended hot = start({"bench", "--device", "cpu", "--hot"});
  INFO(hot.err);
  CHECK(hot.status == 2);
  CHECK_THAT(hot.err, ContainsSubstring("--hot is of GPUs"));
  const Ended served = shell(
      "echo '{\"spec\": {\"dtype\": \"f32\", \"head_dim\": 16}, \"budget_ms\": 0}' | $tilewright "
      "bench --serve --keep 2 --device cpu");
  CHECK(served.status == 0);
  CHECK_THAT(served.out, ContainsSubstring("\\\"budget_ms\\\": 0"));
}

TEST_CASE("cli: bench refuses suites, dtypes and threads that make no sense") {
  const auto [option, value, words] = GENERATE(table<std::string, std::string, std::string>({
      {"--suite", "mod", "did you mean \"mods\"?"},
      {"--dtype", "f8", "--dtype \"f8\""},
      {"--threads", "0", "--threads: \"0\" is no whole number from 1"},
      {"--threads", "1,x", "no whole number"},
      {"--q-len", "-4", "--q-len: \"-4\" is no whole number from 1"},
      {"--device", "gpu", "unknown device"},
      {"--budget-ms", "0", "--budget-ms: \"0\" is not above 0"},
      {"--budget-ms", "-5", "--budget-ms: \"-5\" is not above 0"},
      {"--keep", "2", "--serve"},
  }));
  const Ended ended = start({"bench", option, value});
  INFO(ended.err);
  REQUIRE(ended.status == 2);
  REQUIRE_THAT(ended.err, ContainsSubstring(words));
}
