#include "base/float_environment.hpp"

#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "generator/spec/spec_json.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/float_modes.hpp"

using namespace tilewright;
using test::float_modes;
using test::FloatMode;

namespace {

constexpr std::int64_t kHeads = 2, kRows = 70, kKeys = 90, kDim = 32;

struct Result {
  std::vector<float> out;
  std::vector<float> lse;
  std::vector<std::int32_t> tiles;
};

struct Inputs {
  std::vector<float> q, k, v, bias;
};

// Made once, as the test's own arithmetic follows the mode.
const Inputs& inputs() {
  static const Inputs made = [] {
    std::vector<float> q(kHeads * kRows * kDim), k(kHeads * kKeys * kDim), v(k.size());
    std::vector<float> bias(kKeys);
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = static_cast<float>(i % 37) / 16 - 1;
    for (std::size_t i = 0; i < k.size(); ++i) {
      k[i] = static_cast<float>(i % 29) / 16 - 1;
      v[i] = i % 3 == 0 ? 1e-40f * static_cast<float>(i % 11) : static_cast<float>(i % 31) / 32;
    }
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i % 13) / 4 - 1;
    return Inputs{q, k, v, bias};
  }();
  return made;
}

// Scores of every size, also subnormal ones, through a mask that float arithmetic decides.
Result run(ThreadPool& threads) {
  const Attention attention(
      {.dtype = f32,
       .head_dim = kDim,
       .score_mod = "score / 3 + tanh(bias[kv_idx]) * cap + exp(-100 - score * 4)",
       .mask_mod = "bias[kv_idx] / 3.0 + q_idx * 0.1 > cap - 7",
       .buffers = {{"bias", {.dtype = f32, .shape = {NamedDim::kv_len}}}},
       .scalars = {{"cap", {.dtype = f32}}},
       .block = {16, 16},
       .outputs = {.lse = true}},
      {.device = Device::cpu(), .threads = &threads});
  auto [q, k, v, bias] = inputs();
  Result result{std::vector<float>(q.size()), std::vector<float>(kHeads * kRows), {}};
  const auto view = [](std::vector<float>& x, std::int64_t rows) {
    return TensorView::contiguous(x.data(), f32, {1, kHeads, rows, kDim});
  };
  const Bindings bindings =
      attention.bind({.buffers = {{"bias", TensorView::contiguous(bias.data(), f32, {kKeys})}},
                      .scalars = {{"cap", 0.1}}});
  const BlockMask mask = attention.block_mask(
      {.num_q_heads = kHeads, .num_kv_heads = kHeads, .q_len = kRows, .kv_len = kKeys}, bindings);
  attention.forward({.q = view(q, kRows),
                     .k = view(k, kKeys),
                     .v = view(v, kKeys),
                     .out = view(result.out, kRows),
                     .lse = TensorView::contiguous(result.lse.data(), f32, {1, kHeads, kRows})},
                    mask, bindings, {.scale = 0.1});
  result.tiles = mask.on_host()->lists.indices;
  return result;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.empty() || a.size() != b.size()) return a.empty() && b.empty();
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace

TEST_CASE("floating-point environment: a call gives the same bits in every one and leaves it") {
  ThreadPool alone(1);
  const Result wanted = run(alone);
  REQUIRE_FALSE(std::isnan(wanted.out[0]));
  for (const FloatMode& mode : float_modes()) {
    CAPTURE(mode.name);
    const test::InFloatMode inside(mode);
    // Threads inherit the mode of the one that starts them.
    ThreadPool threads(3);
    for (ThreadPool* pool : {&alone, &threads}) {
      const test::FloatControl before = test::float_control();
      const Result got = run(*pool);
      const test::FloatControl after = test::float_control();
      CHECK(before == after);
      CHECK(same_bits(got.out, wanted.out));
      CHECK(same_bits(got.lse, wanted.lse));
      CHECK(same_bits(got.tiles, wanted.tiles));
    }
  }
}

TEST_CASE("floating-point environment: bodies of a loop run in the default one") {
  for (const FloatMode& mode : float_modes()) {
    CAPTURE(mode.name);
    const test::InFloatMode inside(mode);
    ThreadPool threads(3);
    std::vector<int> rounding(64, -1);
    std::vector<float> smallest(64);
    threads.parallel_for(64, [&](std::int64_t item, int) {
      volatile float tiny = std::numeric_limits<float>::min();
      smallest[static_cast<std::size_t>(item)] = tiny / 2;
      rounding[static_cast<std::size_t>(item)] = std::fegetround();
    });
    CHECK(rounding == std::vector<int>(64, FE_TONEAREST));
    CHECK(same_bits(smallest, std::vector<float>(64, 0x1p-127f)));
  }
}

TEST_CASE(
    "floating-point environment: numbers of a spec and of tensors are the same in every one") {
  const std::string text =
      R"({"dtype": "bf16", "head_dim": 64, "scale": 0.1, "score_mod": "score * 0.1",
          "scalars": {"cap": {"dtype": "f32", "default": 0.30000001192092896}}})";
  const Spec wanted = spec_from_json(text);
  const double values[] = {
      0.1,     1e-40,  -1e-44, 3.0e38, 65504.1, 65519.9,
      5.96e-8, 2.9e-8, 1e-310, 1.5e-5, -7.2e-6, 6.1e-5,
      0.5,     2.5,    -3.5,   1e300,  0.0,     std::numeric_limits<double>::infinity()};
  const auto stored = [&](DType dtype) {
    std::vector<double> result;
    for (const double value : values) {
      alignas(8) unsigned char memory[8] = {};
      write_element(memory, dtype, 0, value);
      result.push_back(read_element(memory, dtype, 0));
    }
    return result;
  };
  const DType dtypes[] = {f32, f16, bf16, i32, u8};
  std::vector<std::vector<double>> expected;
  for (const DType dtype : dtypes) expected.push_back(stored(dtype));
  for (const FloatMode& mode : float_modes()) {
    CAPTURE(mode.name);
    std::vector<std::vector<double>> got;
    Spec spec;
    std::string json;
    {
      const test::InFloatMode inside(mode);
      spec = spec_from_json(text);
      json = to_json(spec);
      for (const DType dtype : dtypes) got.push_back(stored(dtype));
    }
    CHECK(spec == wanted);
    CHECK(json == to_json(wanted));
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
  }
}

TEST_CASE("floating-point environment: a guard nests and survives exceptions") {
  const int before = std::fegetround();
  std::fesetround(FE_UPWARD);
  try {
    const DefaultFloatEnvironment outer;
    CHECK(std::fegetround() == FE_TONEAREST);
    {
      const DefaultFloatEnvironment inner;
      CHECK(std::fegetround() == FE_TONEAREST);
    }
    CHECK(std::fegetround() == FE_TONEAREST);
    throw 1;
  } catch (int) {
  }
  CHECK(std::fegetround() == FE_UPWARD);
  std::fesetround(before);
}
