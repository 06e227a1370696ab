#include "generator/index_differences.hpp"

#include <string>

#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

bool takes(const std::string& score_mod) {
  return takes_index_difference({.dtype = bf16, .head_dim = 64, .score_mod = score_mod});
}

}  // namespace

TEST_CASE("index differences: found in either order, wherever they stand") {
  CHECK(takes("score + slopes[h] * (kv_idx - q_idx)"));
  CHECK(takes("score - slopes[h]*abs(q_idx-kv_idx)"));
  CHECK(takes("float x = bias[kv_idx - q_idx + 3];\nreturn x + score;"));
}

TEST_CASE("index differences: none without one, or without score_mod") {
  CHECK(!takes(""));
  CHECK(!takes("score + 0.5 * kv_idx - score * q_idx"));
  CHECK(!takes("score + kv_idx - 1 - q_idx"));
}

TEST_CASE("index differences: indices stay ints where a type is deduced from one") {
  CHECK(!takes("auto i = kv_idx; i += 1; return score + (kv_idx - q_idx) * i;"));
  CHECK(!takes("decltype(q_idx) i = 1; return score + (kv_idx - q_idx) * i;"));
  CHECK(!takes("return score + [&](int i) { return i; }(kv_idx - q_idx);"));
  CHECK(takes("float a[2] = {0.5, 1}; return score + a[h % 2] * (kv_idx - q_idx);"));
}
