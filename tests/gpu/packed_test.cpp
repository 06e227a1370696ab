// Packed calls in graphs, and often.
#include "tests/gpu/driver_functions.hpp"
#include "tests/gpu/packed_gpu_call.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

constexpr PackedShape kShape = {.batch = 12,
                                .num_q_heads = 8,
                                .num_kv_heads = 2,
                                .total_q = 3000,
                                .total_kv = 6000,
                                .max_kv_len = 2500};

}  // namespace

TEST_CASE("gpu: packed calls captured once replay with 40 other sets of lengths") {
  if (gpu_is_missing()) return;
  for (const Spec& spec : packed_gpu_specs()) require_equal_replays(spec, kShape, 40);
}

TEST_CASE("gpu: 1,000 repeats of packed calls give the same bits") {
  if (gpu_is_missing()) return;
  PackedShape shape = kShape;
  shape.total_q = 1000;
  for (const Spec& spec : packed_gpu_specs()) require_equal_repeats(spec, shape, 1000);
}

namespace {

// Specs whose q tiles Hopper's kernel splits, in calls of few q tiles over many columns.
std::vector<Spec> split_specs() {
  std::vector<Spec> specs;
  for (const char* const mask :
       {"", "q_idx >= kv_idx", "q_idx >= kv_idx && q_idx - kv_idx < 900"}) {
    for (const std::int64_t head_dim : {128, 256}) {
      specs.push_back({.dtype = bf16,
                       .head_dim = head_dim,
                       .layout = Layout::packed,
                       .mask_mod = mask,
                       .outputs = {.lse = true}});
    }
  }
  return specs;
}

constexpr PackedShape kFewQTiles = {.batch = 3,
                                    .num_q_heads = 4,
                                    .num_kv_heads = 2,
                                    .total_q = 500,
                                    .total_kv = 40000,
                                    .max_kv_len = 20000};

}  // namespace

TEST_CASE("gpu: split calls captured once replay with 40 other sets of lengths") {
  if (gpu_is_missing()) return;
  for (const Spec& spec : split_specs()) require_equal_replays(spec, kFewQTiles, 40);
}

TEST_CASE("gpu: split calls repeated 1,000 times give the same bits") {
  if (gpu_is_missing()) return;
  for (const Spec& spec : split_specs()) require_equal_repeats(spec, kFewQTiles, 1000);
}
