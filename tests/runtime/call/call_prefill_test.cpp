// Which kernel serves the prefill of a packed call, from its sizes, as its plan chooses it.
#include "runtime/call/call_prefill.hpp"

#include "runtime/call/resident_items.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

constexpr std::int64_t kMultiprocessors = 132;

Spec packed(bool lse = false) {
  Spec spec = {.dtype = DType::bf16,
               .head_dim = 128,
               .layout = Layout::packed,
               .mask_mod = "q_idx >= kv_idx"};
  spec.outputs.lse = lse;
  return spec;
}

CallPrefill prefill(const Spec& spec, const Shape& shape) {
  const Target hopper = Target::parse("sm_90a");
  return prefill_of_call(spec, hopper, shape, split_of_call(spec, hopper, kMultiprocessors, shape));
}

}  // namespace

TEST_CASE("call prefill: k and v stay where a plan has items of sequences") {
  for (const std::int64_t batch : {1, 2, 16, 17, 64, 256}) {
    for (const std::int64_t kv_len : {64, 255, 256, 257, 1024}) {
      CAPTURE(batch, kv_len);
      const CallPrefill found = prefill(
          packed(),
          {.batch = batch, .num_q_heads = 32, .num_kv_heads = 8, .q_len = 256, .kv_len = kv_len});
      const bool stays = resident_heads({.multiprocessors = kMultiprocessors, .kv_rows = 256},
                                        {.batch = batch,
                                         .num_q_heads = 32,
                                         .num_kv_heads = 8,
                                         .total_q = batch * 256,
                                         .total_kv = batch * kv_len,
                                         .max_kv_len = kv_len}) > 0;
      CHECK(found.keeps_kv == stays);
      CHECK(found.kernel == (stays ? "forward_prefill_resident" : "forward_prefill"));
    }
  }
}

TEST_CASE("call prefill: kernels with lse have their own names, other dtypes no such kernel") {
  const Shape shape = {
      .batch = 64, .num_q_heads = 32, .num_kv_heads = 8, .q_len = 256, .kv_len = 256};
  CHECK(prefill(packed(true), shape).kernel == "forward_prefill_resident_lse");
  Spec single = packed();
  single.dtype = DType::f32;
  const CallPrefill found = prefill(single, shape);
  CHECK_FALSE(found.keeps_kv);
  CHECK_THAT(found.why, Catch::Matchers::ContainsSubstring("sm_90a has no kernel of this spec"));
}
