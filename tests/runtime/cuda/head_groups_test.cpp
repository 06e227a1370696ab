#include "runtime/cuda/head_groups.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

#include "tests/support/catch.hpp"

using namespace tilewright;
using cuda::head_groups;
using cuda::HeadGroups;
using cuda::packed_groups;
using cuda::PackedGroups;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

Spec bf16_spec() {
  return {.dtype = bf16, .head_dim = 128};
}

Shape self_attention(std::int64_t batch, std::int64_t q_heads, std::int64_t kv_heads,
                     std::int64_t length) {
  return {.batch = batch,
          .num_q_heads = q_heads,
          .num_kv_heads = kv_heads,
          .q_len = length,
          .kv_len = length};
}

// When the last block of threads ends, in units of the time that a full GPU would need: blocks
// start in order, each where one ends first.
double time_of_causal(const HeadGroups& groups, std::int64_t heads, int q_tiles, int slots) {
  std::vector<int> costs;
  for (std::int64_t group = 0; group <= groups.count; ++group) {
    const std::int64_t size =
        group < groups.count ? groups.heads : heads - groups.count * groups.heads;
    for (int tile = q_tiles; tile > 0; --tile) {
      costs.insert(costs.end(), static_cast<std::size_t>(size), 2 * tile + 1);
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ends;
  for (int slot = 0; slot < slots; ++slot) ends.push(0);
  int last = 0;
  std::int64_t work = 0;
  for (const int cost : costs) {
    const int end = ends.top() + cost;
    ends.pop();
    ends.push(end);
    last = std::max(last, end);
    work += cost;
  }
  return static_cast<double>(last) * slots / static_cast<double>(work);
}

}  // namespace

TEST_CASE("head groups: K and V of a group fill half of the L2 cache, and the rest goes last") {
  const HeadGroups groups = head_groups(bf16_spec(), self_attention(2, 16, 16, 8192), 50 * kMiB);
  REQUIRE(groups.heads == 6);  // 4 MiB each
  REQUIRE(groups.count == 3);  // then 14 heads
}

TEST_CASE("head groups: query heads of one kv head stay together") {
  const HeadGroups groups = head_groups(bf16_spec(), self_attention(4, 32, 4, 8192), 20 * kMiB);
  REQUIRE(groups.heads == 16);
  REQUIRE(groups.count == 6);
}

TEST_CASE("head groups: there is always one, however little the cache holds") {
  REQUIRE(head_groups(bf16_spec(), self_attention(1, 2, 2, 1 << 20), kMiB).heads == 1);
  const HeadGroups all = head_groups(bf16_spec(), self_attention(1, 2, 2, 1), 50 * kMiB);
  REQUIRE(all.heads == 2);
  REQUIRE(all.count == 0);
}

TEST_CASE("head groups: causal attention does not end with a few long tiles") {
  for (const std::int64_t heads : {24, 28, 32, 40, 64}) {
    const Shape shape = self_attention(1, heads, heads, 8192);
    const HeadGroups groups = head_groups(bf16_spec(), shape, 50 * kMiB);
    CAPTURE(heads, groups.heads, groups.count);
    REQUIRE(time_of_causal(groups, heads, 64, 264) < 1.05);
  }
}

TEST_CASE(
    "packed groups: all in one where the cache holds K and V, else of heads, then of sequences") {
  const auto groups = [](std::int64_t kv_heads, std::int64_t total_kv) {
    const PackedGroups found =
        packed_groups(bf16_spec(), self_attention(1, 4 * kv_heads, kv_heads, total_kv), 32 * kMiB);
    return std::vector<std::int64_t>{found.sequences, found.kv_rows, found.heads};
  };
  // A row of a kv head is 512 bytes, so half of the cache holds 32768 of them.
  CHECK(groups(8, 4096) == std::vector<std::int64_t>{1, 4096, 32});
  CHECK(groups(8, 4097) == std::vector<std::int64_t>{1, 4097, 16});  // evenly, not 7 and 1
  CHECK(groups(8, 32768) == std::vector<std::int64_t>{1, 32768, 4});
  CHECK(groups(8, 32769) == std::vector<std::int64_t>{2, 16385, 4});
  CHECK(groups(1, 1 << 20) == std::vector<std::int64_t>{8, 1 << 17, 4});
  CHECK(groups(8, 0) == std::vector<std::int64_t>{1, 1, 32});
}
