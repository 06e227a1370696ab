// run, check and mask of packed specs.
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "runtime/api/safetensors.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kPacked = R"json({
  "name": "packed", "dtype": "f32", "head_dim": 16, "layout": "packed", "block": [64, 64],
  "mask_mod": "q_idx >= kv_idx", "outputs": ["out", "lse"]})json";

constexpr const char* kBiased = R"json({
  "name": "biased", "dtype": "f32", "head_dim": 16, "layout": "packed",
  "score_mod": "score + bias(h, q_idx, kv_idx) + by_token[q_token]",
  "buffers": {"bias": {"dtype": "f32", "shape": ["num_q_heads", null, null]},
              "by_token": {"dtype": "f32", "shape": ["total_q"]}}})json";

Ended check_random(const std::string& spec, const std::string& inputs,
                   std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"check", spec, "--inputs", inputs, "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return on_cpu(words);
}

template <typename T>
Tensor tensor_of(DType dtype, const std::vector<T>& values) {
  Tensor tensor = Tensor::zeros(dtype, {static_cast<std::int64_t>(values.size())});
  if (!values.empty()) std::memcpy(tensor.data(), values.data(), values.size() * sizeof(T));
  return tensor;
}

// The file of a call with two sequences, rows 2..5 and 5..12 of q.
struct CallFile {
  std::map<std::string, Tensor> tensors;

  CallFile() {
    tensors.emplace("q", Tensor::zeros(f32, {14, 2, 16}));
    tensors.emplace("k", Tensor::zeros(f32, {30, 1, 16}));
    tensors.emplace("v", Tensor::zeros(f32, {30, 1, 16}));
    tensors.emplace("q_begin", tensor_of<std::int64_t>(i64, {2, 5, 12}));
    tensors.emplace("kv_begin", tensor_of<std::int32_t>(i32, {0, 10, 25}));
  }

  template <typename T>
  void set(const std::string& name, DType dtype, const std::vector<T>& values) {
    tensors.insert_or_assign(name, tensor_of<T>(dtype, values));
  }

  std::string write(const Folder& folder) const {
    std::map<std::string, TensorView> views;
    for (const auto& [name, tensor] : tensors) views.emplace(name, tensor.view());
    write_safetensors(folder.path("in.safetensors"), views);
    return folder.path("in.safetensors");
  }
};

Ended run_file(const Folder& folder, const CallFile& file) {
  return on_cpu({"run", folder.write("s.json", kPacked), "--inputs", file.write(folder),
                 "--outputs", folder.path("out.safetensors")});
}

void require_refused(const Ended& ended, const std::string& words) {
  CAPTURE(ended.err);
  REQUIRE(ended.status == 2);
  REQUIRE_THAT(ended.err, ContainsSubstring(words));
  REQUIRE_THAT(ended.err, ContainsSubstring("hint"));
}

}  // namespace

TEST_CASE("cli packed: run leaves 0 and -inf in rows that belong to no sequence") {
  const Folder folder;
  const CallFile file;
  const Ended ended =
      on_cpu({"run", folder.write("s.json", kPacked), "--inputs", file.write(folder), "--outputs",
              folder.path("out.safetensors"), "--json"});
  CAPTURE(ended.err);
  REQUIRE(ended.status == 0);
  const auto shape = ended.json()["shape"];
  CHECK(shape["batch"] == 2);
  CHECK(shape["total_q"] == 14);
  CHECK(shape["total_kv"] == 30);
  CHECK(shape["max_q_len"] == 7);
  CHECK(shape["max_kv_len"] == 15);
  CHECK(ended.json()["mask"]["partial"] == 2);
  CHECK(ended.json()["mask"]["path"] == "proved");
  const TensorFile out = read_safetensors(folder.path("out.safetensors"));
  REQUIRE(out.tensors.at("out").describe() == "f32 [14, 2, 16]");
  REQUIRE(out.tensors.at("lse").describe() == "f32 [2, 14]");
  const auto* const lse = static_cast<const float*>(out.tensors.at("lse").data());
  for (int row = 0; row < 14; ++row) CHECK(std::isinf(lse[row]) == (row < 2 || row >= 12));
}

TEST_CASE("cli packed: a table that lies is status 2 with its entry, and no file is written") {
  const Folder folder;
  CallFile file;
  SECTION("q_begin falls") {
    file.set<std::int64_t>("q_begin", i64, {2, 9, 5});
    require_refused(run_file(folder, file), "q_begin[2] is 5 after 9");
  }
  SECTION("kv_len has no room") {
    file.set<std::int32_t>("kv_len", i32, {10, 5000});
    require_refused(run_file(folder, file), "kv_len[1] is 5000, but there is room for 20");
  }
  SECTION("check") {
    file.set<std::int32_t>("kv_len", i32, {10, -1});
    require_refused(
        on_cpu({"check", folder.write("s.json", kPacked), "--inputs", file.write(folder)}),
        "kv_len[1] is -1");
  }
  for (const std::string& name : folder.names()) CHECK(name != "out.safetensors");
}

TEST_CASE("cli packed: wrong tensors of sequences are refused by name") {
  const Folder folder;
  CallFile file;
  SECTION("a number beyond 32 bits") {
    file.set<std::int64_t>("q_begin", i64, {2, 5, std::int64_t{1} << 33});
    require_refused(run_file(folder, file), "q_begin[2] is 8589934592, which 32 bits do not hold");
  }
  SECTION("another dtype") {
    file.set<float>("kv_begin", f32, {0, 10, 25});
    require_refused(run_file(folder, file), "it must be I32 or I64");
  }
  SECTION("another length") {
    file.set<std::int32_t>("kv_len", i32, {10, 15, 1});
    require_refused(run_file(folder, file), "kv_len has 3 elements, which is not [2] (batch)");
  }
  SECTION("no kv_begin") {
    file.tensors.erase("kv_begin");
    require_refused(run_file(folder, file), "holds no tensor \"kv_begin\"");
  }
  SECTION("a scalar for q_begin") {
    file.tensors.insert_or_assign("q_begin", Tensor::zeros(i32, {3, 1}));
    require_refused(run_file(folder, file), "q_begin is i32 [3, 1]; it must be i32 [batch + 1]");
  }
  SECTION("q of rank 4") {
    file.tensors.insert_or_assign("q", Tensor::zeros(f32, {1, 14, 2, 16}));
    const Ended ended = run_file(folder, file);
    require_refused(ended, "q has rank 4; packed attention needs rank 3");
    CHECK_THAT(ended.err, ContainsSubstring("wanted: f32 [total_q, num_q_heads, head_dim]"));
  }
  SECTION("v of other rows than k") {
    file.tensors.insert_or_assign("v", Tensor::zeros(f32, {29, 1, 16}));
    require_refused(run_file(folder, file), "v has total_kv 29");
  }
  SECTION("a misspelt tensor") {
    file.set<std::int32_t>("kv_lens", i32, {10, 15});
    require_refused(run_file(folder, file), "kv_lens");
  }
}

TEST_CASE("cli packed: check of random lengths is ok, with the keys of a dense check") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPacked);
  for (const char* inputs :
       {"random:4,2/1:83,5:18,32:115", "random:2,2/7:7x5,0:9,9:0", "random:2,1/70:90,3:5/ctx=11"}) {
    const Ended ended = check_random(spec, inputs);
    CAPTURE(inputs, ended.err);
    REQUIRE(ended.status == 0);
    CHECK(ended.json()["ok"] == true);
    CHECK(ended.json()["mask"]["wrong_tiles"] == 0);
    for (const char* key : {"error_max", "bound", "lse_error", "reasons", "agreement", "expected",
                            "undefined", "times_ms", "notes"}) {
      CHECK(ended.json().contains(key));
    }
  }
}

TEST_CASE("cli packed: --buffer gives the extents of null dimensions") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kBiased);
  const std::string inputs = "random:2,1/20:90,3:70";
  const Ended ended = check_random(spec, inputs, {"--buffer", "bias=90,90"});
  CAPTURE(ended.err);
  REQUIRE(ended.status == 0);
  CHECK(ended.json()["undefined"]["count"] == 0);
  CHECK(ended.json()["nan"] == 0);  // rows of no sequence hold NaN
  CHECK(ended.json()["notes"].empty());
  CHECK(check_random(spec, inputs).json()["undefined"]["count"] != 0);  // 64 by default
  const auto [text, words] = GENERATE(table<std::string, std::string>({
      {"bias=90", "gives 1 extent, but \"bias\" has 2 null dimensions"},
      {"by_token=9", "gives 1 extent, but \"by_token\" has 0 null dimensions"},
      {"bais=9,9", "did you mean \"bias\""},
      {"bias", "has no NAME="},
      {"bias=9,x", "no whole number"},
      {"bias=9,0", "--buffer bias"},
  }));
  require_refused(check_random(spec, inputs, {"--buffer", text}), words);
}

TEST_CASE("cli packed: malformed lengths say what is wrong and how they are written") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPacked);
  const auto [inputs, words] = GENERATE(table<std::string, std::string>({
      {"random:1,8,2,64,64", "has no lengths of sequences"},
      {"random:8,2", "has no lengths of sequences"},
      {"random:8/1:2", "has \"8\" where HQ,HKV stands"},
      {"random:8,2/", "has \"\" where a sequence's Q:KV stands"},
      {"random:8,2/12", "has \"12\" where a sequence's Q:KV stands"},
      {"random:8,2/1:2:3", "has \"1:2:3\" where a sequence's Q:KV stands"},
      {"random:8,2/1:2,", "has \"\" where a sequence's Q:KV stands"},
      {"random:8,2/1:2x3x4", "where a sequence's Q:KV stands"},
      {"random:8,2/1:2x0", "xN"},
      {"random:8,2/-1:2", "random: Q"},
      {"random:8,2/1:two", "random: KV"},
      {"random:8,3/1:2", "8 query heads cannot be shared by 3 kv heads"},
      {"random:8,2/1:2/page=16", "has /page=N, but the spec's kv_layout is \"packed\""},
      {"random:8,2/1:2/pages=64", "no /page=N"},
      {"random:8,2/1:2/ctx", "unknown part \"/ctx\""},
      {"random:8,2/1:2/ctx=x", "/ctx"},
      {"random:8,2/1:2/ctx=1/ctx=2", "has /ctx twice"},
      {"random:8,2/1:2/cxt=1", "unknown part \"/cxt=1\"; /ctx=N, /page=N"},
  }));
  CAPTURE(inputs);
  require_refused(check_random(spec, inputs), words);
}

TEST_CASE("cli packed: what belongs to dense calls is refused") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPacked);
  const std::string inputs = "random:2,1/4:8";
  require_refused(check_random(spec, inputs, {"--q-offset", "3"}), "--q-offset is for dense calls");
  const std::string dense = folder.write("d.json", R"({"dtype": "f32", "head_dim": 16})");
  require_refused(check_random(dense, inputs), "the spec's layout is not \"packed\"");
}

TEST_CASE("cli packed: mask shows one sequence, its last row at its last column") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPacked);
  const Ended ended = on_cpu({"mask", spec, "--q-len", "128", "--kv-len", "320", "--json"});
  CAPTURE(ended.err);
  REQUIRE(ended.status == 0);
  const nlohmann::json json = ended.json();
  CHECK(json["full"] == 3 + 4);
  CHECK(json["partial"] == 2);
  CHECK(json["empty"] == 1);
  CHECK(json["path"] == "proved");
  CHECK(json["tiles_evaluated"] == 2);
  CHECK(json["q_blocks"] == 2);
  const Ended top =
      on_cpu({"mask", spec, "--q-len", "128", "--kv-len", "320", "--q-offset", "0", "--json"});
  CHECK(top.json()["full"] == 0 + 1);
  require_refused(on_cpu({"mask", spec, "--q-len", "8", "--kv-len", "8", "--batch", "2"}),
                  "mask shows one sequence");
}

TEST_CASE("cli packed: --expect judges a packed result") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPacked);
  const std::string inputs = "random:2,1/4:8,9:30";
  REQUIRE(on_cpu({"run", spec, "--inputs", inputs, "--outputs", folder.path("o")}).status == 0);
  const Ended same = check_random(spec, inputs, {"--expect", folder.path("o")});
  CAPTURE(same.err);
  CHECK(same.status == 0);
  CHECK(same.json()["expected"]["ok"] == true);
}

constexpr const char* kDividesByZero =
    R"j({"dtype": "f32", "head_dim": 16, "layout": "packed",
         "score_mod": "score + 1 / (kv_len - kv_idx - 1)"})j";

TEST_CASE("cli packed: fuzz keeps a packed spec, and what fails is replayed") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPacked);
  const auto fuzz = [&](const std::string& file, const char* cases) {
    return on_cpu({"fuzz", "--spec", file, "--cases", cases, "--seed", "3", "--compiles", "0",
                   "--workers", "1", "--out", folder.path("failures"), "--json"});
  };
  const Ended right = fuzz(spec, "10");
  CAPTURE(right.err, right.out);
  REQUIRE(right.status == 0);
  CHECK(right.json()["cases"] == 10);
  const Ended failed = fuzz(folder.write("w.json", kDividesByZero), "5");
  CAPTURE(failed.err, failed.out);
  REQUIRE(failed.status == 1);
  const auto failure = failed.json()["failures"].at(0);
  CHECK(failure["failure"] == "undefined");
  const Ended again = on_cpu({"fuzz", "--replay", failure["case"].get<std::string>(), "--json"});
  CHECK(again.status == 1);
}
