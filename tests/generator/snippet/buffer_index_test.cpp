// What an index reads, whatever its type and value, in every interpretation.

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "tests/generator/evaluate.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;

namespace {

struct Index {
  const char* text;
  int cell;  // of five
};

// `q_idx` is 3 and `kv_idx` 0, 1, ... at run time.
constexpr Index kIndices[] = {
    {"NAN", 0},
    {"log2(kv_idx - 9.0)", 0},
    {"sqrt(-1.0 - kv_idx)", 0},
    {"0.0 / (kv_idx * 0.0)", 0},
    {"INFINITY", 4},
    {"-INFINITY", 0},
    {"1.0 / (kv_idx * 0.0)", 4},
    {"-0.5", 0},
    {"-0.0", 0},
    {"2.9", 2},
    {"q_idx + 0.5", 3},
    {"4.99", 4},
    {"5.0", 4},
    {"16777217.0", 4},
    {"2147483648.0", 4},
    {"4294967297.0", 4},
    {"-4294967295.0", 0},
    {"1e30", 4},
    {"-1e30", 0},
    {"1u", 1},
    {"4294967295u", 4},
    {"18446744073709551615ull", 4},
    {"(unsigned long long)(q_idx - 4)", 4},
    {"(unsigned)(q_idx - 4)", 4},
    {"4294967296ll", 4},
    {"4294967297ll * (q_idx - 2)", 4},
    {"-4294967295ll", 0},
    {"9223372036854775807ll", 4},
    {"-9223372036854775807ll - 1", 0},
    {"true", 1},
    {"q_idx > 3", 0},
    {"(char)2", 2},
    {"(short)(q_idx - 9)", 0},
    {"(unsigned char)200", 4},
};

constexpr float kTable[] = {10, 20, 30, 40, 50};
constexpr float kPairs[] = {0, 1, 2, 3, 4, 10, 11, 12, 13, 14};  // [2, 5]
const abi::BufferArgument kBuffers[] = {{kPairs, {2, 5}, {5, 1}}, {kTable, {5}, {1}}};

Spec spec_of(Bounds bounds = Bounds::clamped) {
  Spec spec{.dtype = f32, .head_dim = 16};
  spec.buffers["pairs"] = {f32, {FreeDim{}, FreeDim{}}, bounds};
  spec.buffers["table"] = {f32, {FreeDim{}}, bounds};
  return spec;
}

abi::SnippetArguments arguments() {
  abi::SnippetArguments arguments = arguments_of(4, 3);
  arguments.buffers = kBuffers;
  return arguments;
}

std::vector<Row> in_every_interpretation(const Spec& spec) {
  return {evaluate<float>(spec, "evaluate_float", arguments(), 3, 0),
          evaluate<double>(spec, "evaluate_double", arguments(), 3, 0),
          evaluate<float>(spec, "evaluate_checked", arguments(), 3, 0)};
}

}  // namespace

TEST_CASE("buffer index: the nearest cell, and cell 0 for a NaN, in every interpretation") {
  // One kernel for all, as compiling takes long: each index in each place.
  std::string text = "float sum = 0;\n";
  double expected = 0;
  for (const Index& index : kIndices) {
    const std::string i(index.text);
    text += "sum += table[" + i + "] + pairs(1, " + i + ") + pairs(" + i + ", q_idx);\n";
    expected += 10 * (index.cell + 1) + (10 + index.cell) + (index.cell == 0 ? 3 : 13);
  }
  Spec spec = spec_of();
  spec.score_mod = text + "return sum;";
  spec.mask_mod = text + "return sum == " + std::to_string(static_cast<int>(expected)) + ".0;";
  for (const Row& row : in_every_interpretation(spec)) {
    CHECK(row.modified == std::vector<double>(3, expected));
    CHECK(row.keep == std::vector<int>{1, 1, 1});
  }
}

TEST_CASE("buffer index: each index alone, in float") {
  // A score of its own for each, so that a wrong one is named.
  std::string text = "int n = 0;\n";
  for (const Index& index : kIndices) {
    text += "if (table[" + std::string(index.text) +
            "] != " + std::to_string(10 * (index.cell + 1)) + ".0f) return " +
            std::to_string(&index - kIndices + 1) + ";\n";
  }
  Spec spec = spec_of();
  spec.score_mod = text + "return n;";
  for (const Row& row : in_every_interpretation(spec)) {
    const auto wrong = static_cast<std::size_t>(row.modified[0]);
    INFO((wrong == 0 ? "none" : kIndices[wrong - 1].text));
    CHECK(wrong == 0);
  }
}

TEST_CASE("buffer index: a float reads the last of more elements than a float can count") {
  constexpr int kCount = 16777220;
  std::vector<unsigned char> data(kCount + 4, 99);
  data[kCount - 1] = 7;
  Spec spec{.dtype = f32, .head_dim = 16};
  spec.buffers["x"] = {u8, {FreeDim{}}};
  spec.score_mod = "x[kv_idx + 16777220.0] + x[16777220] + x[1e10]";
  const abi::BufferArgument buffers[] = {{data.data(), {kCount}, {1}}};
  abi::SnippetArguments call = arguments();
  call.buffers = buffers;
  CHECK(evaluate<float>(spec, "evaluate_float", call, 3, 0).modified[0] == 21);
  CHECK(evaluate<double>(spec, "evaluate_double", call, 3, 0).modified[0] == 21);
  CHECK(evaluate<float>(spec, "evaluate_checked", call, 3, 0).modified[0] == 21);
}

TEST_CASE("buffer index: the forward kernel reads as the reference does") {
  Spec spec = spec_of();
  spec.outputs.lse = true;
  spec.score_mod = "score + table[log2(q_idx - kv_idx + 1)] + pairs(sqrt(kv_idx - 5.0), 1e12)";
  spec.mask_mod =
      "table[0.0 / (q_idx - kv_idx)] < 15 && kv_idx % 2 == pairs(NAN, kv_idx - q_idx)"
      " * 0 + kv_idx % 2";
  const CallShape shape{.q_len = 70, .kv_len = 90};
  Call call(spec, shape);
  call.buffers = {kBuffers[0], kBuffers[1]};
  Mods mods;
  mods.score = [](double s, int, int, int q, int kv) {
    const double log = q - kv + 1 > 0 ? std::log2(q - kv + 1) : 0;
    const int row = kv - 5 < 1 ? 0 : 1;
    return s + kTable[static_cast<int>(std::min(log, 4.0))] + kPairs[row * 5 + 4];
  };
  const BlockLists lists(spec, shape, mods, 1, 1);
  call.run(load_kernel(spec, "forward_masked_lse"), &lists);
  const Call::Difference difference = call.difference(mods);
  CHECK(difference.out <= 1e-5);
  CHECK(difference.lse <= 1e-5);
}

TEST_CASE(
    "buffer index: the checked interpretation tells a NaN and a float outside, with the line") {
  Spec spec = spec_of();
  spec.score_mod =
      "float a = table[log2(kv_idx - 9.0)];\nreturn a + table[kv_idx + 1e10] +\n"
      " pairs(-0.5, 18446744073709551615ull) + table[4.5];";
  const std::vector<Found> found = check(spec, arguments());
  REQUIRE(found.size() == 3);
  CHECK(found[0].finding.kind == abi::Finding::index_not_a_number);
  CHECK(found[0].finding.operand[1] == 5);
  CHECK(found[0].origin.line == 1);
  CHECK(found[1].finding.kind == abi::Finding::real_index_out_of_bounds);
  CHECK(std::bit_cast<double>(found[1].finding.operand[0]) == 1e10);
  CHECK(found[1].origin.line == 2);
  CHECK(found[2].finding.kind == abi::Finding::index_out_of_bounds);
  CHECK(found[2].finding.operand[0] == 9223372036854775807LL);
  spec.score_mod = {};
  spec.mask_mod = "pairs(0, NAN) == 0";
  const std::vector<Found> in_mask = check(spec, arguments());
  REQUIRE(in_mask.size() == 1);
  CHECK(in_mask[0].finding.snippet == abi::kMaskMod);
}

TEST_CASE("buffer index: size() of a dimension that is known at run time only is clamped") {
  Spec spec = spec_of();
  spec.score_mod =
      "pairs.size(kv_idx * 7 - 7) * 100 + table.size(kv_idx * 100000000) * 10 + "
      "pairs.size(NAN) + pairs.size(kv_idx + 0.5)";
  for (const Row& row : in_every_interpretation(spec)) {
    CHECK(row.modified ==
          std::vector<double>{200 + 50 + 2 + 2, 200 + 50 + 2 + 5, 500 + 50 + 2 + 5});
  }
  spec.score_mod = "score +\n table.size(q_idx - kv_idx)";
  const std::vector<Found> found = check(spec, arguments());
  REQUIRE(found.size() == 1);
  CHECK(found[0].finding.kind == abi::Finding::dimension_out_of_range);
  CHECK(found[0].finding.operand[0] == 3);
  CHECK(found[0].finding.operand[1] == 1);
  CHECK(found[0].origin.line == 2);
}
