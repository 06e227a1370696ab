// What check says where it judged little, and what it advises.
#include <map>
#include <string>
#include <vector>

#include "runtime/api/safetensors.hpp"
#include "runtime/io/float16.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/limits.hpp"

using namespace tilewright;
using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string bias_spec(const std::string& more) {
  return R"json({"dtype": "f32", "head_dim": 16, "mask_mod": "q_idx >= kv_idx",
    "score_mod": "score + bias[kv_idx - q_idx + q_len - 1]",
    "buffers": {"bias": {"dtype": "f32", "shape": [null]}}, "outputs": ["out", "lse"])json" +
         more + "}";
}

std::string cap_spec(const std::string& dtype) {
  return R"json({"dtype": ")json" + dtype + R"json(", "head_dim": 16,
    "mask_mod": "q_idx >= kv_idx", "score_mod": "cap * tanh(score / cap)",
    "scalars": {"cap": {"dtype": "f32"}}, "outputs": ["out", "lse"],
    "gradients": ["q", "k", "v", "cap"]})json";
}

const std::string kShape = "random:1,4,2,64,70";
const std::vector<std::string> kGradients = {"d_bias", "dk", "dq", "dv"};

}  // namespace

TEST_CASE("cli: check is not ok where only zeros of unreached columns were judged") {
  const Folder folder;
  const std::string spec =
      folder.write("s.json", bias_spec(R"json(, "gradients": ["q", "k", "v", "bias"])json"));
  const std::string file = folder.path("out.safetensors");
  const auto words = [&](const std::string& verb) {
    return std::vector<std::string>{verb,       spec,       "--inputs", kShape,
                                    "--buffer", "bias=133", "--scale",  "1e7"};
  };
  std::vector<std::string> run = words("run"), check = words("check");
  run.insert(run.end(), {"--outputs", file});
  REQUIRE(on_cpu(run).status == 0);
  TensorFile outputs = read_safetensors(file);
  for (std::int64_t i = 0; i < 64 * 16; ++i) {  // of the first head, of columns that a row keeps
    write_element(outputs.tensors.at("dk").data(), f32, i, 1234);
  }
  std::map<std::string, TensorView> tensors;
  for (const auto& [name, tensor] : outputs.tensors) tensors.emplace(name, tensor.view());
  write_safetensors(file, tensors);
  check.insert(check.end(), {"--expect", file, "--json"});
  const Ended ended = on_cpu(check);
  INFO(ended.out << ended.err);
  CHECK(ended.status == 1);
  const nlohmann::json report = ended.json();
  CHECK(report["ok"] == false);
  for (const std::string& name : kGradients) {
    CAPTURE(name);
    CHECK(report["gradients"][name]["ok"] == false);
    CHECK(report["expected"]["gradients"][name]["ok"] == false);
    CHECK(report["gradients"][name]["judged"] == report["gradients"][name]["unreached"]);
  }
  CHECK(report["expected"]["ok"] == false);
}

TEST_CASE("cli: check is not ok where only zeros of rows that keep nothing were judged") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "f32", "head_dim": 16,
    "mask_mod": "q_idx >= kv_idx + 5"})json");
  const Ended ended = on_cpu({"check", spec, "--inputs", kShape, "--scale", "3e38", "--json"});
  INFO(ended.out << ended.err);
  CHECK(ended.status == 1);
  CHECK(ended.json()["unreached"] == 5 * 4 * 16);
  CHECK(ended.json()["judged"] == 5 * 4 * 16);
  CHECK_THAT(ended.json()["reasons"][0].get<std::string>(),
             ContainsSubstring("nothing of out was judged"));
}

TEST_CASE("cli: check says where NaN is right, and which input holds it") {
  const Folder folder;
  const std::string spec = folder.write("s.json", cap_spec("f32"));
  const auto check = [&](const std::string& cap) {
    return on_cpu({"check", spec, "--inputs", kShape, "--scalar", "cap=" + cap, "--json"});
  };
  const Ended ended = check("nan");
  INFO(ended.out << ended.err);
  CHECK(ended.status == 0);
  const nlohmann::json report = ended.json();
  CHECK(report["nan"] == 64 * 4 * 16);
  CHECK(report["gradients"]["d_cap"]["nan"] == 1);
  REQUIRE(report["notes"].size() == 1);
  CHECK_THAT(
      report["notes"][0]["message"].get<std::string>(),
      ContainsSubstring("4096 of 4096 elements of out, 1 of 1 of d_cap, 2048 of 2240 of dk") &&
          ContainsSubstring("as scalar cap is NaN"));
  CHECK_THAT(ended.err, ContainsSubstring("NaN is right in"));
  CHECK(check("5").json()["notes"].empty());
  const Ended text = on_cpu({"check", spec, "--inputs", kShape, "--scalar", "cap=nan"});
  CHECK_THAT(text.out, ContainsSubstring("out is NaN everywhere, as in the reference") &&
                           ContainsSubstring("d_cap: ok, NaN everywhere, as in the reference") &&
                           ContainsSubstring("dk: ok, error max"));
}

TEST_CASE("cli: check says which tensors hold NaN, or that score_mod makes it") {
  const Folder folder;
  const auto note_of = [&](const std::string& score_mod, const std::string& with_nan) {
    const std::string spec = folder.write(
        "s.json", R"json({"dtype": "f32", "head_dim": 16, "score_mod": ")json" + score_mod +
                      R"json(", "buffers": {"x": {"dtype": "f32", "shape": [4]}}})json");
    std::map<std::string, Tensor> owned;
    std::map<std::string, TensorView> tensors;
    for (const char* const name : {"q", "k", "v", "x"}) {
      const std::vector<std::int64_t> shape =
          *name == 'x' ? std::vector<std::int64_t>{4} : std::vector<std::int64_t>{1, 1, 4, 16};
      owned.emplace(name, Tensor::zeros(f32, shape));
      if (name == with_nan) write_element(owned.at(name).data(), f32, 1, kNan);
      tensors.emplace(name, owned.at(name).view());
    }
    const std::string file = folder.path("in.safetensors");
    write_safetensors(file, tensors);
    const Ended ended = on_cpu({"check", spec, "--inputs", file, "--json"});
    INFO(ended.out << ended.err);
    REQUIRE(ended.status == 0);
    REQUIRE(ended.json()["notes"].size() == 1);
    return ended.json()["notes"][0];
  };
  const auto message_of = [&](const std::string& score_mod, const std::string& with_nan) {
    return note_of(score_mod, with_nan)["message"].get<std::string>();
  };
  CHECK(note_of("score + x[kv_idx]", "x")["file"] == "inputs");
  CHECK(note_of("score + x[kv_idx] + sqrt(-1.0f)", "")["file"] == "score_mod");
  CHECK_THAT(message_of("score + x[kv_idx]", "x"), ContainsSubstring("as buffer x holds NaN"));
  CHECK_THAT(message_of("score + x[kv_idx]", "k"), ContainsSubstring("as k holds NaN"));
  CHECK_THAT(message_of("score + x[kv_idx] + sqrt(-1.0f)", ""),
             ContainsSubstring("as score_mod makes NaN of finite inputs"));
}

TEST_CASE("cli: check names the derivative that float32 does not hold, once") {
  const Folder folder;
  for (const char* const dtype : {"f32", "bf16"}) {
    CAPTURE(dtype);
    const std::string spec = folder.write("s.json", cap_spec(dtype));
    const std::vector<std::string> words = {"check", spec,       "--inputs",
                                            kShape,  "--scalar", "cap=1e-20"};
    const Ended ended = on_cpu(words);
    INFO(ended.out << ended.err);
    CHECK(ended.status == 1);
    CHECK_THAT(ended.out, ContainsSubstring("d_cap: nothing judged") &&
                              ContainsSubstring("1 of its elements is not judged: in float32 "
                                                "score_mod's derivative by cap is NaN"));
    std::vector<std::string> as_json = words;
    as_json.emplace_back("--json");
    const nlohmann::json report = on_cpu(as_json).json();
    REQUIRE(report["gradients"]["d_cap"]["reasons"].size() == 1);
    CHECK(report["gradients"]["d_cap"]["overflow"] == 1);
    CHECK(report["gradients"]["dq"]["ok"] == true);
  }
}

TEST_CASE("cli: check says how long a table must be that is read past its end") {
  const Folder folder;
  const std::string spec = folder.write("s.json", bias_spec(""));
  const Ended ended = on_cpu({"check", spec, "--inputs", kShape});
  INFO(ended.out << ended.err);
  CHECK(ended.status == 0);
  CHECK_THAT(ended.out, ContainsSubstring("hint: --buffer bias=133 holds them all\n") &&
                            ContainsSubstring("\n1 undefined operation in 17920 of"));
  const Ended longer = on_cpu({"check", spec, "--inputs", kShape, "--buffer", "bias=133"});
  CHECK(longer.status == 0);
  CHECK_THAT(longer.out, !ContainsSubstring("warning"));
  CHECK_THAT(on_cpu({"check", spec, "--inputs", kShape, "--buffer", "bias=132"}).out,
             ContainsSubstring("--buffer bias=133 holds"));
  const std::string file = write_zeros(folder, "in.safetensors",
                                       {{"q", f32, {1, 1, 4, 16}},
                                        {"k", f32, {1, 1, 4, 16}},
                                        {"v", f32, {1, 1, 4, 16}},
                                        {"bias", f32, {3}}});
  const Ended from_file = on_cpu({"check", spec, "--inputs", file, "--json"});
  const nlohmann::json operation = from_file.json()["undefined"]["operations"][0];
  CHECK(operation["too_short"] ==
        nlohmann::json({{"buffer", "bias"}, {"dimension", 0}, {"needed", 7}}));
  CHECK_THAT(on_cpu({"check", spec, "--inputs", file}).out,
             ContainsSubstring("hint: a \"bias\" whose dimension 0 is 7 long holds them all"));
}

TEST_CASE("cli: check gives one hint for all reads that pass the ends of a buffer") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "f32", "head_dim": 16,
    "score_mod": "score + x(q_idx, 0) + x(q_idx + 4, 3 * kv_idx) + x(0, kv_idx + 1)",
    "buffers": {"x": {"dtype": "f32", "shape": [null, null]}}})json");
  const auto check = [&](const std::string& extents) {
    return on_cpu({"check", spec, "--inputs", "random:1,1,1,4,4", "--buffer", "x=" + extents}).out;
  };
  const std::string found = check("3,2");
  INFO(found);
  const std::string hint = "hint: --buffer x=8,10 holds them all\n";
  CHECK_THAT(found, ContainsSubstring(hint));
  CHECK(found.find("hint: ") == found.rfind("hint: "));
  CHECK_THAT(check("8,10"), !ContainsSubstring("warning"));
  const std::string file = write_zeros(folder, "in.safetensors",
                                       {{"q", f32, {1, 1, 4, 16}},
                                        {"k", f32, {1, 1, 4, 16}},
                                        {"v", f32, {1, 1, 4, 16}},
                                        {"x", f32, {3, 2}}});
  CHECK_THAT(
      on_cpu({"check", spec, "--inputs", file}).out,
      ContainsSubstring("hint: a \"x\" whose dimension 0 is 8 and dimension 1 is 10 long holds "
                        "them all\n"));
}

TEST_CASE("cli: check says what a longer buffer does not hold") {
  const Folder folder;
  const auto check = [&](const std::string& read, const std::string& shape,
                         const std::vector<std::string>& more = {}) {
    const std::string spec = folder.write(
        "s.json", R"json({"dtype": "f32", "head_dim": 16, "score_mod": "score + )json" + read +
                      R"json(", "buffers": {"x": {"dtype": "f32", "shape": )json" + shape + "}}}");
    std::vector<std::string> words = {"check", spec, "--inputs", "random:1,1,1,4,70"};
    words.insert(words.end(), more.begin(), more.end());
    return on_cpu(words).out;
  };
  CHECK_THAT(
      check("x[kv_idx - q_idx]", "[null]"),
      ContainsSubstring("hint: dimension 0 of \"x\" was read at -3 to 69: no extent holds "
                        "what is below 0, and one of 73 holds all where the snippet adds 3\n"));
  CHECK_THAT(check("x[q_idx - 9]", "[null]"),
             ContainsSubstring("hint: dimension 0 of \"x\" was read at -9 to -6: no extent holds "
                               "what is below 0\n"));
  CHECK_THAT(
      check("x[kv_idx + 2]", R"(["kv_len"])"),
      ContainsSubstring("hint: dimension 0 of \"x\" is kv_len, 70 in this call, and was read "
                        "at 70 to 71: no other extent fits it\n"));
  CHECK_THAT(
      check("x(q_idx + 2, kv_idx)", R"(["q_len", null])"),
      ContainsSubstring("hint: --buffer x=70 holds those of dimension 1; dimension 0 of \"x\" "
                        "is q_len, 4 in this call, and was read at 4 to 5: no other extent "
                        "fits it\n"));
  CHECK_THAT(check("x(q_idx + 2, kv_idx)", "[3, 64]"),
             ContainsSubstring("hint: a \"shape\" of [6, 70] in the spec holds them all\n"));
  CHECK_THAT(check("x(q_idx + 2, kv_idx)", "[6, 70]"), !ContainsSubstring("warning"));
  CHECK_THAT(check("x(q_idx + 2, kv_idx)", "[3, null]"),
             ContainsSubstring(
                 "hint: a \"shape\" of [6, null] in the spec and --buffer x=70 hold them all\n"));
  CHECK_THAT(
      check("x[kv_idx] + x[log2(q_idx - 1.0f)]", "[64]"),
      ContainsSubstring("no extent holds what is below 0") && !ContainsSubstring("holds them all"));
  CHECK_THAT(check("x[kv_idx] + x[q_idx > 0 ? 0 : sqrt(q_idx - 1.0f)]", "[64]"),
             ContainsSubstring("a \"shape\" of [70] in the spec holds all that are numbers\n"));
  const std::string spec = folder.write("t.json", R"json({"dtype": "f32", "head_dim": 16,
    "score_mod": "score + x[kv_idx - q_idx]", "buffers": {"x": {"dtype": "f32", "shape": [64]}}})json");
  const nlohmann::json operation =
      on_cpu({"check", spec, "--inputs", "random:1,1,1,4,70", "--json"})
          .json()["undefined"]["operations"][0];
  CHECK(operation["outside"] ==
        nlohmann::json(
            {{"buffer", "x"}, {"dimension", 0}, {"extent", 64}, {"least", -3}, {"greatest", 69}}));
  CHECK(operation["too_short"].is_null());
}

TEST_CASE("cli: check proposes no table that is too large as a whole") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "f32", "head_dim": 16,
    "score_mod": "score + x(kv_idx * 1000, q_idx * 1000)",
    "buffers": {"x": {"dtype": "f32", "shape": [null, null]}}})json");
  const Ended ended = on_cpu({"check", spec, "--inputs", "random:1,1,1,20,30"});
  CHECK_THAT(
      ended.out + ended.err,
      ContainsSubstring("hint: \"x\" would need 29001 x 19001 elements, and no table has more"
                        " than 16777216\n"));
}

TEST_CASE("cli: check advises on dlse only where it may be why a gradient is wrong") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "f32", "head_dim": 16,
    "outputs": ["out", "lse"], "gradients": ["q", "k", "v"]})json");
  const std::string file = folder.path("out.safetensors");
  REQUIRE(on_cpu({"run", spec, "--inputs", kShape, "--outputs", file}).status == 0);
  const auto check = [&](const std::vector<std::string>& wrong) {
    TensorFile outputs = read_safetensors(file);
    std::map<std::string, TensorView> tensors;
    for (const auto& [name, tensor] : outputs.tensors) tensors.emplace(name, tensor.view());
    for (const std::string& name : wrong) write_element(tensors.at(name).data, f32, 0, 1234);
    const std::string theirs = folder.path("theirs.safetensors");
    write_safetensors(theirs, tensors);
    const Ended ended = on_cpu({"check", spec, "--inputs", kShape, "--expect", theirs});
    CHECK(ended.status == 1);
    return ended.out;
  };
  CHECK_THAT(check({"dq", "dk"}), ContainsSubstring("this call has no dlse"));
  CHECK_THAT(check({"dk"}), !ContainsSubstring("dlse"));
  CHECK_THAT(check({"dq"}), !ContainsSubstring("dlse"));
}
