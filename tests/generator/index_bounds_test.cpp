#include "generator/index_bounds.hpp"

#include <string>

#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

Spec make_spec(const std::string& score_mod, const std::string& mask_mod = "",
               Bounds bounds = Bounds::clamped) {
  return {.dtype = bf16,
          .head_dim = 64,
          .score_mod = score_mod,
          .mask_mod = mask_mod,
          .buffers = {{"doc", {.dtype = i32, .shape = {NamedDim::kv_len}, .bounds = bounds}}},
          .scalars = {{"cap", {}}}};
}

bool needs(const std::string& score_mod, const std::string& mask_mod = "") {
  return needs_bounded_indices(make_spec(score_mod, mask_mod));
}

}  // namespace

TEST_CASE("index bounds: snippets that no index can hurt need none") {
  CHECK(!needs(""));
  CHECK(!needs("score + 0.5 * (kv_idx - q_idx)"));
  CHECK(!needs("", "q_idx >= kv_idx && doc[q_idx] == doc[kv_idx]"));
  CHECK(!needs("tanh(score / cap) * cap", "q_idx / 64 == kv_idx % 64"));
}

TEST_CASE("index bounds: a loop that another index might never end") {
  CHECK(needs("float x = score; for (int i = kv_idx; i != kv_len; ++i) x += 1; return x;"));
  CHECK(needs("", "int i = q_idx; while (i != q_len) ++i; return i > kv_idx;"));
}

TEST_CASE("index bounds: a division whose divisor an index might make 0") {
  CHECK(needs("score + q_idx / (kv_len - kv_idx)"));
  CHECK(needs("", "kv_idx % (q_len - q_idx) == 0"));
  CHECK(needs("", "int i = 7; i /= kv_len - kv_idx; return i > 0;"));
}

TEST_CASE("index bounds: a read that nothing clamps") {
  CHECK(needs("", "int t[2] = {1, 2}; return t[kv_idx / 2] > 1;"));
  CHECK(needs_bounded_indices(make_spec("", "doc[kv_idx] > 0", Bounds::trusted)));
}
