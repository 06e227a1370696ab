#include "runtime/api/mask_slice.hpp"

#include "base/error.hpp"
#include "runtime/api/attention.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;
using Tile = BlockMask::Tile;

namespace {

const Attention& windowed() {
  static const Attention attention({.dtype = f32,
                                    .head_dim = 16,
                                    .mask_mod = "q_idx >= kv_idx && q_idx - kv_idx < 100 + 10 * h",
                                    .block = {16, 32}});
  return attention;
}

Shape shape_of(std::int64_t q_len, std::int64_t q_offset = 0, std::int64_t kv_len = 203) {
  return {
      .num_q_heads = 2, .num_kv_heads = 1, .q_len = q_len, .kv_len = kv_len, .q_offset = q_offset};
}

// A slice may visit more than a mask built for its call, and must not call more tiles full.
void require_covers(const BlockMask& slice, const BlockMask& built) {
  REQUIRE(slice.fingerprint() == built.fingerprint());
  for (std::int64_t h = 0; h < built.heads(); ++h) {
    for (std::int64_t q_block = 0; q_block < built.q_blocks(); ++q_block) {
      const std::vector<Tile> of_slice = slice.row(0, h, q_block),
                              of_built = built.row(0, h, q_block);
      for (std::size_t i = 0; i < of_built.size(); ++i) {
        INFO("head " << h << ", q block " << q_block << ", kv block " << i);
        if (of_slice[i] == Tile::full) REQUIRE(of_built[i] == Tile::full);
        if (of_slice[i] == Tile::empty) REQUIRE(of_built[i] == Tile::empty);
      }
    }
  }
}

template <typename Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("mask slice: whole rows of tiles are those of the mask") {
  const BlockMask whole = windowed().block_mask(shape_of(203));
  CHECK(slice_rows(whole, {.first_row = 0, .rows = 203}) == whole);
  const BlockMask slice = slice_rows(whole, {.first_row = 64, .rows = 48});
  CHECK(slice == windowed().block_mask(shape_of(48, 64)));
  CHECK(slice.path() == "slice");
}

TEST_CASE("mask slice: any rows and columns cover what a mask of their own would") {
  const BlockMask whole = windowed().block_mask(shape_of(203));
  for (const auto& [first, rows, kv_len] : {std::array<std::int64_t, 3>{202, 1, 203},
                                            {150, 1, 151},
                                            {7, 20, 203},
                                            {15, 2, 33},
                                            {100, 103, 203},
                                            {31, 17, 64}}) {
    const BlockMask slice = slice_rows(whole, {.first_row = first, .rows = rows, .kv_len = kv_len});
    require_covers(slice, windowed().block_mask(shape_of(rows, first, kv_len)));
  }
}

TEST_CASE("mask slice: offsets add up, and a call with them takes the slice") {
  const BlockMask whole = windowed().block_mask(shape_of(60, 100));
  const BlockMask step =
      slice_rows(slice_rows(whole, {.first_row = 20, .rows = 30}), {.first_row = 3, .rows = 1});
  CHECK(step.fingerprint().shape == shape_of(1, 123));
  Tensor q = Tensor::zeros(f32, {1, 2, 1, 16}), k = Tensor::zeros(f32, {1, 1, 203, 16});
  Tensor out = Tensor::zeros(f32, {1, 2, 1, 16});
  float* value = static_cast<float*>(k.data());
  for (std::int64_t i = 0; i < k.numel(); ++i) value[i] = i / 16 == 123 ? 1.0f : 0.0f;
  windowed().forward({.q = q, .k = k, .v = k, .out = out}, step, {}, {.q_offset = 123});
  const float* result = static_cast<const float*>(out.data());
  CHECK_THAT(result[0], Catch::Matchers::WithinAbs(1.0 / 100, 1e-6));
  CHECK_THAT(result[16], Catch::Matchers::WithinAbs(1.0 / 110, 1e-6));
  CHECK_THROWS_AS(windowed().forward({.q = q, .k = k, .v = k, .out = out}, step), Error);
}

TEST_CASE("mask slice: rows that are not there and lengths that are read are refused") {
  const BlockMask whole = windowed().block_mask(shape_of(203));
  CHECK_THAT(refusal([&] { slice_rows(whole, {.first_row = 203}); }),
             ContainsSubstring("1 rows from row 203, but the mask has 203"));
  CHECK_THAT(refusal([&] { slice_rows(whole, {.first_row = 200, .rows = 4}); }),
             ContainsSubstring("4 rows from row 200"));
  CHECK_THAT(refusal([&] { slice_rows(whole, {.rows = 0}); }), ContainsSubstring("0 rows"));
  CHECK_THAT(refusal([&] { slice_rows(whole, {.kv_len = 204}); }),
             ContainsSubstring("204 columns, but the mask has 203"));

  MaskFingerprint fingerprint{
      .source = {.mask_mod = "kv_idx <= q_idx + kv_len - q_len", .block = {16, 16}, .scalars = {}},
      .shape = {.q_len = 16, .kv_len = 16},
      .scalars = {}};
  const BlockMask right_aligned(
      fingerprint,
      {.row_offsets = {0, 1}, .indices = {0}, .full_row_offsets = {0, 0}, .full_indices = {}},
      "exact", 1);
  CHECK_THAT(refusal([&] { slice_rows(right_aligned, {.rows = 1}); }),
             ContainsSubstring("reads q_len, which is 16 in the mask and 1 in the slice"));
  CHECK_THAT(refusal([&] { slice_rows(right_aligned, {.rows = 16, .kv_len = 8}); }),
             ContainsSubstring("reads kv_len"));
  CHECK(slice_rows(right_aligned, {.rows = 16}) == right_aligned);
}
