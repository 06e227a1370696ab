#include "generator/tactic/hopper_tactic.hpp"

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "generator/tactic/cuda_tactic.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

Tactic choose(const Spec& spec, const KernelVariant& kernel = {},
              std::string_view target = "sm_90a") {
  return choose_tactic(spec, Target::parse(target), kernel);
}

std::string refusal(const TacticSpec& forced, const KernelVariant& kernel = {},
                    std::string_view target = "sm_90a") {
  Spec spec{.dtype = bf16, .head_dim = 128};
  spec.tactic = forced;
  try {
    choose(spec, kernel, target);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("tactic hopper: serves aligned tensors of 8 and 16 bits on sm_90a, and nothing else") {
  const Spec spec{.dtype = bf16, .head_dim = 128};
  CHECK(choose(spec).name() == "hopper");
  CHECK(choose(spec, {.masked = true}).name() == "hopper");
  CHECK(choose(spec, {.aligned = false}).name() == "portable");
  for (const char* target : {"sm_80", "sm_90", "sm_100a", "sm_120"}) {
    CHECK(choose(spec, {}, target).name() == "portable");
  }
  CHECK(choose({.dtype = f32, .head_dim = 128}).name() == "portable");
  CHECK(choose({.dtype = bf16, .head_dim = 128, .kv_dtype = f16}).name() == "portable");
  CHECK(choose({.dtype = bf16, .head_dim = 192, .kv_dtype = f8e5m2}).name() == "hopper");
  CHECK(choose({.dtype = bf16, .head_dim = 256, .kv_dtype = f8e5m2}).name() == "hopper");
  CHECK(choose({.dtype = bf16, .head_dim = 200, .kv_dtype = f8e5m2}).name() == "portable");
  CHECK(choose({.dtype = f32, .head_dim = 64, .kv_dtype = i8}).name() == "portable");
  CHECK(choose({.dtype = f8e4m3, .head_dim = 256, .out_dtype = bf16}).name() == "hopper");
  CHECK(choose({.dtype = bf16, .head_dim = 64, .v_head_dim = 94}).name() == "portable");
  CHECK(choose({.dtype = bf16, .head_dim = 8}).name() == "portable");
  CHECK(choose({.dtype = bf16, .head_dim = 24}).name() == "hopper");
  // Rows of 24 bytes lie at no multiples of 16.
  CHECK(choose({.dtype = f8e4m3, .head_dim = 24, .out_dtype = bf16}).name() == "portable");
  CHECK(choose({.dtype = bf16, .head_dim = 64, .v_head_dim = 24, .kv_dtype = i8}).name() ==
        "portable");
  CHECK(choose({.dtype = bf16, .head_dim = 24, .out_dtype = f8e4m3}).name() == "portable");
  CHECK(choose({.dtype = f8e4m3,
                .head_dim = 64,
                .layout = Layout::packed,
                .kv_layout = Layout::paged,
                .out_dtype = bf16})
            .name() == "portable");
}

TEST_CASE("tactic hopper: tiles of 8 bits") {
  using List = std::vector<std::int64_t>;
  const auto tiles_of = [](const Spec& spec, bool masked) {
    const auto parameters = choose(spec, {.masked = masked}).parameters();
    return List{parameters.at("q_tile"), parameters.at("kv_tile"), parameters.at("stages"),
                parameters.at("q_stages")};
  };
  const auto tiles = [&](DType dtype, std::int64_t head_dim, bool masked) {
    Spec spec{.dtype = dtype, .head_dim = head_dim};
    if (dtype != f8e4m3) spec.kv_dtype = f8e4m3;
    return tiles_of(spec, masked);
  };
  CHECK(tiles(f8e4m3, 64, false) == List{192, 128, 4, 2});
  CHECK(tiles(f8e4m3, 128, false) == List{192, 96, 4, 2});
  CHECK(tiles(f8e4m3, 128, true) == List{128, 128, 4, 2});
  CHECK(tiles(f8e4m3, 256, false) == List{128, 96, 2, 1});
  CHECK(tiles(f8e4m3, 256, true) == List{128, 64, 2, 1});
  Spec blocks{.dtype = f8e4m3, .head_dim = 128, .block = {192, 96}};
  CHECK(tiles_of(blocks, true) == List{192, 96, 4, 2});
  blocks.out_dtype = bf16;  // is staged, and leaves room for fewer
  CHECK(tiles_of(blocks, true) == List{192, 96, 3, 2});
  CHECK(tiles(bf16, 64, false) == List{192, 128, 2, 2});
  CHECK(tiles(bf16, 128, false) == List{128, 128, 2, 1});
  for (const std::int64_t head_dim : {192, 208, 256}) {
    CHECK(tiles(bf16, head_dim, false) == List{128, 64, 2, 1});
    CHECK(tiles(bf16, head_dim, true) == List{128, 64, 2, 1});
  }
}

TEST_CASE("tactic hopper: who widens bytes") {
  using List = std::vector<std::int64_t>;
  // Warpgroups that do nothing else, and warps for a tile.
  const auto who = [](std::int64_t head_dim, std::int64_t value_dim, std::int64_t q_tile) {
    const Spec spec{.dtype = bf16, .head_dim = head_dim, .v_head_dim = value_dim, .kv_dtype = i8};
    const HopperTactic tactic{.q_tile = q_tile, .kv_tile = 64, .stages = 2};
    return List{preparing_groups(spec, tactic), prepares_in_turns(spec, tactic),
                preparers(spec, tactic)};
  };
  CHECK(who(64, 64, 192) == List{0, 1, 2});
  CHECK(who(64, 64, 128) == List{1, 1, 4});
  CHECK(who(192, 192, 128) == List{1, 0, 2});
  CHECK(who(256, 192, 128) == List{1, 0, 2});
  CHECK(who(256, 208, 128) == List{0, 1, 2});
  CHECK(who(64, 256, 128) == List{0, 1, 2});
  CHECK(who(256, 256, 64) == List{1, 0, 2});
}

TEST_CASE("tactic hopper: only a mask's kernel heeds the sides of blocks") {
  const Spec spec{.dtype = bf16, .head_dim = 64, .block = {48, 80}};
  CHECK(choose(spec, {.masked = false}).name() == "hopper");
  CHECK(choose(spec, {.masked = true}).name() == "portable");
  CHECK(choose({.dtype = bf16, .head_dim = 64, .block = {64, 32}}, {.masked = true}).name() ==
        "portable");
}

TEST_CASE("tactic hopper: the table of decision 16") {
  using List = std::vector<std::int64_t>;
  const auto tiles = [](std::int64_t head_dim, bool masked, std::array<std::int64_t, 2> block) {
    const auto parameters =
        choose({.dtype = bf16, .head_dim = head_dim, .block = block}, {.masked = masked})
            .parameters();
    return List{parameters.at("q_tile"), parameters.at("kv_tile"), parameters.at("persistent")};
  };
  CHECK(tiles(64, false, {128, 128}) == List{192, 128, 1});
  CHECK(tiles(64, true, {128, 128}) == List{192, 128, 1});
  CHECK(tiles(64, true, {192, 128}) == List{192, 128, 1});
  CHECK(tiles(128, false, {128, 128}) == List{192, 80, 1});
  CHECK(tiles(128, true, {128, 128}) == List{128, 128, 1});
  CHECK(tiles(128, true, {64, 256}) == List{128, 128, 1});
  CHECK(tiles(128, true, {64, 192}) == List{64, 96, 1});
  CHECK(tiles(128, true, {192, 80}) == List{192, 80, 1});
  CHECK(tiles(128, true, {192, 128}) == List{192, 64, 1});
  CHECK(tiles(128, true, {192, 160}) == List{64, 80, 1});
  CHECK(tiles(128, true, {192, 112}) == List{64, 112, 1});
  CHECK(tiles(192, false, {128, 128}) == List{128, 112, 1});
  CHECK(tiles(256, false, {128, 128}) == List{128, 80, 1});
  CHECK(tiles(256, true, {128, 128}) == List{128, 64, 1});
}

TEST_CASE("tactic hopper: q tiles cover rows of two of a mask's blocks where that is faster") {
  const auto tactic = [](std::int64_t head_dim, std::array<std::int64_t, 2> block,
                         const char* mask_mod, std::map<std::string, std::int64_t> forced = {}) {
    Spec spec{.dtype = bf16, .head_dim = head_dim, .mask_mod = mask_mod, .block = block};
    spec.buffers["doc"] = {.dtype = i32, .shape = {NamedDim::kv_len}};
    if (!forced.empty()) spec.tactic = TacticSpec{"hopper", std::move(forced)};
    const Tactic chosen = choose(spec, {.masked = true});
    return std::tuple(chosen.parameters().at("q_tile"), chosen.parameters().at("kv_tile"),
                      spans_two_blocks(spec, *chosen.hopper()));
  };
  using Tiles = std::tuple<std::int64_t, std::int64_t, bool>;
  const char* causal = "q_idx >= kv_idx";
  const char* documents = "doc[q_idx] == doc[kv_idx]";
  CHECK(tactic(64, {128, 128}, causal) == Tiles{192, 128, true});
  CHECK(tactic(64, {128, 128}, documents) == Tiles{128, 128, false});
  CHECK(tactic(64, {192, 128}, causal) == Tiles{192, 128, false});
  CHECK(tactic(64, {256, 128}, causal) == Tiles{128, 128, false});
  CHECK(tactic(64, {128, 64}, causal) == Tiles{128, 64, false});
  CHECK(tactic(64, {64, 128}, causal) == Tiles{128, 128, true});
  CHECK(tactic(128, {128, 128}, causal) == Tiles{128, 128, false});
  CHECK(tactic(128, {64, 128}, documents) == Tiles{128, 128, true});
  CHECK(tactic(256, {64, 128}, causal) == Tiles{64, 64, false});
  // Who forces one of them gets another that fits it.
  CHECK(tactic(64, {128, 128}, causal, {{"kv_tile", 64}}) == Tiles{128, 64, false});
  CHECK(tactic(64, {128, 128}, causal, {{"q_tile", 128}}) == Tiles{128, 128, false});
  CHECK(tactic(64, {128, 128}, documents, {{"q_tile", 192}}) == Tiles{192, 128, true});
  CHECK_THROWS_WITH(tactic(64, {256, 128}, causal, {{"q_tile", 192}}),
                    ContainsSubstring("does not divide block[0] = 256"));
}

TEST_CASE("tactic hopper: warpgroups take turns where score_mod is more than a slope") {
  const auto takes_turns = [](const char* score_mod) {
    Spec spec{.dtype = bf16, .head_dim = 128, .score_mod = score_mod};
    spec.buffers["slopes"] = {.dtype = f32, .shape = {NamedDim::num_q_heads}};
    return choose(spec).parameters().at("take_turns") == 1;
  };
  CHECK_FALSE(takes_turns(""));
  CHECK_FALSE(takes_turns("score + slopes[h] * (kv_idx - q_idx)"));
  CHECK(takes_turns("score + slopes[h] * abs(kv_idx - q_idx)"));
  CHECK(takes_turns("50.0 * tanh(score / 50.0)"));
}

TEST_CASE("tactic hopper: parameters that are left out follow forced ones") {
  using List = std::vector<std::int64_t>;
  const auto chosen = [](std::map<std::string, std::int64_t> forced) {
    Spec spec{.dtype = bf16, .head_dim = 128};
    spec.tactic = TacticSpec{"hopper", std::move(forced)};
    const auto parameters = choose(spec).parameters();
    return List{parameters.at("q_tile"), parameters.at("kv_tile"), parameters.at("q_stages")};
  };
  CHECK(chosen({}) == List{192, 80, 2});
  CHECK(chosen({{"q_tile", 128}}) == List{128, 128, 2});
  CHECK(chosen({{"kv_tile", 128}}) == List{128, 128, 2});
  CHECK(chosen({{"kv_tile", 64}}) == List{192, 64, 2});
  CHECK(chosen({{"kv_tile", 64}, {"stages", 3}}) == List{192, 64, 1});
  Spec narrow{.dtype = bf16, .head_dim = 64, .tactic = TacticSpec{"hopper", {{"q_tile", 64}}}};
  CHECK(choose(narrow).parameters().at("take_turns") == 0);
}

TEST_CASE("tactic hopper: where it does not serve, the refusal says why") {
  const auto why = [](Spec spec, const char* target = "sm_90a") -> std::string {
    spec.tactic = TacticSpec{"hopper", {}};
    try {
      choose(spec, {.masked = !spec.mask_mod.empty()}, target);
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  };
  Spec spec{.dtype = bf16, .head_dim = 64};
  CHECK(why(spec) == "accepted");
  CHECK_THAT(why(spec, "sm_100a"), ContainsSubstring(": it is for sm_90a alone"));
  spec.kv_dtype = f16;
  CHECK_THAT(why(spec), ContainsSubstring("or k one byte, and kv_dtype is f16"));
  spec.kv_dtype = i8;
  CHECK(why(spec) == "accepted");
  spec.v_head_dim = 208;
  CHECK(why(spec) == "accepted");
  spec.v_head_dim = {};
  spec.dtype = f32;
  CHECK_THAT(why(spec), ContainsSubstring("of f16, bf16 or f8e4m3, and dtype is f32"));
  spec = {.dtype = f8e4m3,
          .head_dim = 64,
          .layout = Layout::packed,
          .kv_layout = Layout::paged,
          .out_dtype = bf16};
  CHECK_THAT(why(spec), ContainsSubstring("does not turn V of 8 bits in pages"));
  spec = {.dtype = bf16,
          .head_dim = 64,
          .layout = Layout::packed,
          .kv_layout = Layout::paged,
          .kv_new = true};
  CHECK(why(spec) == "accepted");
  spec.kv_dtype = i8;
  CHECK_THAT(why(spec), ContainsSubstring("rows of one dtype: new rows or those of pages"));
  spec = {.dtype = f8e4m3, .head_dim = 40, .out_dtype = bf16};
  CHECK_THAT(why(spec), ContainsSubstring("multiples of 16 bytes, and some have 40"));
  spec = {.dtype = bf16, .head_dim = 64};
  spec.mask_mod = "q_idx >= kv_idx";
  spec.block = {96, 128};
  CHECK_THAT(why(spec), ContainsSubstring("128 or 192 rows divides block[0], which is 96"));
  spec.block = {128, 144};
  CHECK_THAT(why(spec), ContainsSubstring("64 to 128 columns divides block[1], which is 144"));
  spec.dtype = f32;
  CHECK_THAT(why(spec), ContainsSubstring("of f16, bf16 or f8e4m3, and dtype is f32"));
}

TEST_CASE("tactic hopper: draws of dropout leave registers to two warpgroups") {
  const auto with_dropout = [](std::int64_t head_dim) {
    Spec spec{.dtype = bf16, .head_dim = head_dim};
    spec.dropout = "0.1f";
    return spec;
  };
  for (const auto& [head_dim, kv_tile] :
       {std::pair<std::int64_t, std::int64_t>{64, 128}, {128, 128}, {192, 112}, {256, 80}}) {
    CAPTURE(head_dim);
    const Tactic tactic = choose(with_dropout(head_dim));
    CHECK(tactic.name() == "hopper");
    CHECK(tactic.parameters().at("q_tile") == 128);
    CHECK(tactic.parameters().at("kv_tile") == kv_tile);
  }
  Spec paged = with_dropout(64);
  paged.layout = Layout::packed;
  paged.kv_layout = Layout::paged;
  CHECK(choose(paged).name() == "hopper");
  paged.kv_dtype = f8e4m3;
  CHECK(choose(paged).name() == "portable");
  paged.tactic = TacticSpec{"hopper", {}};
  try {
    choose(paged);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK_THAT(error.message(), ContainsSubstring("it has no registers for pages of one byte"));
  }
}

TEST_CASE("tactic: a name that is nearly right has a hint") {
  const auto hint = [](const char* name, const char* target) {
    Spec spec{.dtype = bf16, .head_dim = 64, .tactic = TacticSpec{name, {}}};
    try {
      choose(spec, {}, target);
    } catch (const Error& error) {
      return error.hint();
    }
    return std::string("accepted");
  };
  CHECK(hint("hoper", "sm_90a") == "did you mean \"hopper\"?");
  CHECK(hint("portabel", "sm_80") == "did you mean \"portable\"?");
  CHECK(hint("cpuu", "cpu") == "did you mean \"cpu\"?");
  CHECK(hint("portable", "cpu") == "\"portable\" is a tactic of GPUs");
  CHECK(hint("cpu", "sm_80") == "\"cpu\" is the tactic of CPUs");
}

TEST_CASE("tactic hopper: what cannot run is refused with what could") {
  CHECK_THAT(refusal({"hopper", {}}, {}, "sm_80"), ContainsSubstring("allowed is \"portable\""));
  CHECK_THAT(refusal({"hoper", {}}), ContainsSubstring("\"portable\" or \"hopper\""));
  CHECK_THAT(refusal({"hopper", {{"warps", 4}}}), ContainsSubstring("has no parameter \"warps\""));
  CHECK_THAT(refusal({"hopper", {{"q_tile", 96}}}), ContainsSubstring("multiples of 64"));
  CHECK_THAT(refusal({"hopper", {{"kv_tile", 96}}}, {.masked = true}),
             ContainsSubstring("does not divide block[1] = 128"));
  CHECK_THAT(refusal({"hopper", {{"stages", 8}}}), ContainsSubstring("bytes of shared memory"));
  CHECK_THAT(refusal({"hopper", {{"q_tile", 64}, {"take_turns", 1}}}),
             ContainsSubstring("only one warpgroup"));
  Spec packed{.dtype = bf16,
              .head_dim = 64,
              .layout = Layout::packed,
              .tactic = TacticSpec{"hopper", {{"q_tile", 192}}}};
  CHECK_NOTHROW(choose(packed));  // whose plan has rows of 192
  packed.mask_mod = "q_idx >= kv_idx";
  CHECK_NOTHROW(choose(packed));  // whose tiles have rows of two rows of the tile map
  packed.head_dim = 128;          // for which kv tiles that may be merged are too long
  CHECK_THROWS_WITH(choose(packed), ContainsSubstring("does not divide block[0] = 128"));
  Spec wide{.dtype = bf16,
            .head_dim = 64,
            .v_head_dim = 192,
            .tactic = TacticSpec{"hopper", {{"q_tile", 192}, {"kv_tile", 16}, {"stages", 1}}}};
  CHECK_NOTHROW(choose(wide));
  wide.v_head_dim = 200;
  CHECK_THROWS_WITH(choose(wide), ContainsSubstring("too few registers"));
  wide.tactic->parameters["q_tile"] = 128;
  CHECK_NOTHROW(choose(wide));
  wide.v_head_dim = 64;
  wide.kv_dtype = i8;
  CHECK_NOTHROW(choose(wide));
  wide.tactic->parameters["q_tile"] = 192;
  CHECK_NOTHROW(choose(wide));
  wide.layout = Layout::packed;
  wide.kv_layout = Layout::paged;
  CHECK_THROWS_WITH(choose(wide), ContainsSubstring("look pages up"));
  Spec eight{.dtype = f8e4m3,
             .head_dim = 64,
             .out_dtype = bf16,
             .tactic = TacticSpec{"hopper", {{"kv_tile", 80}}}};
  CHECK_THROWS_WITH(choose(eight), ContainsSubstring("products of f8e4m3 take 32 rows of v"));
  // What needs aligned tensors says nothing of the kernels for others.
  CHECK(refusal({"hopper", {{"q_tile", 64}}}, {.aligned = false}) == "accepted");
}

TEST_CASE("Hopper tactic: a score_mod with a loop gets narrower tiles, which leave it registers") {
  Spec spec = {.dtype = bf16, .head_dim = 64, .score_mod = "return score * 2;"};
  CHECK(choose(spec).parameters().at("kv_tile") == 128);
  spec.score_mod = "for (int i = 1; i < 4; ++i) score += q_idx >= i ? 1 : 0;\nreturn score;";
  CHECK(choose(spec).parameters().at("kv_tile") == 64);
}

TEST_CASE("tactic hopper: three warpgroups for one table at sums of indices") {
  const auto rows = [](const std::string& score_mod, std::int64_t head_dim,
                       const KernelVariant& kernel = {}) {
    Spec spec{.dtype = bf16, .head_dim = head_dim, .score_mod = score_mod, .block = {192, 80}};
    spec.buffers["bias"] = {.dtype = f32, .shape = {std::int64_t{512}}};
    spec.buffers["table"] = {.dtype = f32, .shape = {NamedDim::q_len, NamedDim::kv_len}};
    return choose(spec, kernel).parameters().at("q_tile");
  };
  CHECK(rows("score + bias[kv_idx - q_idx + 256]", 128) == 192);
  CHECK(rows("score + bias[kv_idx - q_idx + 256]", 64) == 192);
  CHECK(rows("score + bias[kv_idx + q_idx] * bias[q_idx - kv_idx]", 128) == 128);
  CHECK(rows("score + bias[kv_idx + q_idx] * bias[q_idx + kv_idx + 1]", 64) == 128);
  CHECK(rows("score + bias[abs(kv_idx + q_idx)]", 128) == 128);
  CHECK(rows("score + table(q_idx, kv_idx)", 128) == 128);
  CHECK(rows("score + table(q_idx, kv_idx)", 64) == 192);
  // Values by the difference alone need no registers of each element.
  CHECK(rows("score + bias[kv_idx - q_idx + 256] * bias[q_idx - kv_idx]", 128) == 192);
  CHECK(rows("score + bias[abs(kv_idx - q_idx)]", 128) == 192);
  CHECK(rows("score + bias[kv_idx - q_idx + 256]", 128, {.masked = true}) == 64);
}
