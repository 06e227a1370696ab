#include "generator/tactic/cuda_tactic.hpp"

#include <string>

#include "base/error.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

// For tensors that are not aligned, which the portable kernel serves on every GPU.
Tactic choose(const Spec& spec, std::string_view target = "sm_90a") {
  return choose_tactic(spec, Target::parse(target), {.masked = true, .aligned = false});
}

std::string refusal(std::int64_t head_dim, const TacticSpec& forced) {
  Spec spec{.dtype = bf16, .head_dim = head_dim};
  spec.tactic = forced;
  try {
    choose(spec, "sm_86");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::int64_t bytes_of(const Spec& spec, const Tactic& tactic) {
  return tactic.hopper() ? shared_bytes(spec, *tactic.hopper())
                         : shared_bytes(spec, *tactic.portable());
}

}  // namespace

TEST_CASE("tactic for GPUs: every size fits the shared memory of every target") {
  for (const std::string& name : Target::all_names()) {
    const Target target = Target::parse(name);
    if (target.is_cpu()) continue;
    for (const DType dtype : {bf16, f16, f32}) {
      for (std::int64_t width = 16; width <= 256; width += 8) {
        for (const std::int64_t side : {16, 48, 128, 256}) {
          const Spec spec{
              .dtype = dtype, .head_dim = width, .v_head_dim = 272 - width, .block = {side, side}};
          for (const bool masked : {false, true}) {
            const Tactic tactic = choose_tactic(spec, target, {.masked = masked, .aligned = true});
            REQUIRE(bytes_of(spec, tactic) <= max_shared_bytes(target) - 1024);
            if (!masked) continue;
            REQUIRE(side % tactic.parameters().at("q_tile") == 0);
            REQUIRE(side % tactic.parameters().at("kv_tile") == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("tactic for GPUs: the table of decision 8") {
  const auto tiles = [](const Spec& spec, std::string_view target) {
    const auto parameters = choose(spec, target).parameters();
    return std::vector<std::int64_t>{parameters.at("q_tile"), parameters.at("kv_tile"),
                                     parameters.at("warps"), parameters.at("stages"),
                                     parameters.at("blocks_per_sm")};
  };
  using List = std::vector<std::int64_t>;
  Spec spec{.dtype = bf16, .head_dim = 64};
  CHECK(tiles(spec, "sm_90a") == List{128, 64, 4, 2, 2});
  spec.head_dim = 128;
  CHECK(tiles(spec, "sm_90a") == List{128, 64, 4, 1, 2});
  CHECK(tiles(spec, "sm_80") == List{128, 64, 4, 1, 2});
  CHECK(tiles(spec, "sm_86") == List{128, 32, 4, 1, 2});
  spec.score_mod = "score + x[h]";
  spec.buffers["x"] = {.dtype = f32, .shape = {NamedDim::num_q_heads}};
  CHECK(tiles(spec, "sm_90a") == List{128, 64, 4, 1, 2});
  spec.score_mod = "score + x[h + 1]";
  CHECK(tiles(spec, "sm_90a") == List{128, 32, 4, 1, 2});
  spec.head_dim = 64;
  CHECK(tiles(spec, "sm_89") == List{128, 64, 4, 2, 2});
  CHECK(tiles(spec, "sm_120") == List{128, 32, 4, 2, 2});
  spec.score_mod = "score + x[h]";
  CHECK(tiles(spec, "sm_120") == List{128, 64, 4, 2, 2});
  CHECK(tiles(spec, "sm_100a") == List{128, 64, 4, 2, 2});
  spec.head_dim = 128;
  CHECK(tiles(spec, "sm_100a") == List{128, 32, 4, 1, 2});
  spec.score_mod.clear();
  spec.mask_mod = "q_idx >= kv_idx";
  CHECK(tiles(spec, "sm_100a") == List{128, 64, 4, 1, 2});
  spec.mask_mod = "q_idx / 64 == kv_idx / 64";
  CHECK(tiles(spec, "sm_100a") == List{128, 32, 4, 1, 2});
  CHECK(tiles(spec, "sm_90a") == List{128, 64, 4, 1, 2});
  spec.mask_mod.clear();
  spec.score_mod = "score * 2.0";
  CHECK(tiles(spec, "sm_90a") == List{128, 64, 4, 1, 2});
  CHECK(tiles(spec, "sm_80") == List{128, 32, 4, 1, 2});
  spec.head_dim = 256;
  CHECK(tiles(spec, "sm_90a") == List{64, 64, 4, 1, 2});
  CHECK(tiles(spec, "sm_80") == List{128, 64, 8, 1, 1});
  spec.dtype = f32;
  CHECK(tiles(spec, "sm_120") == List{32, 16, 4, 1, 1});
  spec.head_dim = 64;
  spec.dtype = f16;
  spec.block = {48, 80};
  CHECK(tiles(spec, "sm_80") == List{48, 16, 3, 2, 2});
}

TEST_CASE("tactic for GPUs: a forced parameter is taken and the others follow") {
  Spec spec{.dtype = bf16, .head_dim = 64};
  spec.tactic = TacticSpec{"portable", {{"q_tile", 64}}};
  REQUIRE(choose(spec).parameters().at("warps") == 4);
  REQUIRE(row_tiles(spec, *choose(spec).portable()) == 1);
  spec.tactic = TacticSpec{"portable", {{"q_tile", 128}, {"warps", 4}, {"stages", 3}}};
  REQUIRE(row_tiles(spec, *choose(spec).portable()) == 2);
  REQUIRE(bytes_of(spec, choose(spec)) == 2 * (128 * 64 + 3 * 64 * 128));
  REQUIRE_THAT(choose(spec).describe(),
               ContainsSubstring("portable q_tile=128 kv_tile=64 warps=4"));
}

TEST_CASE("tactic for GPUs: what cannot run is refused with what could") {
  REQUIRE_THAT(refusal(64, {"cpu", {}}), ContainsSubstring("\"portable\""));
  REQUIRE_THAT(refusal(64, {"portable", {{"warp", 4}}}),
               ContainsSubstring("did you mean \"warps\"?"));
  REQUIRE_THAT(refusal(64, {"portable", {{"q_tile", 48}}}), ContainsSubstring("does not divide"));
  REQUIRE_THAT(refusal(64, {"portable", {{"kv_tile", 256}}}), ContainsSubstring("from 16 to 128"));
  REQUIRE_THAT(refusal(64, {"portable", {{"warps", 3}}}), ContainsSubstring("warps is 3"));
  REQUIRE_THAT(refusal(64, {"portable", {{"stages", 0}}}), ContainsSubstring("stages is 0"));
  REQUIRE_THAT(refusal(128, {"portable", {{"stages", 8}}}),
               ContainsSubstring("bytes of shared memory"));
}
