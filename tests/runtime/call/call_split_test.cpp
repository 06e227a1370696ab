// Into how many parts Hopper's kernel cuts the q tiles of a call, from its sizes.
#include "runtime/call/call_split.hpp"

#include "runtime/api/decode_gain.hpp"
#include "runtime/call/split_parts.hpp"
#include "tests/support/catch.hpp"

namespace tilewright {
namespace {

using Catch::Matchers::ContainsSubstring;

const Target& hopper() {
  static const Target target = Target::parse("sm_90a");
  return target;
}

Spec causal(Layout layout = Layout::bhsd) {
  return {.dtype = DType::bf16, .head_dim = 128, .layout = layout, .mask_mod = "q_idx >= kv_idx"};
}

Shape few_heads(std::int64_t q_len, std::int64_t kv_len, std::int64_t heads = 8) {
  return {
      .batch = 1, .num_q_heads = heads, .num_kv_heads = heads, .q_len = q_len, .kv_len = kv_len};
}

CallSplit split(const Spec& spec, const Shape& shape) {
  return split_of_call(spec, hopper(), 132, shape);
}

}  // namespace

TEST_CASE("call split: dense and packed calls of few q tiles have equal parts") {
  for (const Layout layout : {Layout::bhsd, Layout::bshd, Layout::packed}) {
    const CallSplit found = split(causal(layout), few_heads(512, 131072));
    CHECK(found.q_tiles == 32);
    CHECK(found.parts == 4);
    CHECK(found.why_not.empty());
  }
}

TEST_CASE("call split: why a call is not split") {
  const auto why_not = [](const Spec& spec, const Shape& shape) {
    const CallSplit found = split(spec, shape);
    CHECK(found.parts == 1);
    return found.why_not;
  };
  CHECK_THAT(why_not(causal(), few_heads(16384, 16384)),
             ContainsSubstring("1024 q tiles, enough for 132 multiprocessors"));
  CHECK_THAT(why_not(causal(), few_heads(128, 512)), ContainsSubstring("less than an eighth"));
  CHECK_THAT(why_not(causal(), few_heads(1, 131072)), ContainsSubstring("for decoding"));
  CHECK_THAT(why_not(causal(Layout::packed), few_heads(1, 131072)),
             ContainsSubstring("for decoding"));
  Spec single = causal();
  single.dtype = DType::f32;
  CHECK_THAT(why_not(single, few_heads(512, 131072)), ContainsSubstring("no kernel"));
  CHECK(split_of_call(causal(), Target::parse("sm_80"), 108, few_heads(512, 131072)).parts == 1);
  CHECK(split_of_call(causal(), Target::host_cpu(), 1, few_heads(512, 131072)).parts == 1);
}

TEST_CASE("call split: a CPU gains nothing from many columns") {
  CHECK_FALSE(gains_from_decode(causal(), few_heads(512, 131072), Device::cpu()));
  CHECK_FALSE(has_few_q_tiles(few_heads(512, 131072), Device::cpu()));
  CHECK(gains_from_decode(causal(), few_heads(1, 131072), Device::cpu()));  // as on GPUs
  CHECK_FALSE(gains_from_decode(causal(Layout::packed), few_heads(1, 131072), Device::cpu()));
}

TEST_CASE("call split: partial results stay below 64 MiB") {
  for (const std::int64_t dim : {64, 128, 192, 256}) {
    const SplitLaunch launch = {.multiprocessors = 132,
                                .q_tile = dim == 64 ? 192 : 128,
                                .kv_tile = 64,
                                .value_dim = dim,
                                .work_side = dim == 64 ? 192 : 128};
    for (std::int64_t q_tiles = 1; q_tiles < 400; ++q_tiles) {
      for (const std::int64_t room : {q_tiles, q_tiles + 8, 2 * q_tiles}) {
        const std::int64_t parts = split_parts(launch, {q_tiles, room}, 131072);
        if (parts == 1) continue;
        CHECK(launch.partial_bytes(room, parts) <= 64 << 20);
      }
    }
  }
}

TEST_CASE("call split: 256 sequences over 128k columns fill the GPU unless they have one head") {
  const SplitLaunch launch = {
      .multiprocessors = 132, .q_tile = 128, .kv_tile = 128, .value_dim = 128, .work_side = 128};
  const PackedShape shape = {.batch = 256, .num_q_heads = 8, .total_q = 256};
  CHECK(split_parts(launch, packed_q_tiles(launch, shape, 128, 258), 131072) == 1);
}

}  // namespace tilewright
