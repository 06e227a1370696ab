#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cache/store.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/library/kernel_library.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

Toolchain fresh_context() {
  return {.store = std::make_shared<cache::Store>(cache::Store::Options{})};
}

Attention masks(const std::string& mask_mod, const Toolchain& toolchain = {}) {
  return Attention({.dtype = f32, .head_dim = 16, .mask_mod = mask_mod, .block = {64, 64}},
                   {.device = Device::cpu(), .kernels = toolchain, .masks_only = true});
}

constexpr Shape kLong = {.q_len = 64 * 256, .kv_len = 64 * 256};

}  // namespace

TEST_CASE("proved mask: only the edge of a causal window is evaluated") {
  const BlockMask mask = masks("q_idx >= kv_idx && q_idx - kv_idx < 640").block_mask(kLong);
  REQUIRE(mask.path() == "proved");
  REQUIRE(mask.partial_tiles() == 256 + 246);
  REQUIRE(mask.tiles_evaluated() == mask.partial_tiles());
}

TEST_CASE(
    "proved mask: a snippet that intervals do not understand is evaluated, with one attempt") {
  const Toolchain toolchain = fresh_context();
  const std::string wide =
      "long distance = q_idx - kv_idx; return distance >= 0 && distance < 640;";
  const BlockMask mask = masks(wide, toolchain).block_mask(kLong);
  REQUIRE(mask.path() == "exact");
  REQUIRE(mask.tiles_evaluated() == 256 * 256);
  REQUIRE(mask.lists() ==
          masks("q_idx >= kv_idx && q_idx - kv_idx < 640").block_mask(kLong).lists());

  const Attention again = masks(wide, toolchain);
  REQUIRE(again.builds().front().kernel == "mask_exact");
  const Spec& spec = again.spec();
  const KernelBinary attempt =
      build_kernel(spec, Target::host_cpu(), KernelVariant::parse("mask_proved"), toolchain);
  REQUIRE(!attempt.compiles());
  REQUIRE(attempt.build.source == "memory");
  REQUIRE(attempt.entry->metadata.at("outcome") == "does not compile, mask_exact serves");
}

TEST_CASE("proved mask: a float that becomes an int is no hindrance, and proves nothing itself") {
  const Spec base{.dtype = f32,
                  .head_dim = 16,
                  .buffers = {{"bias", {.dtype = f32, .shape = {NamedDim::kv_len}}}},
                  .scalars = {{"cap", {.dtype = f32, .default_value = 2.5}}},
                  .block = {64, 64}};
  // Each with what proves tiles.
  for (const char* const mask :
       {"int w = 2.5; return q_idx - kv_idx < w + 0 * q_idx && q_idx >= kv_idx;",
        "int w = cap; return q_idx >= kv_idx && kv_idx > w;",
        "int w = 3; w = 2.5; return q_idx >= kv_idx && kv_idx > w;",
        "int w = q_idx / 2.0; return q_idx >= kv_idx && kv_idx > w;",
        "int w = bias[kv_idx]; return q_idx >= kv_idx && w < 5;",
        "const auto f = [](int x) { return x + 1; }; return q_idx >= kv_idx && kv_idx > f(2.5);",
        "int w = abs(-2.5); return q_idx >= kv_idx && kv_idx > w;",
        "int w = clamp(q_idx, 0.5, 10); return q_idx >= kv_idx && kv_idx > w;",
        "int w = q_idx > 3 ? 2.5 : kv_idx; return q_idx >= kv_idx && w >= 0;",
        "int w = 3; w = w > 2 ? w * 0.5 : w; return q_idx >= kv_idx && kv_idx > w;",
        "float w = q_idx; w++; --w; return q_idx >= kv_idx && w >= 0;",
        "float w = q_idx > 3 ? kv_idx : 0.5 * cap; return q_idx >= kv_idx && w >= 0;"}) {
    CAPTURE(mask);
    Spec spec = base;
    spec.mask_mod = mask;
    const Attention attention(spec, {.device = Device::cpu(), .masks_only = true});
    std::vector<float> bias(400, 1.0f);
    const Bindings bindings =
        attention.bind({.buffers = {{"bias", TensorView::contiguous(bias.data(), f32, {400})}}});
    const BlockMask block_mask = attention.block_mask({.q_len = 400, .kv_len = 400}, bindings);
    CHECK(block_mask.path() == "proved");
    CHECK(block_mask.tiles_evaluated() < 49);  // of 7 x 7
  }
}

TEST_CASE("proved mask: a snippet of which nothing is known is evaluated without an attempt") {
  const Attention attention = masks("unsigned distance = q_idx - kv_idx; return distance < 640u;");
  REQUIRE(attention.builds().front().kernel == "mask_exact");
  REQUIRE(attention.block_mask(kLong).path() == "exact");
}

TEST_CASE("proved mask: a snippet that changes a variable behind && is evaluated") {
  constexpr Shape kShape = {.q_len = 300, .kv_len = 300};
  const Attention attention =
      masks("int last = -1; (q_idx >= 64) && (last += 4); return last < 0;");
  REQUIRE(attention.builds().front().kernel == "mask_exact");
  const BlockMask mask = attention.block_mask(kShape);
  REQUIRE(mask.path() == "exact");
  REQUIRE(mask.full_tiles() == 5);
  REQUIRE(mask.lists() == masks("q_idx < 64").block_mask(kShape).lists());
}

TEST_CASE("proved mask: that a snippet does not compile for intervals is kept on disk") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "tilewright_proved_mask_test";
  std::filesystem::remove_all(folder);
  for (const char* source : {"built", "disk"}) {
    const Toolchain toolchain = {
        .store = std::make_shared<cache::Store>(cache::Store::Options{.directory = folder})};
    const KernelBinary binary = build_kernel(
        Spec{.dtype = f32, .head_dim = 16, .mask_mod = "unsigned k = kv_idx; return k < 9u;"},
        Target::host_cpu(), KernelVariant::parse("mask_proved"), toolchain);
    REQUIRE(!binary.compiles());
    REQUIRE(binary.build.source == source);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("proved mask: an error of the snippet is reported at its own place") {
  try {
    masks("q_idx >= kv_idxx");
    FAIL("accepted");
  } catch (const Error& error) {
    REQUIRE(error.code() == ErrorCode::snippet);
    REQUIRE(error.place()->file == "mask_mod");
    REQUIRE(error.place()->column == 10);
  }
}

TEST_CASE("proved mask: time follows the rows, not the square of the length") {
  const Attention attention = masks("q_idx >= kv_idx && q_idx - kv_idx < 4096");
  constexpr Shape kMillion = {.q_len = 1 << 20, .kv_len = 1 << 20};
  const BlockMask mask = attention.block_mask(kMillion);
  REQUIRE(mask.rows() == 16384);
  REQUIRE(mask.tiles_evaluated() == mask.partial_tiles());
  REQUIRE(mask.partial_tiles() == 16384 + 16384 - 64);
}

TEST_CASE("proved mask: an Attention for masks alone refuses forward") {
  const Attention attention = masks("q_idx >= kv_idx");
  REQUIRE(attention.builds().size() == 1);
  REQUIRE_THROWS_AS(attention.forward({}), Error);
}

TEST_CASE("proved mask: rebuild lists the tiles of new contents") {
  Attention attention({.dtype = f32,
                       .head_dim = 16,
                       .mask_mod = "doc[q_idx] == doc[kv_idx]",
                       .buffers = {{"doc", {.dtype = i32, .shape = {NamedDim::kv_len}}}},
                       .block = {64, 64}},
                      {.device = Device::cpu(), .masks_only = true});
  std::vector<std::int32_t> doc(1024, 0);
  const Bindings bindings =
      attention.bind({.buffers = {{"doc", TensorView::contiguous(doc.data(), i32, {1024})}}});
  const Shape shape = {.q_len = 1024, .kv_len = 1024};
  BlockMask mask = attention.block_mask(shape, bindings);
  REQUIRE(mask.full_tiles() == 256);
  const BlockMask copy = mask;
  for (std::size_t i = 0; i < doc.size(); ++i) doc[i] = static_cast<std::int32_t>(i / 256);
  attention.rebuild(mask, shape, bindings);
  REQUIRE(mask.full_tiles() == 64);
  REQUIRE(mask.empty_tiles() == 192);
  REQUIRE(mask.tiles_evaluated() == 0);
  REQUIRE(copy == mask);
  REQUIRE(copy.full_tiles() == 64);
}
