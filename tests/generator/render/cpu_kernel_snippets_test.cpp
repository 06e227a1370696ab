#include <cmath>
#include <string>
#include <vector>

#include "templates/abi/extrema.hpp"
#include "tests/generator/cpu_kernel.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;

namespace {

struct Variant {
  std::string score_mod;
  std::string mask_mod;
  Mods mods;
};

// Spec with one buffer of each dtype and a scalar of each, and their contents.
struct Fixture {
  Spec spec{.dtype = f32, .head_dim = 32};
  CallShape shape{.batch = 2, .q_heads = 4, .kv_heads = 2, .q_len = 150, .kv_len = 170};
  std::vector<float> slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
  std::vector<std::uint16_t> half_bias, brain_bias;
  std::vector<int> document;
  std::vector<long long> wide;
  std::vector<unsigned char> bytes, flags;

  Fixture() {
    spec.outputs.lse = true;
    spec.buffers["slopes"] = {f32, {NamedDim::num_q_heads}};
    spec.buffers["half_bias"] = {f16, {NamedDim::q_len, NamedDim::kv_len}};
    spec.buffers["brain_bias"] = {bf16, {NamedDim::num_q_heads, FreeDim{}, NamedDim::kv_len}};
    spec.buffers["document"] = {i32, {NamedDim::batch, NamedDim::kv_len}};
    spec.buffers["wide"] = {i64, {FreeDim{}}};
    spec.buffers["bytes"] = {u8, {FreeDim{}}};
    spec.buffers["flags"] = {boolean, {FreeDim{}}};
    spec.scalars["cap"] = {f32, {}};
    spec.scalars["window"] = {i32, {}};
    for (int i = 0; i < 150 * 170; ++i) {
      half_bias.push_back(round_to(f16, std::sin(0.1f * static_cast<float>(i))));
    }
    for (int i = 0; i < 4 * 3 * 170; ++i) {
      brain_bias.push_back(round_to(bf16, std::cos(0.2f * static_cast<float>(i))));
    }
    for (int i = 0; i < 2 * 170; ++i) document.push_back(i % 170 / 40);
    for (int i = 0; i < 10; ++i) wide.push_back((1LL << 40) + i % 3);
    for (int i = 0; i < 10; ++i) bytes.push_back(static_cast<unsigned char>(250 + i % 5));
    for (int i = 0; i < 10; ++i) flags.push_back(i % 2 == 0 ? 0 : 1);
  }

  // In the order of names.
  std::vector<abi::BufferArgument> buffers() const {
    return {{brain_bias.data(), {4, 3, 170}, {510, 170, 1}},
            {bytes.data(), {10}, {1}},
            {document.data(), {2, 170}, {170, 1}},
            {flags.data(), {10}, {1}},
            {half_bias.data(), {150, 170}, {170, 1}},
            {slopes.data(), {4}, {1}},
            {wide.data(), {10}, {1}}};
  }
  std::vector<abi::ScalarArgument> scalars() const {
    abi::ScalarArgument cap{}, window{};
    cap.as_f32 = 3.0f;
    window.as_i32 = 60;
    return {cap, window};
  }

  void check(const Variant& variant) {
    spec.score_mod = variant.score_mod;
    spec.mask_mod = variant.mask_mod;
    Call call(spec, shape);
    call.buffers = buffers();
    call.scalars = scalars();
    std::vector<std::string> kernels = {"forward_lse"};
    kernels.push_back("forward_masked_lse");
    const BlockLists lists(spec, shape, variant.mods, shape.batch, shape.q_heads);
    for (const std::string& kernel : kernels) {
      call.run(load_kernel(spec, kernel), &lists);
      const Call::Difference difference = call.difference(variant.mods);
      CAPTURE(variant.score_mod, variant.mask_mod, kernel);
      REQUIRE(difference.out <= 1e-5);
      REQUIRE(difference.lse <= 1e-5);
    }
  }
};

Variant score_variant(std::string text, Mods::Score score) {
  Variant variant;
  variant.score_mod = std::move(text);
  variant.mods.score = std::move(score);
  return variant;
}

Variant mask_variant(std::string text, Mods::Mask mask) {
  Variant variant;
  variant.mask_mod = std::move(text);
  variant.mods.mask = std::move(mask);
  return variant;
}

}  // namespace

TEST_CASE("cpu snippets: score_mods with buffers, scalars, locals, branches, loops and lambdas") {
  Fixture f;
  const std::vector<Variant> variants = {
      score_variant("return score + slopes[h] * (kv_idx - q_idx);",
                    [&](double s, int, int h, int q, int kv) {
                      return s + f.slopes[static_cast<std::size_t>(h)] * static_cast<float>(kv - q);
                    }),
      score_variant("cap * tanh(score / cap)",
                    [](double s, int, int, int, int) { return 3 * std::tanh(s / 3); }),
      score_variant("score + half_bias(q_idx, kv_idx) - 0.5 * brain_bias(h, 2, kv_idx)",
                    [&](double s, int, int h, int q, int kv) {
                      const auto i = static_cast<std::size_t>(q * 170 + kv);
                      const auto j = static_cast<std::size_t>(h * 510 + 340 + kv);
                      return s + widen(f16, f.half_bias[i]) - 0.5 * widen(bf16, f.brain_bias[j]);
                    }),
      // Indices outside the extents are clamped.
      score_variant("score + half_bias(q_idx - 100, 3 * kv_idx)",
                    [&](double s, int, int, int q, int kv) {
                      const int i = std::max(q - 100, 0), j = std::min(3 * kv, 169);
                      return s + widen(f16, f.half_bias[static_cast<std::size_t>(i * 170 + j)]);
                    }),
      score_variant("score + 0.01f * brain_bias.size(1) + (kv_len - q_len) / (double)num_q_heads",
                    [](double s, int, int, int, int) { return s + 0.03 + 5.0; }),
      score_variant("if (score < 0) return 0.1 * score; return score;",
                    [](double s, int, int, int, int) { return s < 0 ? 0.1 * s : s; }),
      score_variant("float x = score; for (int i = 0; i < 3; ++i) x += 0.5f * x; return x;",
                    [](double s, int, int, int, int) { return s * 3.375; }),
      score_variant(
          "auto silu = [](float t) { return t / (1.0f + expf(-t)); }; return silu(score);",
          [](double s, int, int, int, int) { return s / (1 + std::exp(-s)); }),
      score_variant("double d = abs(q_idx - kv_idx); return score - log2(1.0 + d) * h_kv;",
                    [](double s, int, int h, int q, int kv) {
                      return s - std::log2(1.0 + std::abs(q - kv)) * (h / 2);
                    }),
      score_variant("score * (1 + 0.2 * sin(q_idx - kv_idx) * cos(0.5 * kv_idx)) // the end",
                    [](double s, int, int, int q, int kv) {
                      return s * (1 + 0.2 * std::sin(q - kv) * std::cos(0.5 * kv));
                    }),
      score_variant("clamp(score, -1, 1) + exp(-fabs(score)) + sqrt(fmax(score, 0.0f)) + "
                    "min(q_idx, 3) + select(kv_idx > 4, 1.0f, 0.5f) + floor(score) + pow(2, 0.5)",
                    [](double s, int, int, int q, int kv) {
                      return std::min(std::max(s, -1.0), 1.0) + std::exp(-std::fabs(s)) +
                             std::sqrt(std::max(s, 0.0)) + std::min(q, 3) + (kv > 4 ? 1 : 0.5) +
                             std::floor(s) + std::sqrt(2.0);
                    }),
      score_variant("score += 1; float h2 = h; return score * h2 / 4;",
                    [](double s, int, int h, int, int) { return (s + 1) * h / 4; }),
  };
  for (const Variant& variant : variants) f.check(variant);
}

TEST_CASE("cpu snippets: mask_mods with buffers of every type") {
  Fixture f;
  const auto at = [](const auto& values, int i) {
    return values[static_cast<std::size_t>(
        std::min(std::max(i, 0), static_cast<int>(values.size()) - 1))];
  };
  const std::vector<Variant> variants = {
      mask_variant("q_idx >= kv_idx && document(b, q_idx) == document(b, kv_idx)",
                   [&](int b, int, int q, int kv) {
                     return q >= kv && f.document[static_cast<std::size_t>(b * 170 + q)] ==
                                           f.document[static_cast<std::size_t>(b * 170 + kv)];
                   }),
      mask_variant("if (q_idx < kv_idx) return false; return q_idx - kv_idx < window;",
                   [](int, int, int q, int kv) { return q >= kv && q - kv < 60; }),
      mask_variant("wide[kv_idx] % 3 != wide[q_idx % 10] % 3 || kv_idx == 0",
                   [&](int, int, int q, int kv) {
                     return at(f.wide, kv) % 3 != at(f.wide, q % 10) % 3 || kv == 0;
                   }),
      mask_variant("bytes[kv_idx % 7] > 251 || flags[(q_idx + kv_idx) % 9]",
                   [&](int, int, int q, int kv) {
                     return at(f.bytes, kv % 7) > 251 || at(f.flags, (q + kv) % 9) != 0;
                   }),
      mask_variant(
          "kv_idx < 10 || (q_idx / 16 == kv_idx / 16 && h != 1)",
          [](int, int h, int q, int kv) { return kv < 10 || (q / 16 == kv / 16 && h != 1); }),
  };
  for (const Variant& variant : variants) f.check(variant);
}

TEST_CASE("cpu snippets: precise_math gives the C library's functions") {
  Fixture f;
  f.spec.precise_math = true;
  f.check(score_variant("cap * tanh(score / cap) + sin(score)", [](double s, int, int, int, int) {
    return 3 * std::tanh(s / 3) + std::sin(s);
  }));
}

TEST_CASE("cpu snippets: the exact block mask is what every element says") {
  Fixture f;
  // The last tiles of kv are ragged, and some of them full.
  f.spec.mask_mod =
      "kv_idx >= 126 ? q_idx > 40 : q_idx >= kv_idx && q_idx - kv_idx < 50 + window + 10 * h - 20 "
      "* b";
  f.spec.block = {GENERATE(16, 48), GENERATE(16, 64)};
  f.shape.q_offset = 7;
  Mods mods;
  mods.mask = [](int b, int h, int q, int kv) {
    return kv >= 126 ? q > 40 : q >= kv && q - kv < 110 + 10 * h - 20 * b;
  };
  Call call(f.spec, f.shape);
  call.buffers = f.buffers();
  call.scalars = f.scalars();
  const BlockLists lists(f.spec, f.shape, mods, f.shape.batch, f.shape.q_heads);
  const auto list =
      load_kernel(f.spec, "mask_exact")
          .symbol<int (*)(const abi::SnippetArguments*, const abi::ExtremaTables*, int, int, int,
                          unsigned*, long long*)>("tilewright_mask_row");
  const abi::SnippetArguments arguments = call.snippet_arguments();
  const int kv_blocks =
      (f.shape.kv_len + static_cast<int>(f.spec.block[1]) - 1) / static_cast<int>(f.spec.block[1]);
  std::vector<int> partial, full;
  for (int b = 0; b < f.shape.batch; ++b) {
    for (int h = 0; h < f.shape.q_heads; ++h) {
      for (int q_block = 0; q_block < lists.q_blocks; ++q_block) {
        std::vector<unsigned> runs(static_cast<std::size_t>(kv_blocks));
        long long evaluated = 0;
        runs.resize(static_cast<std::size_t>(
            list(&arguments, nullptr, b, h, q_block, runs.data(), &evaluated)));
        CHECK(evaluated == kv_blocks);
        int tile = 0;
        for (const unsigned run : runs) {
          for (; tile < static_cast<int>(run >> 2); ++tile) {
            if ((run & 3) == abi::kTilePartial) partial.push_back(tile);
            if ((run & 3) == abi::kTileFull) full.push_back(tile);
          }
        }
      }
    }
  }
  CHECK(partial == lists.indices);
  CHECK(full == lists.full_indices);
  CHECK(!full.empty());
}

TEST_CASE("cpu snippets: a proof that divides by a size that && guards") {
  Fixture f;
  f.spec.mask_mod =
      "(slopes.size(0) > 4 && kv_idx > 100 / (slopes.size(0) - 4)) ||"
      "(wide.size(0) > 10 && kv_idx > 100 / (wide.size(0) - 10)) || q_idx >= kv_idx";
  f.spec.block = {64, 64};
  Call call(f.spec, f.shape);
  call.buffers = f.buffers();
  call.scalars = f.scalars();
  const auto list =
      load_kernel(f.spec, "mask_proved")
          .symbol<int (*)(const abi::SnippetArguments*, const abi::ExtremaTables*, int, int, int,
                          unsigned*, long long*)>("tilewright_mask_row");
  const abi::SnippetArguments arguments = call.snippet_arguments();
  const abi::ExtremaTables tables = {};
  unsigned runs[3] = {};
  long long evaluated = 0;
  REQUIRE(list(&arguments, &tables, 0, 0, 0, runs, &evaluated) > 0);
  CHECK(runs[0] >> 2 == 1);
  CHECK((runs[0] & 3) == abi::kTilePartial);
  CHECK(evaluated == 1);
}
