#include <filesystem>

#include "runtime/api/safetensors.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kSpec = R"json({"name": "s", "dtype": "f32", "head_dim": 16, "mask_mod":
  "q_idx >= kv_idx", "outputs": ["out", "lse"]})json";
const std::string kShape = "random:1,2,2,33,40";

struct Setup {
  Folder folder;
  std::string spec;
  std::string result = folder.path("out.safetensors");
  std::string theirs = folder.path("theirs.safetensors");

  explicit Setup(const std::string& text = kSpec) : spec(folder.write("s.json", text)) {
    const Ended ended =
        start({"run", spec, "--inputs", kShape, "--outputs", result, "--device", "cpu"});
    INFO(ended.err);
    REQUIRE(ended.status == 0);
  }

  TensorFile ours() const { return read_safetensors(result); }

  void write(const std::map<std::string, TensorView>& tensors) const {
    write_safetensors(theirs, tensors);
  }

  Ended check(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"check",    spec,   "--inputs", kShape,
                                      "--expect", theirs, "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    return start(words);
  }
};

}  // namespace

TEST_CASE("cli: check --expect judges max_scores and weights") {
  const Setup setup(R"json({"dtype": "f32", "head_dim": 16,
    "outputs": ["out", "lse", "max_scores", "weights"]})json");
  TensorFile file = setup.ours();
  const auto write = [&] {
    std::map<std::string, TensorView> tensors;
    for (const auto& [name, tensor] : file.tensors) tensors.emplace(name, tensor.view());
    setup.write(tensors);
  };
  write();
  const std::string right = setup.check().out;
  CHECK_THAT(right, ContainsSubstring(", max_scores "));
  CHECK_THAT(right, ContainsSubstring(", weights "));
  for (const char* name : {"max_scores", "weights"}) {
    CAPTURE(name);
    float& element = static_cast<float*>(file.tensors.at(name).data())[5];
    element += 0.1f;
    write();
    element -= 0.1f;
    const Ended wrong = setup.check({"--json"});
    CHECK(wrong.status == 1);
    const nlohmann::json expected = wrong.json()["expected"];
    CHECK(expected[std::string(name) + "_error"] > expected[std::string(name) + "_bound"]);
  }
}

TEST_CASE("cli: check --expect judges a right result, and a wrong element of it") {
  const Setup setup;
  TensorFile file = setup.ours();
  Tensor& out = file.tensors.at("out");
  Tensor& lse = file.tensors.at("lse");
  setup.write({{"out", out.view()}, {"lse", lse.view()}});
  const Ended right = setup.check({"--json"});
  INFO(right.err);
  REQUIRE(right.status == 0);
  const nlohmann::json expected = right.json()["expected"];
  CHECK(expected["ok"] == true);
  CHECK(expected["error_max"] == right.json()["error_max"]);
  CHECK(expected["beside_ours"]["difference"] == 0);
  CHECK_THAT(setup.check().out, ContainsSubstring("your result: ok"));

  // out alone is judged too.
  setup.write({{"out", out.view()}});
  CHECK(setup.check().status == 0);

  static_cast<float*>(out.view().data)[7] += 0.01f;
  setup.write({{"out", out.view()}, {"lse", lse.view()}});
  const Ended wrong = setup.check({"--json"});
  CHECK(wrong.status == 1);
  CHECK(wrong.json()["ok"] == false);
  CHECK(wrong.json()["expected"]["ok"] == false);
  CHECK(wrong.json()["error_max"] == right.json()["error_max"]);

  static_cast<float*>(out.view().data)[7] -= 0.01f;
  static_cast<float*>(lse.view().data)[3] += 0.1f;
  setup.write({{"out", out.view()}, {"lse", lse.view()}});
  CHECK(setup.check().status == 1);
}

TEST_CASE("cli: check --expect names the tensor that does not fit") {
  const Setup setup;
  TensorFile file = setup.ours();
  const TensorView out = file.tensors.at("out").view();
  const TensorView lse = file.tensors.at("lse").view();
  const Tensor half = Tensor::zeros(DType::f16, {1, 2, 33, 16});
  const Tensor shorter = Tensor::zeros(DType::f32, {1, 2, 32, 16});
  const Tensor rows = Tensor::zeros(DType::f32, {1, 2, 32});
  const auto refused = [&](const std::map<std::string, TensorView>& tensors,
                           const std::string& words) {
    setup.write(tensors);
    const Ended ended = setup.check();
    CAPTURE(words);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.err, ContainsSubstring("error[tensor]") && ContainsSubstring(words));
  };
  refused({{"lse", lse}}, "holds no tensor \"out\"");
  refused({{"out", half.view()}}, "tensor \"out\"");
  refused({{"out", shorter.view()}}, "tensor \"out\"");
  refused({{"out", out}, {"lse", rows.view()}}, "tensor \"lse\"");
  refused({{"out", out}, {"lsee", lse}}, "did you mean \"lse\"?");
}

TEST_CASE("cli: check --expect without --inputs takes q, k and v from the same file") {
  const Setup setup;
  const Tensor q = Tensor::zeros(DType::f32, {1, 1, 5, 16}),
               k = Tensor::zeros(DType::f32, {1, 1, 7, 16});
  const Tensor out = Tensor::zeros(DType::f32, {1, 1, 5, 16});
  setup.write({{"q", q.view()}, {"k", k.view()}, {"v", k.view()}, {"out", out.view()}});
  const Ended ended =
      start({"check", setup.spec, "--expect", setup.theirs, "--device", "cpu", "--json"});
  INFO(ended.err);
  CHECK(ended.status == 0);
  const Ended neither = start({"check", setup.spec});
  CHECK(neither.status == 2);
  CHECK_THAT(neither.err, ContainsSubstring("--inputs is required"));
}
