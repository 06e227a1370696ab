#include "runtime/call/overlap.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

alignas(64) std::byte memory[1 << 16];

TensorView view_at(std::size_t byte, DType dtype, std::vector<std::int64_t> shape,
                   std::vector<std::int64_t> strides) {
  TensorView view{.data = memory + byte, .dtype = dtype, .rank = static_cast<int>(shape.size())};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    view.shape[d] = shape[d];
    view.strides[d] = strides[d];
  }
  return view;
}

// Calls body(address, index) for each element.
template <typename Body>
void for_each_element(const TensorView& view, const Body& body) {
  std::array<std::int64_t, kMaxRank> index = {};
  for (std::int64_t i = 0; i < view.numel(); ++i) {
    std::int64_t rest = i, offset = 0;
    for (int d = view.rank; d-- > 0;) {
      index[d] = rest % view.shape[d];
      rest /= view.shape[d];
      offset += index[d] * view.strides[d];
    }
    body(static_cast<const std::byte*>(view.data) +
             offset * static_cast<std::int64_t>(size_of(view.dtype)),
         index);
  }
}

std::vector<int> bytes_of(const TensorView& view) {
  std::vector<int> count(sizeof memory);
  for_each_element(view, [&](const std::byte* at, const auto&) {
    for (std::size_t i = 0; i < size_of(view.dtype); ++i) ++count[at - memory + i];
  });
  return count;
}

bool shares_by_counting(const TensorView& view) {
  for (const int count : bytes_of(view)) {
    if (count > 1) return true;
  }
  return false;
}

bool overlap_by_counting(const TensorView& a, const TensorView& b) {
  const std::vector<int> of_a = bytes_of(a), of_b = bytes_of(b);
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    if (of_a[i] > 0 && of_b[i] > 0) return true;
  }
  return false;
}

const std::byte* address_of(const TensorView& view, const std::array<std::int64_t, kMaxRank>& at) {
  std::int64_t offset = 0;
  for (int d = 0; d < view.rank; ++d) offset += at[d] * view.strides[d];
  return static_cast<const std::byte*>(view.data) +
         offset * static_cast<std::int64_t>(size_of(view.dtype));
}

TensorView random_view(std::mt19937& random, bool has_rows) {
  const auto below = [&](int n) { return static_cast<std::int64_t>(random() % n); };
  const DType dtype = random() % 2 ? f32 : f16;
  std::vector<std::int64_t> shape, strides;
  const int rank = 1 + static_cast<int>(below(4));
  for (int d = 0; d < rank; ++d) {
    const bool is_row = has_rows && d + 1 == rank;
    shape.push_back(1 + below(is_row ? 8 : 4));
    strides.push_back(is_row ? 1 : below(60) - 20);
  }
  return view_at(16384 + 4 * static_cast<std::size_t>(below(60)), dtype, shape, strides);
}

}  // namespace

TEST_CASE("overlap: a tensor whose elements share bytes names two of them") {
  REQUIRE_FALSE(find_shared_elements(view_at(0, f32, {2, 3, 5, 16}, {240, 80, 16, 1})));
  // Any order of the dimensions, gaps, and a stride back.
  REQUIRE_FALSE(find_shared_elements(view_at(0, f32, {2, 3, 5, 16}, {16, 32, 96, 1})));
  REQUIRE_FALSE(find_shared_elements(view_at(8192, f32, {2, 3, 5, 16}, {240, 80, -16, 1})));
  // Rows that interleave without touching, though no dimension holds another one.
  REQUIRE_FALSE(find_shared_elements(view_at(0, f32, {1, 3, 3, 16}, {0, 48, 64, 1})));
  REQUIRE(find_shared_elements(view_at(0, f32, {1, 5, 4, 16}, {0, 48, 64, 1})));

  const auto shared = find_shared_elements(view_at(0, f32, {1, 2, 5, 16}, {240, 80, 8, 1}));
  REQUIRE(shared);
  REQUIRE(shared->first == decltype(shared->first){0, 0, 1, 0});
  REQUIRE(find_shared_elements(view_at(0, f32, {1, 2, 5, 16}, {240, 0, 16, 1})));
  REQUIRE(find_shared_elements(view_at(0, f32, {1, 2, 5, 16}, {240, 64, 16, 1})));
  REQUIRE(find_shared_elements(view_at(8192, f32, {1, 2, 5, 16}, {240, 80, -8, 1})));
}

TEST_CASE("overlap: random strides agree with counting bytes") {
  std::mt19937 random(1);
  int shared_count = 0;
  for (int i = 0; i < 4000; ++i) {
    const TensorView view = random_view(random, i % 2 == 0);
    const auto shared = find_shared_elements(view);
    REQUIRE(shared.has_value() == shares_by_counting(view));
    if (!shared || i % 2 == 1) continue;
    ++shared_count;
    REQUIRE(shared->first != shared->second);
    // Rows that begin at these elements share bytes.
    const std::ptrdiff_t apart = address_of(view, shared->first) - address_of(view, shared->second);
    const auto row = view.shape[view.rank - 1] * static_cast<std::int64_t>(size_of(view.dtype));
    REQUIRE(std::abs(apart) < row);
  }
  REQUIRE(shared_count > 100);
}

TEST_CASE("overlap: random pairs of tensors agree with counting bytes") {
  std::mt19937 random(2);
  int overlapping = 0, apart = 0;
  for (int i = 0; i < 4000; ++i) {
    TensorView a = random_view(random, true);
    TensorView b = random_view(random, i % 3 != 0);
    if (i % 2 == 0) b.strides = a.strides;  // slices of one allocation
    const bool expected = overlap_by_counting(a, b);
    REQUIRE(overlap(a, b) == expected);
    REQUIRE(overlap(b, a) == expected);
    if (byte_range(a).meets(byte_range(b))) ++(expected ? overlapping : apart);
  }
  REQUIRE(overlapping > 200);
  REQUIRE(apart > 200);
}

TEST_CASE("overlap: q, k, v and out of one allocation interleave") {
  // [token, q k v out, head, width]
  const std::vector<std::int64_t> shape = {2, 9, 2, 16}, strides = {9 * 128, 128, 16, 1};
  const auto slice = [&](std::size_t which) { return view_at(which * 128, f32, shape, strides); };
  for (std::size_t a = 0; a < 4; ++a) {
    for (std::size_t b = 0; b < 4; ++b) REQUIRE(overlap(slice(a), slice(b)) == (a == b));
  }
  REQUIRE(overlap(view_at(64, f32, shape, strides), slice(0)));
}

TEST_CASE("overlap: extents and strides as large as 64 bits count take no time") {
  constexpr std::int64_t kFar = std::int64_t{1} << 59;
  REQUIRE_FALSE(
      find_shared_elements(view_at(0, f16, {2, 2, 2, 16}, {kFar, kFar / 2, kFar / 4, 1})));
  // 2^90 elements in 2^40 bytes.
  constexpr std::int64_t kMany = std::int64_t{1} << 30;
  REQUIRE(find_shared_elements(view_at(0, f16, {kMany, kMany, kMany, 16}, {1009, 1013, 1019, 1})));
  REQUIRE(overlap(view_at(0, f16, {kMany, kMany, kMany, 16}, {1009, 1013, 1019, 1}),
                  view_at(2, f16, {kMany, kMany, kMany, 16}, {1021, 1031, 1033, 1})));
}
