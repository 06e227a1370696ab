#include "tests/compile_matrix/sass_guard.hpp"

#include <filesystem>
#include <set>

#include <unistd.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "tests/compile_matrix/sass.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/nvrtc.hpp"

using namespace tilewright;
using namespace tilewright::compile_matrix;
using Catch::Matchers::ContainsSubstring;

namespace {

const SassFigures kBefore{
    .registers = 168, .spill_bytes = 0, .shared_bytes = 512, .instructions = 1000};

SassBaseline reread(const std::string& text) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("tilewright_guard_" + std::to_string(getpid()) + ".tsv");
  write_text_file(path, text);
  try {
    const SassBaseline baseline = SassBaseline::read(path);
    std::filesystem::remove(path);
    return baseline;
  } catch (...) {
    std::filesystem::remove(path);
    throw;
  }
}

}  // namespace

TEST_CASE("SASS guard: each figure that grows is named, and a per cent of instructions may") {
  REQUIRE(growth(kBefore, kBefore).empty());
  SassFigures now = kBefore;
  now.instructions = 1010;
  REQUIRE(growth(kBefore, now).empty());
  now.instructions = 1011;
  REQUIRE(growth(kBefore, now) == std::vector<std::string>{"instructions: was 1000, is 1011"});
  now = {.registers = 169, .spill_bytes = 4, .shared_bytes = 513, .instructions = 900};
  REQUIRE(growth(kBefore, now).size() == 3);
}

TEST_CASE("SASS guard: a baseline that was written is read back equal") {
  SassBaseline baseline{.compiler = "V13.0.88",
                        .kernels = {{"causal bf16 64: forward for sm_80", kBefore}}};
  const SassBaseline again = reread(baseline.text());
  REQUIRE(again.text() == baseline.text());
  REQUIRE(again.kernels.at("causal bf16 64: forward for sm_80").instructions == 1000);
}

TEST_CASE("SASS guard: a file without figures is an error") {
  REQUIRE_THROWS_AS(reread("compiler\tV13.0.88\n"), Error);
  REQUIRE_THROWS_AS(reread("compiler\tV13.0.88\n168\t0\tmany\t1000\tcausal\n"), Error);
}

TEST_CASE("SASS guard: kernels have names that tell them apart") {
  std::set<std::string> names;
  for (const Wish& wish : guarded_wishes()) REQUIRE(names.insert(wish.describe()).second);
  REQUIRE(names.size() > 50);
}

TEST_CASE("SASS guard: instructions are counted without padding") {
  if (test::nvrtc_is_missing()) return;
  const auto count = [](const char* statement) {
    Kernel kernel = distinct_kernels({guarded_wishes().front()}).front();
    kernel.source.text =
        std::string("extern \"C\" __global__ void one(float* x) { ") + statement + " }";
    return compile(kernel).instructions;
  };
  const std::size_t empty = count("");
  REQUIRE(empty > 0);
  REQUIRE(empty < 8);
  const std::size_t store = count("x[threadIdx.x] = 1;");
  REQUIRE(store > empty);
  REQUIRE(store < empty + 16);
}

TEST_CASE("SASS guard: sines of 16-bit specs cost a score few instructions") {
  if (test::nvrtc_is_missing()) return;
  const auto count = [](const char* score_mod) {
    const Spec spec{.name = "sines", .dtype = bf16, .head_dim = 128, .score_mod = score_mod};
    const Outcome outcome =
        compile(distinct_kernels({{spec, Target::parse("sm_90a"), KernelVariant::parse("forward")}})
                    .front());
    REQUIRE(outcome.error.empty());
    return outcome.instructions;
  };
  const std::size_t plain = count("score + 1");
  // 64 scores of a thread in one loop: a product, a rounding, two multiply-adds, a product and the
  // sine.
  constexpr std::size_t kScores = 64, kMostPerScore = 8;
  CHECK(count("cos(score)") < plain + kScores * kMostPerScore);
  CHECK(count("sin(score)") < plain + kScores * kMostPerScore);
}

TEST_CASE("SASS guard: what is not an ELF file is an error") {
  REQUIRE_THROWS_AS(count_instructions({}), Error);
  REQUIRE_THROWS_AS(count_instructions(std::vector<std::byte>(256)), Error);
}
