// run and check of specs with gradients.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/safetensors.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string spec_of(const std::string& dtype) {
  return R"json({"dtype": ")json" + dtype + R"json(", "head_dim": 16, "block": [32, 32],
  "score_mod": "cap * tanh((score + slopes[h] * (kv_idx - q_idx)) / cap) + bias(q_idx, kv_idx)",
  "mask_mod": "q_idx >= kv_idx",
  "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]},
              "bias": {"dtype": "f64", "shape": ["q_len", "kv_len"]}},
  "scalars": {"cap": {"dtype": "f32", "default": 5}},
  "outputs": ["out", "lse"], "gradients": ["q", "k", "v", "slopes", "bias", "cap"]})json";
}

TEST_CASE("cli: run writes the gradients that a spec names, and check judges them") {
  const Folder folder;
  const std::string random = "random:2,4,2,45,70";
  for (const char* const dtype : {"f32", "bf16"}) {
    CAPTURE(dtype);
    const std::string spec = folder.write("s.json", spec_of(dtype));
    const Ended checked = on_cpu({"check", spec, "--inputs", random, "--json", "--deterministic"});
    INFO(checked.out << checked.err);
    REQUIRE(checked.status == 0);
    const nlohmann::json report = checked.json();
    std::set<std::string> names;
    for (const auto& [name, verdict] : report["gradients"].items()) {
      names.insert(name);
      CHECK(verdict["ok"] == true);
      CHECK(verdict["error_max"] <= verdict["bound"]);
      CHECK(verdict["bound"] > 0);
    }
    const std::set<std::string> wanted = {"dq", "dk", "dv", "d_slopes", "d_bias", "d_cap"};
    CHECK(names == wanted);
  }
  const std::string spec = folder.write("s.json", spec_of("f16"));
  const std::string file = folder.path("out.safetensors");
  const Ended ran = on_cpu({"run", spec, "--inputs", random, "--outputs", file, "--json"});
  INFO(ran.err);
  REQUIRE(ran.status == 0);
  CHECK(ran.json()["times_ms"].contains("backward"));
  const TensorFile outputs = read_safetensors(file);
  CHECK(outputs.tensors.size() == 8);
  CHECK(outputs.skipped.empty());
  CHECK(outputs.tensors.at("dk").view().describe() == outputs.tensors.at("dv").view().describe());
  CHECK(outputs.tensors.at("d_cap").numel() == 1);
  CHECK(outputs.tensors.at("d_bias").dtype() == f32);
}

TEST_CASE("cli: check judges gradients of a row whose scores are NAN or infinite") {
  const Folder folder;
  for (const char* const constant : {"NAN", "INFINITY", "-INFINITY"}) {
    const std::string spec = folder.write(
        "s.json",
        std::string(R"json({"dtype": "f32", "head_dim": 16, "score_mod": "q_idx == 5 ? )json") +
            constant + R"json( : score", "outputs": ["out", "lse"],
                      "gradients": ["q", "k", "v"]})json");
    const Ended checked = on_cpu({"check", spec, "--inputs", "random:1,2,2,45,70", "--json"});
    INFO(constant << checked.out << checked.err);
    CHECK(checked.status == 0);
  }
}

std::string f32_spec_of(const std::string& mods) {
  return R"json({"dtype": "f32", "head_dim": 16, "outputs": ["out", "lse"],
                 "gradients": ["q", "k", "v"], )json" +
         mods + "}";
}

TEST_CASE("cli: check says once where score_mod has no derivative, and of no other gradient") {
  const Folder folder;
  const std::string spec =
      folder.write("s.json", f32_spec_of(R"json("score_mod": "tanh(score / 0.0f)")json"));
  const Ended checked = on_cpu({"check", spec, "--inputs", "random:1,2,2,33,40", "--json"});
  INFO(checked.out << checked.err);
  CHECK(checked.status == 1);
  const nlohmann::json report = checked.json();
  REQUIRE(report["reasons"].size() == 1);
  CHECK_THAT(report["reasons"][0].get<std::string>(),
             ContainsSubstring("score_mod has no derivative at b 0, h 0, row ") &&
                 ContainsSubstring("the chain rule gives nan"));
  CHECK(report["gradients"]["dq"]["ok"] == false);
  CHECK(report["gradients"]["dk"]["ok"] == false);
  CHECK(report["gradients"]["dv"]["ok"] == true);
}

TEST_CASE("cli: an element that mask_mod drops needs no derivative") {
  const Folder folder;
  const auto check = [&](const char* mask) {
    const std::string mods =
        R"json("score_mod": "tanh(score / (q_idx - kv_idx))", "mask_mod": ")json";
    const std::string spec = folder.write("s.json", f32_spec_of(mods + mask + "\""));
    return on_cpu({"check", spec, "--inputs", "random:1,2,2,33,40"});
  };
  const Ended dropped = check("q_idx > kv_idx");
  INFO(dropped.out << dropped.err);
  CHECK(dropped.status == 0);
  CHECK(check("q_idx >= kv_idx").status == 1);
}

std::string packed_spec_of(const std::string& dtype) {
  return R"json({"dtype": ")json" + dtype + R"json(", "head_dim": 16,
  "layout": "packed", "block": [32, 32], "mask_mod": "q_idx >= kv_idx",
  "score_mod": "cap * tanh((score + slopes[h] * (kv_idx - q_idx)) / cap) + of_q[q_token] * of_kv[kv_token]",
  "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]},
              "of_q": {"dtype": "f32", "shape": ["total_q"]},
              "of_kv": {"dtype": "f32", "shape": ["total_kv"]}},
  "scalars": {"cap": {"dtype": "f32", "default": 5}},
  "outputs": ["out", "lse"], "gradients": ["q", "k", "v", "slopes", "of_q", "of_kv", "cap"]})json";
}

TEST_CASE("cli: gradients of packed specs") {
  const Folder folder;
  const auto write_spec = [&](const std::string& dtype) {
    return folder.write("s.json", packed_spec_of(dtype));
  };
  const std::string random = "random:4,2/1:43,50:50,35:18,0:9";
  for (const char* const dtype : {"f32", "bf16"}) {
    CAPTURE(dtype);
    const Ended checked = on_cpu({"check", write_spec(dtype), "--inputs", random, "--json"});
    INFO(checked.out << checked.err);
    REQUIRE(checked.status == 0);
    CHECK(checked.json()["gradients"].size() == 7);
  }
  const std::string file = folder.path("out.safetensors");
  const Ended ran =
      on_cpu({"run", write_spec("f32"), "--inputs", random, "--outputs", file, "--json"});
  INFO(ran.err);
  REQUIRE(ran.status == 0);
  const TensorFile outputs = read_safetensors(file);
  CHECK(outputs.tensors.at("dq").view().describe() == outputs.tensors.at("out").view().describe());
  CHECK(outputs.tensors.at("d_of_kv").numel() == outputs.tensors.at("dk").shape()[0]);
}

TEST_CASE("cli: check --expect judges the gradients that run wrote") {
  const Folder folder;
  const auto [text, random] =
      GENERATE(std::pair(spec_of("f32"), "random:2,4,2,45,70"),
               std::pair(packed_spec_of("f32"), "random:4,2/1:43,50:50,35:18,0:9"));
  const std::string spec = folder.write("s.json", text);
  const std::string file = folder.path("out.safetensors");
  const std::vector<std::string> call = {spec, "--inputs", random, "--seed", "3"};
  const auto start_with = [&](const char* verb, const std::vector<std::string>& more) {
    std::vector<std::string> words = {verb};
    words.insert(words.end(), call.begin(), call.end());
    words.insert(words.end(), more.begin(), more.end());
    return on_cpu(words);
  };
  REQUIRE(start_with("run", {"--outputs", file}).status == 0);
  TensorFile outputs = read_safetensors(file);
  const Ended right = start_with("check", {"--expect", file, "--json"});
  INFO(right.err);
  REQUIRE(right.status == 0);
  const nlohmann::json judged = right.json()["expected"]["gradients"];
  CHECK(judged == right.json()["gradients"]);
  CHECK(judged.size() == outputs.tensors.size() - 2);
  CHECK_THAT(start_with("check", {"--expect", file}).out, ContainsSubstring("your dk: ok"));

  const auto write = [&](const std::string& left_out) {
    std::map<std::string, TensorView> tensors;
    for (const auto& [name, tensor] : outputs.tensors) {
      if (name != left_out) tensors.emplace(name, tensor.view());
    }
    write_safetensors(file, tensors);
  };
  for (const char* const name : {"dq", "dk", "dv", "d_slopes", "d_cap"}) {
    CAPTURE(name);
    float& element = static_cast<float*>(outputs.tensors.at(name).data())[0];
    const float kept = element;
    element += 0.5f;
    write("");
    const Ended wrong = start_with("check", {"--expect", file, "--json"});
    CHECK(wrong.status == 1);
    CHECK(wrong.json()["expected"]["ok"] == false);
    CHECK(wrong.json()["expected"]["gradients"][name]["ok"] == false);
    CHECK(wrong.json()["gradients"][name]["ok"] == true);
    CHECK_THAT(wrong.json()["reasons"].dump(),
               ContainsSubstring("the result from elsewhere: " + std::string(name)));
    write(name);
    const Ended without = start_with("check", {"--expect", file, "--json"});
    CHECK(without.status == 0);
    CHECK_FALSE(without.json()["expected"]["gradients"].contains(name));
    element = kept;
  }
}

TEST_CASE("cli: check --expect says that the call may lack dlse") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "f32", "head_dim": 16,
    "outputs": ["out", "lse"], "gradients": ["q", "v"]})json");
  const std::vector<std::int64_t> sizes = {1, 1, 4, 16};
  TensorFile call;
  for (const char* const name : {"q", "k", "v", "dout", "dlse"}) {
    Tensor& tensor = call.tensors
                         .emplace(name, Tensor::zeros(f32, name == std::string("dlse")
                                                               ? std::vector<std::int64_t>{1, 1, 4}
                                                               : sizes))
                         .first->second;
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      static_cast<float*>(tensor.data())[i] = static_cast<float>(i * 7 % 11) - 5;
    }
  }
  const auto write = [&](const char* file, const TensorFile& from, const std::string& left_out) {
    std::map<std::string, TensorView> tensors;
    for (const auto& [name, tensor] : from.tensors) {
      if (name != left_out) tensors.emplace(name, tensor.view());
    }
    write_safetensors(folder.path(file), tensors);
    return folder.path(file);
  };
  const std::string whole = write("whole.safetensors", call, "");
  const std::string bare = write("bare.safetensors", call, "dlse");
  const std::string result = folder.path("result.safetensors");
  REQUIRE(on_cpu({"run", spec, "--inputs", whole, "--outputs", result}).status == 0);
  CHECK(on_cpu({"check", spec, "--inputs", whole, "--expect", result}).status == 0);

  const Ended lacking = on_cpu({"check", spec, "--inputs", bare, "--expect", result});
  CHECK(lacking.status == 1);
  CHECK_THAT(lacking.out, ContainsSubstring("this call has no dlse: where lse takes part in") &&
                              ContainsSubstring("into the file of --inputs"));
  TensorFile both = read_safetensors(result);
  both.tensors.emplace("dlse", std::move(call.tensors.at("dlse")));
  const std::string with_dlse = write("both.safetensors", both, "");
  const Ended elsewhere =
      on_cpu({"check", spec, "--inputs", bare, "--expect", with_dlse, "--json"});
  CHECK(elsewhere.status == 1);
  CHECK_THAT(elsewhere.json()["reasons"].back().get<std::string>(),
             ContainsSubstring("the file of --expect holds dlse, which is read from the file of"));

  static_cast<float*>(both.tensors.at("dv").data())[0] += 1;  // which does not depend on dlse
  const Ended other = on_cpu(
      {"check", spec, "--inputs", whole, "--expect", write("wrong.safetensors", both, "dlse")});
  CHECK(other.status == 1);
  CHECK_THAT(other.out, !ContainsSubstring("no dlse"));
}

TEST_CASE("cli: check --expect takes a result and all inputs of a call in one file") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "f32", "head_dim": 16,
    "outputs": ["out", "lse"], "gradients": ["q", "k"]})json");
  const std::vector<std::int64_t> sizes = {1, 1, 4, 16};
  std::vector<Zeros> tensors;
  for (const char* const name : {"q", "k", "v", "dout", "out", "dq", "dk"}) {
    tensors.push_back({name, f32, sizes});
  }
  const auto check = [&] {
    return on_cpu({"check", spec, "--expect", write_zeros(folder, "all.safetensors", tensors)});
  };
  CHECK(check().status == 0);
  tensors.push_back({"dlse", f32, {1, 1, 4}});
  CHECK(check().status == 0);
  tensors.push_back({"dv", f32, sizes});  // which the spec does not name
  const Ended extra = check();
  CHECK(extra.status == 2);
  CHECK_THAT(extra.err, ContainsSubstring("extra tensor \"dv\""));
  tensors[5].shape = {1, 1, 5, 16};
  tensors.pop_back();
  CHECK_THAT(check().err, ContainsSubstring("tensor \"dq\""));
}

TEST_CASE("cli: dout and dlse come from the file of a spec with gradients alone") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "f32", "head_dim": 16,
    "outputs": ["out", "lse"], "gradients": ["q"]})json");
  const std::vector<Zeros> call = {
      {"q", f32, {1, 1, 4, 16}}, {"k", f32, {1, 1, 4, 16}}, {"v", f32, {1, 1, 4, 16}}};
  const auto run = [&](const std::string& of, const std::vector<Zeros>& more) {
    std::vector<Zeros> tensors = call;
    tensors.insert(tensors.end(), more.begin(), more.end());
    return on_cpu({"run", of, "--inputs", write_zeros(folder, "in.safetensors", tensors),
                   "--outputs", folder.path("out.safetensors")});
  };
  const Zeros dout = {"dout", f32, {1, 1, 4, 16}};
  CHECK(run(spec, {dout}).status == 0);
  CHECK(run(spec, {dout, {"dlse", f32, {1, 1, 4}}}).status == 0);
  const auto refused = [&](const Ended& ended, const std::string& words) {
    CHECK(ended.status == 2);
    CHECK_THAT(ended.err, ContainsSubstring(words));
  };
  refused(run(spec, {}), "holds no tensor \"dout\"");
  refused(run(spec, {{"dout", f32, {1, 1, 5, 16}}}), "dout does not have the shape of out");
  refused(run(spec, {{"dout", f16, {1, 1, 4, 16}}}), "dout is f16");
  refused(run(spec, {dout, {"dlse", f32, {1, 4}}}), "dlse does not have the shape of lse");
  const std::string plain = folder.write("p.json", R"json({"dtype": "f32", "head_dim": 16})json");
  refused(run(plain, {dout}), "extra tensor \"dout\"");
  refused(on_cpu({"run", plain, "--inputs", "random:1,1,1,4,4", "--outputs",
                  folder.path("out.safetensors"), "--deterministic"}),
          "--deterministic is for gradients");
}

}  // namespace
