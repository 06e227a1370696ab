// Buffers without dimensions and of five, and truths in memory, in every interpretation and kernel
// of a CPU.

#include <string>
#include <vector>

#include "templates/abi/extrema.hpp"
#include "tests/generator/evaluate.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;

namespace {

struct Buffers {
  float gain = 0.25f;
  long long wide = (1LL << 40) + 3;
  unsigned char flag = 255;
  std::vector<float> deep;  // [2, 3, 4, 5, 6]: element i is i
  std::vector<unsigned char> truths = {0, 255, 2, 1, 128, 0};

  Buffers() {
    for (int i = 0; i < 2 * 3 * 4 * 5 * 6; ++i) deep.push_back(static_cast<float>(i));
  }

  // In the order of names.
  std::vector<abi::BufferArgument> arguments() const {
    return {{deep.data(), {2, 3, 4, 5, 6}, {360, 120, 30, 6, 1}},
            {&flag, {}, {}},
            {&gain, {}, {}},
            {truths.data(), {6}, {1}},
            {&wide, {}, {}}};
  }

  static Spec spec() {
    Spec spec{.dtype = f32, .head_dim = 16};
    spec.buffers["deep"] = {f32, {2, 3, 4, 5, FreeDim{}}};
    spec.buffers["flag"] = {boolean, {}};
    spec.buffers["gain"] = {f32, {}};
    spec.buffers["truths"] = {boolean, {FreeDim{}}};
    spec.buffers["wide"] = {i64, {}};
    return spec;
  }
};

constexpr const char* kScoreMod =
    "score * gain + deep(h + 1, 2, kv_idx - 40, q_idx, 5) * 0.01f + (truths[kv_idx] + flag) * "
    "(wide % 5)";
constexpr const char* kMaskMod =
    "truths[kv_idx] == flag && wide > 1099511627776ll && gain < 1 && deep(0, 0, 0, 0, 1) == 1";

double expected(double score, int q, int kv) {
  const int row = std::min(std::max(kv - 40, 0), 3), column = std::min(q, 4);
  const int truth = std::min(kv, 5) % 5 != 0 ? 1 : 0;
  const long long wide = ((1LL << 40) + 3) % 5;
  return score * 0.25 + 0.01 * (360 + 240 + row * 30 + column * 6 + 5) +
         static_cast<double>((truth + 1) * wide);
}

bool is_kept(int kv) {
  return std::min(kv, 5) % 5 != 0;
}

}  // namespace

TEST_CASE("buffer kinds: no dimensions, five dimensions and truths, in every interpretation") {
  Spec spec = Buffers::spec();
  spec.score_mod = kScoreMod;
  spec.mask_mod = kMaskMod;
  const Buffers buffers;
  const std::vector<abi::BufferArgument> all = buffers.arguments();
  abi::SnippetArguments arguments = arguments_of(8, 50);
  arguments.buffers = all.data();
  const Row rows[] = {evaluate<float>(spec, "evaluate_float", arguments, 3, 1),
                      evaluate<double>(spec, "evaluate_double", arguments, 3, 1),
                      evaluate<float>(spec, "evaluate_checked", arguments, 3, 1)};
  for (const Row& row : rows) {
    for (int kv = 0; kv < 50; ++kv) {
      const auto i = static_cast<std::size_t>(kv);
      CHECK_THAT(row.modified[i], Catch::Matchers::WithinRel(expected(1, 3, kv), 1e-6));
      CHECK(row.keep[i] == is_kept(kv));
    }
  }
}

TEST_CASE("buffer kinds: the forward kernel reads them, ahead of its loops or in them") {
  const char* const score_mods[] = {
      kScoreMod,
      // A name that is declared again keeps reads from being done ahead.
      "{ int b = 0; (void)b; } return score * gain + deep(h + 1, 2, kv_idx - 40, q_idx, 5) * 0.01f "
      "+ (truths[kv_idx] + flag) * (wide % 5);"};
  for (const char* score_mod : score_mods) {
    Spec spec = Buffers::spec();
    spec.outputs.lse = true;
    spec.score_mod = score_mod;
    spec.mask_mod = kMaskMod;
    const Buffers buffers;
    const CallShape shape{.q_len = 40, .kv_len = 60};
    Call call(spec, shape);
    call.buffers = buffers.arguments();
    Mods mods;
    mods.score = [](double s, int, int, int q, int kv) { return expected(s, q, kv); };
    mods.mask = [](int, int, int, int kv) { return is_kept(kv); };
    const BlockLists lists(spec, shape, mods, 1, 1);
    call.run(load_kernel(spec, "forward_masked_lse"), &lists);
    const Call::Difference difference = call.difference(mods);
    CHECK(difference.out <= 1e-5);
    CHECK(difference.lse <= 1e-5);
  }
}

TEST_CASE("buffer kinds: truths and numbers without dimensions prove tiles of a block mask") {
  Spec spec = Buffers::spec();
  spec.mask_mod =
      "(truths[kv_idx] + 0 == 1 && flag + 0 == 1 && wide == 1099511627779ll) || gain > 2";
  spec.block = {16, 16};
  std::vector<unsigned char> truths(48, 255);
  std::fill(truths.begin() + 16, truths.begin() + 32, static_cast<unsigned char>(0));
  const Buffers buffers;
  std::vector<abi::BufferArgument> all = buffers.arguments();
  all[3] = {truths.data(), {48}, {1}};
  abi::SnippetArguments arguments = arguments_of(16, 48);
  arguments.buffers = all.data();
  const CompiledText kernel = load_kernel(spec, "mask_proved");
  std::vector<long long> table(64);
  abi::ExtremaTables tables = {};
  tables.entries[0] = table.data();
  kernel.symbol<void (*)(const abi::SnippetArguments*, const abi::ExtremaTables*, int, long long)>(
      "tilewright_mask_extrema")(&arguments, &tables, 0, 0);
  unsigned runs[3] = {};
  long long evaluated = 0;
  const int count = kernel.symbol<int (*)(const abi::SnippetArguments*, const abi::ExtremaTables*,
                                          int, int, int, unsigned*, long long*)>(
      "tilewright_mask_row")(&arguments, &tables, 0, 0, 0, runs, &evaluated);
  // gain is a float and proves nothing, so no tile is empty by proof.
  REQUIRE(count == 3);
  CHECK((runs[0] & 3) == abi::kTileFull);
  CHECK((runs[1] & 3) == abi::kTileEmpty);
  CHECK((runs[2] & 3) == abi::kTileFull);
  CHECK(evaluated == 1);
}
