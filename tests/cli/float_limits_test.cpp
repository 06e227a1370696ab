// check where float32 or out's dtype ends: infinities in v, scales that are not finite, sums and
// derivatives that overflow.
#include <cmath>
#include <functional>
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

constexpr std::int64_t kHeads = 2, kQLen = 20, kKvLen = 30, kDim = 16;

// A call's file: numbers from -1.5 to 1.5, and what a test changes of them.
class CallFile {
 public:
  CallFile(DType dtype, bool has_gradients) {
    add("q", dtype, kQLen, 1);
    add("k", dtype, kKvLen, 2);
    add("v", dtype, kKvLen, 3);
    if (has_gradients) add("dout", dtype, kQLen, 4);
  }

  double get(const std::string& name, std::int64_t row, std::int64_t i) {
    return read_element(tensors_.at(name).data(), tensors_.at(name).dtype(), row * kDim + i);
  }
  // Of head 0.
  void set(const std::string& name, std::int64_t row, std::int64_t i, double value) {
    Tensor& tensor = tensors_.at(name);
    write_element(tensor.data(), tensor.dtype(), row * kDim + i, value);
  }
  void multiply_row(const std::string& name, std::int64_t row, double factor) {
    for (std::int64_t i = 0; i < kDim; ++i) set(name, row, i, factor * get(name, row, i));
  }

  std::string write(const Folder& folder, const std::string& name) const {
    std::map<std::string, TensorView> views;
    for (const auto& [key, tensor] : tensors_) views.emplace(key, tensor.view());
    write_safetensors(folder.path(name), views);
    return folder.path(name);
  }

 private:
  void add(const std::string& name, DType dtype, std::int64_t rows, double seed) {
    Tensor& tensor =
        tensors_.emplace(name, Tensor::zeros(dtype, {1, kHeads, rows, kDim})).first->second;
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      write_element(tensor.data(), dtype, i,
                    1.5 * std::sin(12.9898 * static_cast<double>(i + 1) + seed));
    }
  }

  std::map<std::string, Tensor> tensors_;
};

std::string spec_with(const std::string& keys) {
  return R"({"head_dim": 16, "outputs": ["out", "lse"], )" + keys + "}";
}

constexpr const char* kGradients = R"(, "gradients": ["q", "k", "v"])";

// check on the CPU of the file that `change` makes.
Ended check(const std::string& keys, DType dtype, const std::function<void(CallFile&)>& change,
            const std::vector<std::string>& more = {}) {
  const Folder folder;
  CallFile file(dtype, keys.find("gradients") != std::string::npos);
  change(file);
  std::vector<std::string> words = {
      "check",
      folder.write("s.json",
                   spec_with(R"("dtype": ")" + std::string(to_string(dtype)) + "\"" + keys)),
      "--inputs", file.write(folder, "in.safetensors"), "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return on_cpu(words);
}

// Nothing is wrong, and nothing is shown to be right.
void require_nothing_judged(const Ended& ended, const std::string& name) {
  CHECK(ended.status == 1);
  const nlohmann::json report = ended.json();
  CHECK(report["ok"] == false);
  const nlohmann::json of = name == "out" ? report : report["gradients"][name];
  CHECK(of["ok"] == false);
  CHECK(of["judged"] == 0);
  CHECK_THAT(report["reasons"].dump(), ContainsSubstring("nothing of " + name + " was judged"));
}

}  // namespace

TEST_CASE("cli: check judges an out of f8e4m3 where v has infinities") {
  for (const DType dtype : {f32, bf16}) {
    for (const char* const mask : {"", R"(, "mask_mod": "q_idx >= kv_idx")"}) {
      CAPTURE(to_string(dtype), mask);
      const Ended ended =
          check(std::string(R"(, "out_dtype": "f8e4m3", "out_scale": "0.5f")") + mask, dtype,
                [](CallFile& file) {
                  file.set("v", 0, 5, kInf);
                  file.set("v", 7, 3, -kInf);
                });
      INFO(ended.err << ended.out);
      CHECK(ended.status == 0);
      CHECK(ended.json()["bound"] < 2);
      CHECK(ended.json()["error_max"] < 1);
    }
  }
}

TEST_CASE("cli: check takes NaN for an infinity that a dropped infinity of v meets") {
  const Ended ended = check(R"(, "mask_mod": "q_idx >= kv_idx")", f16, [](CallFile& file) {
    file.set("v", 0, 5, kInf);
    file.set("v", 25, 5, kInf);
  });
  INFO(ended.err << ended.out);
  CHECK(ended.status == 0);
  CHECK(ended.json()["spread"] == kQLen);
}

TEST_CASE("cli: check leaves out elements whose reference out's dtype does not hold") {
  const std::string causal = R"(, "mask_mod": "q_idx >= kv_idx")";
  const Ended sums = check(R"(, "out_dtype": "f16")" + causal, f32,
                           [](CallFile& file) { file.set("v", 3, 5, 3e38); });
  INFO(sums.err << sums.out);
  CHECK(sums.status == 0);
  CHECK(sums.json()["overflow"] == kQLen - 3);
  const Ended spread =
      check(R"(, "out_dtype": "f8e4m3", "out_scale": "0.5f")" + causal, f32, [](CallFile& file) {
        file.set("v", 0, 5, kInf);
        file.set("v", 7, 5, -kInf);
      });
  INFO(spread.err << spread.out);
  CHECK(spread.status == 0);
  CHECK(spread.json()["spread"] == 7);
}

TEST_CASE("cli: check leaves out what a scale of NaN or infinity reaches, and notes it") {
  for (const char* const scale : {"q_scale", "k_scale", "v_scale"}) {
    for (const std::string value : {"inf", "-inf", "nan"}) {
      CAPTURE(scale, value);
      const Ended ended = check(
          fmt::format(R"(, "{}": "h_kv == 1 ? sa : 1.0f", "scalars": {{"sa": {{"dtype": "f32"}}}})",
                      scale),
          f32, [](CallFile&) {}, {"--scalar", "sa=" + value});
      INFO(ended.err << ended.out);
      CHECK(ended.status == 0);
      CHECK(ended.json()["odd_scales"] == kQLen * kDim);
      CHECK(ended.json()["error_max"] > 0);  // of the other head
      const std::string shown = value == "nan" ? "NaN" : value;
      CHECK_THAT(ended.err, ContainsSubstring(fmt::format(
                                "note: {0}:1:1: {0} is {1} by this call's values", scale, shown)));
      CHECK(ended.json()["notes"].size() == 1);
    }
  }
}

TEST_CASE("cli: check leaves out what float32 does not hold, and nothing else") {
  struct Limit {
    std::string tensor;
    std::int64_t row;
    double factor;
    std::int64_t elements;
  };
  // A row of q near the limit overflows its own scores; v near the limit makes sums of out infinite
  // only where enough of it is added.
  for (const Limit& limit : {Limit{"q", 3, 2e38, kDim}, Limit{"k", 4, 2e38, kQLen * kDim},
                             Limit{"v", 4, 1e36, 0}, Limit{"q", 3, 1e30, 0}}) {
    for (const DType dtype : {f32, bf16}) {
      CAPTURE(limit.tensor, limit.factor, to_string(dtype));
      const Ended ended = check("", dtype, [&](CallFile& file) {
        file.multiply_row(limit.tensor, limit.row, limit.factor);
      });
      INFO(ended.err << ended.out);
      CHECK(ended.status == 0);
      CHECK(ended.json()["overflow"] == limit.elements);
    }
  }
  const Ended ended = check("", f32, [](CallFile& file) {
    for (std::int64_t row = 0; row < kKvLen; ++row) file.set("v", row, 2, 3e38);
  });
  INFO(ended.err << ended.out);
  CHECK(ended.status == 0);
  CHECK(ended.json()["overflow"] == kQLen);
  CHECK(ended.json()["bound"] < 0.1);  // of the others
}

TEST_CASE("cli: check leaves out what overflows before a scale, or in a factor of scales") {
  for (const DType dtype : {f32, bf16}) {
    CAPTURE(to_string(dtype));
    const Ended stored = check(R"(, "q_scale": "q_idx == 3 ? 1e-38 : 1.0")", dtype,
                               [](CallFile& file) { file.multiply_row("q", 3, 2e38); });
    INFO(stored.err << stored.out);
    CHECK(stored.status == 0);
    CHECK(stored.json()["overflow"] == kDim);
    const Ended factor =
        check(R"(, "q_scale": "1e30", "k_scale": "1e10")", dtype, [](CallFile& file) {
          for (std::int64_t row = 0; row < kHeads * kQLen; ++row) {
            file.multiply_row("q", row, 1e-30);
          }
          for (std::int64_t row = 0; row < kHeads * kKvLen; ++row) {
            file.multiply_row("k", row, 1e-10);
          }
        });
    INFO(factor.err << factor.out);
    require_nothing_judged(factor, "out");
    CHECK(factor.json()["overflow"] == kHeads * kQLen * kDim);
  }
}

TEST_CASE("cli: check leaves out gradients that float32 does not hold") {
  struct Limit {
    std::string tensor;
    double factor;
  };
  for (const Limit& limit : {Limit{"dout", 1e38}, Limit{"v", 1e38}, Limit{"q", 1e38}}) {
    for (const DType dtype : {f32, bf16}) {
      CAPTURE(limit.tensor, to_string(dtype));
      const Ended ended = check(kGradients, dtype, [&](CallFile& file) {
        file.multiply_row(limit.tensor, 3, limit.factor);
      });
      INFO(ended.err << ended.out);
      CHECK(ended.status == 0);
      const nlohmann::json gradients = ended.json()["gradients"];
      CHECK(gradients["dq"]["overflow"] > 0);
      CHECK((limit.tensor != "dout" || gradients["dq"]["bound"] < 1));  // of the others
      CHECK(gradients["dq"]["overflow"] <= kQLen * kDim);
    }
  }
  const Ended usual = check(kGradients, f32, [](CallFile&) {});
  for (const char* const name : {"dq", "dk", "dv"}) {
    CHECK(usual.json()["gradients"][name]["overflow"] == 0);
  }
}

TEST_CASE("cli: check judges gradients in f16 whose dP is beyond its greatest number") {
  const Ended ended = check(kGradients, f16, [](CallFile& file) {
    for (std::int64_t row = 0; row < kHeads * kQLen; ++row) file.multiply_row("dout", row, 3e4);
  });
  INFO(ended.err << ended.out);
  CHECK(ended.status == 0);
}

TEST_CASE("cli: check does not say ok where nothing of a gradient was judged") {
  const Ended ended = check(kGradients, f32, [](CallFile& file) {
    for (std::int64_t row = 0; row < kHeads * kQLen; ++row) file.multiply_row("q", row, 1e9);
  });
  INFO(ended.err << ended.out);
  for (const char* const name : {"dq", "dk", "dv"}) require_nothing_judged(ended, name);
  CHECK(ended.json()["judged"] == kHeads * kQLen * kDim);
  const Ended usual = check(kGradients, f32, [](CallFile&) {});
  CHECK(usual.status == 0);
  CHECK(usual.json()["judged"] == kHeads * kQLen * kDim);
  CHECK(usual.json()["gradients"]["dk"]["judged"] == kHeads * kKvLen * kDim);
}

TEST_CASE("cli: check leaves out what an out_scale near 0 reaches") {
  for (const char* const value : {"0", "1e-40", "inf", "nan"}) {
    CAPTURE(value);
    const Ended ended =
        check(R"(, "out_dtype": "f8e4m3", "out_scale": "sa", "scalars": {"sa": {"dtype": "f32"}})",
              f32, [](CallFile&) {}, {"--scalar", std::string("sa=") + value});
    INFO(ended.err << ended.out);
    require_nothing_judged(ended, "out");
    CHECK(ended.json()["odd_scales"] == kHeads * kQLen * kDim);
    CHECK_THAT(ended.err, ContainsSubstring("note: out_scale:1:1: out_scale is "));
  }
}

TEST_CASE("cli: check judges a score_mod whose derivative overflows float32") {
  const std::string keys =
      std::string(R"j(, "score_mod": "exp(score * 100)", "mask_mod": "q_idx >= kv_idx")j") +
      kGradients;
  for (const DType dtype : {f32, bf16, f16}) {
    CAPTURE(to_string(dtype));
    // Row 0 keeps column 0 alone, whose score is 0.875: exp(87.5) is finite, 100 times it is not.
    const Ended ended = check(keys, dtype, [](CallFile& file) {
      file.multiply_row("q", 0, 0);
      file.multiply_row("k", 0, 0);
      file.set("q", 0, 0, 3.5);
      file.set("k", 0, 0, 1);
    });
    INFO(ended.err << ended.out);
    CHECK(ended.status == 0);
    CHECK(ended.json()["gradients"]["dq"]["overflow"] >= kDim);
  }
}

TEST_CASE("cli: check --expect finds NaN in what float32 holds") {
  const Folder folder;
  CallFile file(f32, false);
  file.multiply_row("q", 3, 2e38);
  const std::string spec = folder.write("s.json", spec_with(R"("dtype": "f32")"));
  const std::string inputs = file.write(folder, "in.safetensors");
  const std::string result = folder.path("out.safetensors");
  REQUIRE(on_cpu({"run", spec, "--inputs", inputs, "--outputs", result}).status == 0);
  TensorFile written = read_safetensors(result);
  for (const auto& [row, status] : {std::pair(3, 0), std::pair(4, 1)}) {
    CAPTURE(row);
    Tensor out = Tensor::copy_of(written.tensors.at("out").view());
    write_element(out.data(), f32, row * kDim + 2, -kNan);
    const std::string theirs = folder.path("theirs.safetensors");
    write_safetensors(theirs, {{"out", out.view()}});
    const Ended ended = on_cpu({"check", spec, "--inputs", inputs, "--expect", theirs});
    INFO(ended.err << ended.out);
    CHECK(ended.status == status);
    if (status == 1) CHECK_THAT(ended.out, ContainsSubstring("row 4, column 2] is nan, but"));
  }
}

TEST_CASE("cli: check --expect finds a wrong row beside one that overflows") {
  const Folder folder;
  CallFile file(f32, false);
  for (std::int64_t row = 0; row < kKvLen; ++row) file.set("v", row, 2, 3e38);
  const std::string spec = folder.write("s.json", spec_with(R"("dtype": "f32")"));
  const std::string inputs = file.write(folder, "in.safetensors");
  const std::string result = folder.path("out.safetensors");
  REQUIRE(on_cpu({"run", spec, "--inputs", inputs, "--outputs", result}).status == 0);
  TensorFile written = read_safetensors(result);
  for (const auto& [change, status] : {std::pair(0.0, 0), std::pair(0.5, 1)}) {
    CAPTURE(change);
    Tensor out = Tensor::copy_of(written.tensors.at("out").view());
    const std::int64_t at = 4 * kDim + 7;
    write_element(out.data(), f32, at, read_element(out.data(), f32, at) + change);
    const std::string theirs = folder.path("theirs.safetensors");
    write_safetensors(theirs, {{"out", out.view()}});
    const Ended ended = on_cpu(
        {"check", spec, "--inputs", inputs, "--expect", theirs, "--beside", "cpu", "--json"});
    INFO(ended.err << ended.out);
    CHECK(ended.status == status);
    CHECK(ended.json()["expected"]["ok"] == (status == 0));
    CHECK(ended.json()["expected"]["beside_ours"]["ok"] == (status == 0));
    CHECK(ended.json()["agreement"]["bound"] < 0.1);
  }
}
