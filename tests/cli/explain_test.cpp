// `tilewright explain`: which fast paths a spec takes.

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

nlohmann::json explained(const std::string& spec, const std::string& target) {
  const Ended ended = start({"explain", spec, "--target", target, "--json"});
  INFO(ended.err);
  REQUIRE(ended.status == 0);
  return ended.json();
}

nlohmann::json path(const nlohmann::json& report, const std::string& name) {
  for (const nlohmann::json& one : report.at("fast_paths")) {
    if (one.at("name") == name) return one;
  }
  FAIL("no fast path " << name);
  return {};
}

constexpr const char* kSoftcap = R"json({"dtype": "bf16", "head_dim": 64,
  "score_mod": "cap * tanh(score / cap)", "mask_mod": "doc(b, q_idx) == doc(b, kv_idx)",
  "buffers": {"doc": {"dtype": "i32", "shape": ["batch", "kv_len"]}},
  "scalars": {"cap": {"dtype": "f32", "default": 50}}})json";

constexpr const char* kOpaque = R"json({"dtype": "bf16", "head_dim": 64,
  "score_mod": "float s = score;\n  unsigned u = 3;\nreturn s * u;"})json";

}  // namespace

TEST_CASE("cli: explain names every fast path once, with why and where it is not taken") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kSoftcap);
  const nlohmann::json report = explained(spec, "sm_90a");
  std::set<std::string> names;
  for (const nlohmann::json& one : report.at("fast_paths")) {
    names.insert(one.at("name"));
    CHECK(one.at("why_not").is_null() == one.at("used").get<bool>());
    CHECK((one.at("place").is_null() || !one.at("used").get<bool>()));
  }
  CHECK(names == std::set<std::string>{"score_slope", "score_factors", "fixed_maximum",
                                       "reads_by_head", "reads_by_row", "reads_by_column",
                                       "own_elements", "values_by_difference", "proved_mask",
                                       "tensor_maps", "decode", "split", "resident"});
  CHECK(report.at("fast_paths").size() == names.size());
  CHECK(report.at("kernel") == "forward_masked");
  CHECK(report.at("backward").is_null());
  CHECK_THAT(report.at("tactic").get<std::string>(), ContainsSubstring("hopper"));
  for (const char* used : {"score_factors", "fixed_maximum", "reads_by_row", "reads_by_column",
                           "proved_mask", "tensor_maps"}) {
    CHECK(path(report, used).at("used") == true);
  }
  const nlohmann::json slope = path(report, "score_slope");
  CHECK(slope.at("used") == false);
  CHECK(slope.at("place") ==
        nlohmann::json({{"snippet", "score_mod"}, {"line", 1}, {"column", 1}}));
}

TEST_CASE("cli: explain says who decodes") {
  const Folder folder;
  const std::string paged = folder.write("s.json", R"json({"dtype": "bf16", "head_dim": 64,
    "layout": "packed", "kv_layout": "paged"})json");
  CHECK(path(explained(paged, "sm_90a"), "decode").at("used") == true);
  CHECK(path(explained(paged, "cpu-x86-64-v3"), "decode").at("used") == false);
  const std::string dense = folder.write("d.json", kSoftcap);
  CHECK_THAT(path(explained(dense, "sm_90a"), "decode").at("why_not").get<std::string>(),
             ContainsSubstring("AttentionOptions::decode"));
}

TEST_CASE("cli: explain says whether a call is split, and why") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "bf16", "head_dim": 128,
    "layout": "packed", "mask_mod": "q_idx >= kv_idx"})json");
  CHECK(path(explained(spec, "sm_90a"), "split").at("used") == true);
  CHECK(path(explained(spec, "sm_80"), "split").at("used") == false);
  CHECK_FALSE(explained(spec, "sm_90a").contains("split"));
  const auto shaped = [&](const std::string& shape, std::vector<std::string> more) {
    std::vector<std::string> words = {"explain", spec, "--target", "sm_90a", "--shape", shape};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = start(words);
    REQUIRE(ended.status == 0);
    return ended;
  };
  CHECK_THAT(
      shaped("1,8,8,512,131072", {}).out,
      ContainsSubstring("\nsplit: at most 32 q tiles for 132 multiprocessors, each in 4 parts\n"));
  CHECK_THAT(
      shaped("1,8,8,512,131072", {"--multiprocessors", "16"}).out,
      ContainsSubstring("not split: it has at most 32 q tiles, enough for 16 multiprocessors\n"));
  const nlohmann::json split = shaped("1,8,8,512,131072", {"--json"}).json().at("split");
  CHECK(split.at("parts") == 4);
  CHECK(split.at("q_tiles") == 32);
  CHECK(split.at("why_not").is_null());
  CHECK(split.at("assumed").is_null());
  CHECK(start({"explain", spec, "--shape", "1,8"}).status == 2);
  CHECK(start({"explain", spec, "--multiprocessors", "8"}).status == 2);
  CHECK_THAT(shaped("4,8,8,512,51200", {}).out,
             ContainsSubstring(
                 "split: at most 152 q tiles leave idle in the end some of 132 multiprocessors"));
  for (const char* const shape : {"1,8,3,512,51200", "1,8,0,512,51200", "1,8,1,512,0",
                                  "1,8,1,9223372036854775807,512", "1000000,8,8,1000000,51200"}) {
    CAPTURE(shape);
    CHECK(start({"explain", spec, "--target", "sm_90a", "--shape", shape}).status == 2);
  }
}

TEST_CASE("cli: explain says which kernel serves the prefill of a packed call, and why") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "bf16", "head_dim": 128,
    "layout": "packed", "mask_mod": "q_idx >= kv_idx"})json");
  const auto shaped = [&](const std::string& shape, const std::string& target = "sm_90a",
                          const Environment& environment = {}) {
    const Ended text = start({"explain", spec, "--target", target, "--shape", shape}, environment);
    CAPTURE(shape, text.err);
    REQUIRE(text.status == 0);
    return text.out;
  };
  CHECK_THAT(shaped("64,32,8,256,256"),
             ContainsSubstring("\nprefill by forward_prefill_resident, which keeps k and v in "
                               "shared memory: 512 items, each k and v of a sequence for 4 query "
                               "heads, fill 132 multiprocessors\n"));
  CHECK_THAT(shaped("64,32,8,256,257"),
             ContainsSubstring("\nprefill by forward_prefill: its sequences have 257 columns, and "
                               "shared memory holds k and v of 256\n"));
  CHECK_THAT(shaped("2,32,8,256,256"),
             ContainsSubstring("\nprefill by forward_prefill: 64 items of a sequence and a query "
                               "head, or fewer of more heads, would leave more than a fifth of 132 "
                               "multiprocessors idle\n"));
  CHECK_THAT(shaped("1,8,8,512,131072"),
             ContainsSubstring("\nprefill by forward_prefill_split: its q tiles are split\n"));
  CHECK_THAT(shaped("64,32,8,1,256"), ContainsSubstring("\nno prefill: the call has so few rows"));
  CHECK_THAT(
      shaped("64,32,8,256,256", "sm_80"),
      ContainsSubstring("\nprefill by forward_prefill: sm_80 has no kernel of this spec that "
                        "keeps k and v in shared memory\n"));
  CHECK_THAT(shaped("64,32,8,1,256", "cpu-x86-64-v3"), ContainsSubstring("\nprefill by forward"));
  CHECK_THAT(shaped("64,32,8,256,256", "sm_90a", {{"TILEWRIGHT_RESIDENT", "off"}}),
             ContainsSubstring("\nprefill by forward_prefill: TILEWRIGHT_RESIDENT is off\n"));
  CHECK_THAT(shaped("2,32,8,256,256", "sm_90a", {{"TILEWRIGHT_RESIDENT", "on"}}),
             ContainsSubstring("_resident, which keeps k and v in shared memory: "
                               "TILEWRIGHT_RESIDENT is on\n"));
  const auto json = [&](const std::string& shape) {
    return start({"explain", spec, "--target", "sm_90a", "--shape", shape, "--json"})
        .json()
        .at("prefill");
  };
  CHECK(json("64,32,8,256,256").at("kernel") == "forward_prefill_resident");
  CHECK(json("64,32,8,256,256").at("keeps_kv") == true);
  CHECK(json("2,32,8,256,256").at("keeps_kv") == false);
  CHECK(json("64,32,8,1,256").at("kernel").is_null());
}

TEST_CASE("cli: explain says what a dense call is taken to have") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "bf16", "head_dim": 128,
    "mask_mod": "q_idx >= kv_idx"})json");
  const auto shaped = [&](const std::string& shape, std::vector<std::string> more) {
    std::vector<std::string> words = {"explain", spec, "--shape", shape};
    words.insert(words.end(), more.begin(), more.end());
    return start(words);
  };
  CHECK_THAT(shaped("1,8,8,512,131072", {"--target", "sm_90a"}).out,
             ContainsSubstring("\nsplit with AttentionOptions::decode and a workspace: 32 q tiles "
                               "for 132 multiprocessors, each in 4 parts\n"));
  CHECK_THAT(shaped("1,8,8,8192,8192", {"--target", "sm_90a"}).out,
             ContainsSubstring("\nnot split, even with AttentionOptions::decode and a workspace: "
                               "it has 512 q tiles, enough"));
  CHECK(
      shaped("1,8,8,512,131072", {"--target", "sm_90a", "--json"}).json().at("prefill").is_null());
  CHECK(shaped("1,8,8,512,131072", {"--target", "sm_90a", "--json"})
            .json()
            .at("split")
            .at("assumed") == "AttentionOptions::decode and a workspace");
  CHECK_THAT(start({"explain", "--help"}).out, ContainsSubstring("AttentionOptions::decode"));
  // A machine's own target is its CPU's.
  CHECK_THAT(shaped("1,8,8,512,131072", {}).out, ContainsSubstring("--target sm_90a"));
  CHECK_THAT(shaped("1,8,8,512,131072", {"--target", "cpu-x86-64-v3"}).out,
             !ContainsSubstring("--target sm_90a"));
  for (const std::vector<std::string>& target :
       {std::vector<std::string>{}, {"--target", "cpu-x86-64-v3"}}) {
    std::vector<std::string> more = {"--multiprocessors", "8"};
    more.insert(more.end(), target.begin(), target.end());
    const Ended ended = shaped("1,8,8,512,131072", more);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.err, ContainsSubstring("--multiprocessors are a GPU's") &&
                              ContainsSubstring("--target sm_90a"));
  }
}

TEST_CASE("cli: the error for a malformed size shows the form of sizes") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "bf16", "head_dim": 128})json");
  for (const char* const shape : {"1,8,8,x,512", "1,8,8,1.5,512", "1,8,8,99999999999999999999,5"}) {
    CAPTURE(shape);
    const Ended ended = start({"explain", spec, "--target", "sm_90a", "--shape", shape});
    CHECK(ended.status == 2);
    CHECK_THAT(ended.err, ContainsSubstring("--shape SQ") &&
                              ContainsSubstring("write B,HQ,HKV,SQ,SKV") &&
                              !ContainsSubstring("9223372036854775807"));
  }
}

TEST_CASE("cli: explain on other targets") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kSoftcap);
  for (const char* target : {"sm_80", "cpu-x86-64-v3"}) {
    const nlohmann::json report = explained(spec, target);
    CHECK(path(report, "score_factors").at("why_not") == "only Hopper's kernel has it");
    CHECK(path(report, "reads_by_row").at("used") == true);
    CHECK(path(report, "tensor_maps").at("used") == false);
  }
}

TEST_CASE("cli: explain says why a spec has not Hopper's kernel") {
  const Folder folder;
  const auto why_not = [&](const char* spec) {
    const nlohmann::json maps =
        path(explained(folder.write("s.json", spec), "sm_90a"), "tensor_maps");
    REQUIRE(maps.at("used") == false);
    return maps.at("why_not").get<std::string>();
  };
  CHECK(why_not(R"({"dtype": "f32", "head_dim": 64})") ==
        "only Hopper's kernel has it, and cannot serve this: its products are of f16, bf16 or "
        "f8e4m3, and dtype is f32");
  CHECK_THAT(why_not(R"({"dtype": "bf16", "head_dim": 64, "block": [96, 128],
               "mask_mod": "q_idx >= kv_idx"})"),
             ContainsSubstring("divides block[0], which is 96"));
  CHECK_THAT(why_not(R"({"dtype": "bf16", "kv_dtype": "i8", "head_dim": 64,
               "k_scale": "s[kv_idx]", "v_scale": "1",
               "buffers": {"s": {"dtype": "f32", "shape": ["kv_len"]}}})"),
             ContainsSubstring("a scale of each row of k or v"));
  CHECK_THAT(why_not(R"({"dtype": "bf16", "head_dim": 64, "tactic": {"name": "portable"}})"),
             ContainsSubstring("the spec's tactic is \"portable\""));
  CHECK_THAT(why_not(R"({"dtype": "bf16", "head_dim": 94})"),
             ContainsSubstring("must be multiples of 8 from 16 on"));
  CHECK_THAT(why_not(R"({"dtype": "f8e4m3", "out_dtype": "bf16", "head_dim": 24,
               "q_scale": "1", "k_scale": "1", "v_scale": "1"})"),
             ContainsSubstring("rows must be multiples of 16 bytes, and some have 24"));
}

TEST_CASE("cli: explain says that max_scores take no fixed maximum, and padded dims no decoding") {
  const Folder folder;
  const std::string capped = folder.write("s.json", R"json({"dtype": "bf16", "head_dim": 64,
    "score_mod": "30 * tanh(score / 30)", "outputs": ["out", "max_scores"]})json");
  CHECK_THAT(path(explained(capped, "sm_90a"), "fixed_maximum").at("why_not").get<std::string>(),
             ContainsSubstring("outputs name max_scores"));
  const std::string padded = folder.write("p.json", R"json({"dtype": "bf16", "head_dim": 64,
    "v_head_dim": 17, "layout": "packed", "kv_layout": "paged"})json");
  CHECK_THAT(path(explained(padded, "sm_90a"), "decode").at("why_not").get<std::string>(),
             ContainsSubstring("must be multiples of 8 from 16 on"));
}

TEST_CASE("cli: explain says where a snippet is no longer understood") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kOpaque);
  const nlohmann::json slope = path(explained(spec, "sm_90a"), "score_slope");
  CHECK_THAT(slope.at("why_not").get<std::string>(),
             ContainsSubstring("nothing is known of score_mod: `unsigned`"));
  CHECK(slope.at("place") ==
        nlohmann::json({{"snippet", "score_mod"}, {"line", 2}, {"column", 3}}));
  const Ended text = start({"explain", spec, "--target", "sm_90a"});
  CHECK(text.status == 0);
  CHECK_THAT(text.out, ContainsSubstring("score_slope      no: nothing is known"));
  CHECK_THAT(text.out, ContainsSubstring("(score_mod:2:3)"));
  CHECK_THAT(text.out, ContainsSubstring("tensor_maps      yes"));
}

TEST_CASE("cli: explain of a spec with gradients says which kernel computes them") {
  const Folder folder;
  const std::string text = R"json({"dtype": "bf16", "head_dim": HEAD_DIM, "outputs": ["out", "lse"],
                                  "gradients": ["q", "k", "v"]})json";
  const auto of = [&](const std::string& head_dim, const std::string& target = "sm_90a") {
    std::string spec = text;
    spec.replace(spec.find("HEAD_DIM"), 8, head_dim);
    return path(explained(folder.write("s.json", spec), target), "gradients_in_one_sweep");
  };
  CHECK(of("128").at("used") == true);
  CHECK(of("96").at("used") == true);
  CHECK(of("192").at("used") == true);
  CHECK(of("8").at("used") == false);
  CHECK_THAT(of("8").at("why_not").get<std::string>(), ContainsSubstring("head_dim is 8"));
  CHECK(of("128", "sm_80").at("used") == true);
  CHECK_THAT(of("192", "sm_80").at("why_not").get<std::string>(), ContainsSubstring("above 256"));
  CHECK_THAT(of("128", "cpu-x86-64-v3").at("why_not").get<std::string>(),
             ContainsSubstring("only kernels for GPUs"));
}

TEST_CASE("cli: explain says which kernel computes deterministic gradients") {
  const Folder folder;
  const auto of = [&](const std::string& more, const std::string& target) {
    const std::string spec = folder.write("s.json", R"json({"dtype": "bf16", "head_dim": 64,
      "outputs": ["out", "lse"], "gradients": ["q", "k", "v")json" +
                                                        more + "}");
    return path(explained(spec, target), "deterministic_gradients");
  };
  CHECK(of("]", "sm_90a").at("used") == true);
  CHECK_THAT(of("]", "sm_80").at("why_not").get<std::string>(), ContainsSubstring("sm_90a alone"));
  CHECK_THAT(of(R"json(], "layout": "packed")json", "sm_90a").at("why_not").get<std::string>(),
             ContainsSubstring("not packed"));
  CHECK_THAT(of(R"json(, "x"], "score_mod": "score + x[h]",
                       "buffers": {"x": {"dtype": "f32", "shape": ["num_q_heads"]}})json",
                "sm_90a")
                 .at("why_not")
                 .get<std::string>(),
             ContainsSubstring("the gradient of x"));
}

TEST_CASE("cli: explain names the backward kernel of a spec with gradients") {
  const Folder folder;
  const auto of = [&](const std::string& score_mod, const std::string& target) {
    const std::string spec =
        folder.write("s.json", R"json({"dtype": "bf16", "head_dim": 128, "score_mod": ")json" +
                                   score_mod + R"json(",
          "buffers": {"x": {"dtype": "f32", "shape": ["kv_len"]}},
          "outputs": ["out", "lse"], "gradients": ["q", "k", "v", "x"]})json");
    return explained(spec, target).at("backward");
  };
  const nlohmann::json summed = of("score + x[kv_idx]", "sm_90a");
  CHECK(summed.at("kernel") == "backward");
  CHECK(summed.at("tactic") == "hopper columns=128 rows=64");
  CHECK(summed.at("why_not").is_null());
  CHECK_THAT(of("score * x[kv_idx]", "sm_90a").at("tactic").get<std::string>(),
             ContainsSubstring("portable q_tile="));
  CHECK_THAT(of("score + x[kv_idx]", "cpu-x86-64-v3").at("tactic").get<std::string>(),
             ContainsSubstring("cpu q_tile="));
}

TEST_CASE("cli: explain says how the gradients of buffers and scalars are summed") {
  const Folder folder;
  const auto spec = [&](const std::string& dtype) {
    return folder.write("s.json", R"json({"dtype": ")json" + dtype + R"json(", "head_dim": 128,
      "score_mod": "score + slopes[h] + of_q[q_idx] + of_kv[kv_idx] + table[kv_idx - q_idx + 63] + full(q_idx, kv_idx) + shift",
      "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]},
                  "of_q": {"dtype": "f32", "shape": ["q_len"]},
                  "of_kv": {"dtype": "f32", "shape": ["kv_len"]},
                  "table": {"dtype": "f32", "shape": [null]},
                  "full": {"dtype": "f32", "shape": ["q_len", "kv_len"]}},
      "scalars": {"shift": {"dtype": "f32"}}, "outputs": ["out", "lse"],
      "gradients": ["q", "k", "v", "slopes", "of_q", "of_kv", "table", "full", "shift"]})json");
  };
  const auto sums_of = [&](const std::string& dtype, const std::string& target) {
    std::map<std::string, nlohmann::json> sums;
    const nlohmann::json report = explained(spec(dtype), target);
    for (const nlohmann::json& sum : report.at("backward").at("sums")) {
      sums[sum.at("read")] = sum;
    }
    REQUIRE(sums.size() == 6);
    return sums;
  };
  auto hopper = sums_of("bf16", "sm_90a");
  const std::vector<std::array<std::string, 4>> wanted = {
      {"shift", "head", "by neither q_idx nor kv_idx", "over all rows of a head and a block's 128"},
      {"slopes[h]", "head", "by neither q_idx nor kv_idx", "in registers and shared memory"},
      {"of_q[q_idx]", "row", "by q_idx", "over 32 columns, by shuffles and in shared memory"},
      {"of_kv[kv_idx]", "column", "by kv_idx", "over all rows of a head, in registers and shared"},
      {"table[kv_idx - q_idx + 63]", "difference", "by kv_idx - q_idx",
       "along diagonals of 64 rows x 16 columns, in shared memory, then added to memory"},
      {"full(q_idx, kv_idx)", "element", "by element", "each element is added to memory"}};
  for (const auto& [read, pattern, by, way] : wanted) {
    CAPTURE(read);
    CHECK(hopper[read]["pattern"] == pattern);
    CHECK(hopper[read]["by"] == by);
    CHECK_THAT(hopper[read]["way"].get<std::string>(), ContainsSubstring(way));
  }
  auto portable = sums_of("f32", "sm_90a");
  CHECK(portable["table[kv_idx - q_idx + 63]"]["way"] ==
        "along diagonals of 64 rows x 32 columns, in shared memory, then added to memory");
  CHECK(portable["of_q[q_idx]"]["way"] == "over all columns, in registers, then added to memory");
  CHECK_THAT(sums_of("f32", "cpu-x86-64-v3")["slopes[h]"]["way"].get<std::string>(),
             ContainsSubstring("float64 sum"));
  CHECK_THAT(start({"explain", spec("bf16"), "--target", "sm_90a"}).out,
             ContainsSubstring("\n  gradient of table[kv_idx - q_idx + 63], by kv_idx - q_idx: "
                               "along diagonals of 64 rows x 16 columns"));
}

TEST_CASE("cli: explain says which specs keep k and v of short sequences, and why others do not") {
  const Folder folder;
  const auto resident = [&](const std::string& keys) {
    const std::string spec = folder.write("s.json", R"json({"dtype": "bf16", )json" + keys + "}");
    return path(explained(spec, "sm_90a"), "resident");
  };
  CHECK(resident(R"("head_dim": 128, "layout": "packed")").at("used") == true);
  const auto why_not = [&](const std::string& keys) {
    const nlohmann::json found = resident(keys);
    CHECK(found.at("used") == false);
    return found.at("why_not").get<std::string>();
  };
  CHECK(why_not(R"("head_dim": 128)") == "layout must be \"packed\"");
  CHECK(why_not(R"("head_dim": 128, "layout": "packed", "kv_layout": "paged")") ==
        "k and v must be packed too, and are in pages");
  CHECK(why_not(R"("head_dim": 192, "layout": "packed")") ==
        "head_dim and v_head_dim must be equal, from 64 to 128, and are 192 and 192");
  CHECK(why_not(R"("head_dim": 128, "layout": "packed", "block": [96, 96])") ==
        "block[0] must be a multiple of 64 and block[1] of 64, and they are 96 and 96");
}

TEST_CASE("cli: explain says that a clamped table's tiles may have one cell") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "bf16", "head_dim": 64,
    "score_mod": "score + x[clamp(kv_idx - q_idx, -9, 9) + 9]",
    "buffers": {"x": {"dtype": "f32", "shape": [19]}}, "outputs": ["out", "lse"],
    "gradients": ["q", "k", "v", "x"]})json");
  const nlohmann::json sums = explained(spec, "sm_90a").at("backward").at("sums");
  REQUIRE(sums.size() == 1);
  CHECK(sums[0]["way"] ==
        "along diagonals of 64 rows x 16 columns, in shared memory, or in registers over a tile "
        "that has one cell, then added to memory");
}

TEST_CASE("cli: explain says which read by the difference is one too many for diagonals") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "f32", "head_dim": 64,
    "score_mod": "score + x[kv_idx - q_idx] + x[kv_idx - q_idx + 1] + x[q_idx - kv_idx]",
    "buffers": {"x": {"dtype": "f32", "shape": [null]}}, "outputs": ["out", "lse"],
    "gradients": ["x"]})json");
  const nlohmann::json sums = explained(spec, "sm_80").at("backward").at("sums");
  REQUIRE(sums.size() == 3);
  CHECK_THAT(sums[1]["way"].get<std::string>(), ContainsSubstring("along diagonals"));
  CHECK(sums[2]["way"] == "each element is added to memory");
}

TEST_CASE("cli: explain says where a spec's gradients have no derivative") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "bf16", "head_dim": 64,
    "score_mod": "float s = score;\n  unsigned u = 3;\nreturn s * u;",
    "outputs": ["out", "lse"], "gradients": ["q", "k", "v"]})json");
  const nlohmann::json report = explained(spec, "sm_90a");
  const nlohmann::json place = {{"snippet", "score_mod"}, {"line", 2}, {"column", 3}};
  CHECK(report.at("backward").at("tactic").is_null());
  CHECK(report.at("backward").at("place") == place);
  const nlohmann::json sweep = path(report, "gradients_in_one_sweep");
  CHECK(sweep.at("used") == false);
  CHECK(sweep.at("place") == place);
  CHECK_THAT(start({"explain", spec, "--target", "sm_90a"}).out,
             ContainsSubstring("backward for sm_90a: none: no derivative of this snippet by the "
                               "score is known (score_mod:2:3)"));
}

TEST_CASE("cli: explain of a packed spec says whether its plan proves tiles") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({
    "dtype": "bf16", "head_dim": 64, "layout": "packed", "mask_mod": "q_idx >= kv_idx"})json");
  for (const char* target : {"sm_90a", "cpu-x86-64-v3"}) {
    CHECK(path(explained(spec, target), "proved_mask").at("used") == true);
  }
}

TEST_CASE("cli: explain says of a mask whose types intervals have not that it is not proved") {
  const Folder folder;
  const auto proved = [&](const std::string& mask) {
    const std::string spec = folder.write(
        "s.json", nlohmann::json({{"dtype", "f32"}, {"head_dim", 16}, {"mask_mod", mask}}).dump());
    return path(explained(spec, "cpu-x86-64-v3"), "proved_mask");
  };
  CHECK(proved("int w = 2.5; return q_idx - kv_idx < w;").at("used") == true);
  const nlohmann::json wide = proved("long w = q_idx;\nreturn w >= kv_idx;");
  CHECK(wide.at("used") == false);
  CHECK(wide.at("why_not") == "intervals have int, float and bool, and no type long");
  CHECK(wide.at("place") == nlohmann::json({{"snippet", "mask_mod"}, {"line", 1}, {"column", 1}}));
  CHECK(proved("(unsigned)(q_idx - kv_idx) < 640").at("used") == false);
}

TEST_CASE("cli: explain names the snippets whose reads have no fast path") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({
    "dtype": "bf16", "head_dim": 64, "sink": "x[h]", "dropout": "p(h)", "k_scale": "2",
    "buffers": {"x": {"dtype": "f32", "shape": ["num_q_heads"]},
                "p": {"dtype": "f32", "shape": ["num_q_heads"]}},
    "scalars": {"seed": {"dtype": "i64"}}})json");
  for (const char* const name : {"reads_by_head", "reads_by_row", "reads_by_column"}) {
    CHECK(path(explained(spec, "sm_90a"), name).at("why_not") ==
          "score_mod and mask_mod read no buffers, and the path is not for sink and dropout");
  }
}

TEST_CASE("cli: explain of a spec without snippets, and with precise_math") {
  const Folder folder;
  const std::string plain = folder.write("p.json", kPlain);
  const nlohmann::json report = explained(plain, "sm_90a");
  CHECK(path(report, "score_slope").at("why_not") == "the spec has no score_mod");
  CHECK(path(report, "proved_mask").at("why_not") == "the spec has no mask_mod");
  CHECK(path(report, "reads_by_row").at("why_not") == "the snippets read no buffers");
  for (const bool precise : {false, true}) {
    nlohmann::json spec = nlohmann::json::parse(kSoftcap);
    spec["precise_math"] = precise;
    const std::string file = folder.write("precise.json", spec.dump());
    CHECK(path(explained(file, "sm_90a"), "score_factors").at("used") == !precise);
  }
}
