#include "runtime/api/mask_lists.hpp"

#include <cmath>
#include <functional>

#include "base/error.hpp"
#include "generator/spec/mask_combination.hpp"
#include "runtime/api/attention.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;
using Tile = BlockMask::Tile;

namespace {

// 3 rows of 4 tiles of 128; the last of each is ragged.
MaskFingerprint fingerprint(std::int64_t batch = 1, std::int64_t heads = 1) {
  return {.source = {.mask_mod = "q_idx >= kv_idx", .block = {128, 128}, .scalars = {}},
          .shape = {.batch = batch,
                    .num_q_heads = heads,
                    .num_kv_heads = heads,
                    .q_len = 300,
                    .kv_len = 500},
          .scalars = {}};
}

template <typename Integer>
TensorView view(const std::vector<Integer>& values, std::initializer_list<std::int64_t> shape) {
  return TensorView::contiguous(static_cast<const void*>(values.data()),
                                sizeof(Integer) == 4 ? i32 : i64, shape);
}

// FlexAttention's tensors of one list.
struct Flex {
  std::vector<std::int32_t> num = {1, 1, 2};
  std::vector<std::int32_t> indices = {0, 1, 2, 3, 1, 0, 2, 3, 2, 3, 0, 1};
  std::vector<std::int32_t> full_num = {0, 1, 2};
  std::vector<std::int32_t> full_indices = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};

  FlexTileLists lists() const {
    return {.kv_num_blocks = view(num, {1, 1, 3}),
            .kv_indices = view(indices, {1, 1, 3, 4}),
            .full_kv_num_blocks = view(full_num, {1, 1, 3}),
            .full_kv_indices = view(full_indices, {1, 1, 3, 4})};
  }
};

template <typename Action>
std::string refusal(ErrorCode code, const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "accepted";
}

std::string flex_refusal(const std::function<void(Flex&)>& change,
                         ErrorCode code = ErrorCode::block_mask) {
  Flex flex;
  change(flex);
  return refusal(code, [&] { block_mask_from_flex(fingerprint(), flex.lists()); });
}

std::vector<std::int32_t> values_of(const Tensor& tensor) {
  const auto* data = static_cast<const std::int32_t*>(tensor.data());
  return {data, data + tensor.numel()};
}

std::string csr_refusal(const std::vector<std::int64_t>& crow, const std::vector<std::int32_t>& col,
                        ErrorCode code = ErrorCode::block_mask) {
  return refusal(code, [&] {
    block_mask_from_csr(fingerprint(),
                        {.crow = view(crow, {static_cast<std::int64_t>(crow.size())}),
                         .col = view(col, {static_cast<std::int64_t>(col.size())})});
  });
}

}  // namespace

TEST_CASE("mask lists: FlexAttention's lists become a mask") {
  const BlockMask mask = block_mask_from_flex(fingerprint(), Flex().lists());
  CHECK(mask.row(0, 0, 0) ==
        std::vector<Tile>{Tile::partial, Tile::empty, Tile::empty, Tile::empty});
  CHECK(mask.row(0, 0, 1) ==
        std::vector<Tile>{Tile::full, Tile::partial, Tile::empty, Tile::empty});
  CHECK(mask.row(0, 0, 2) ==
        std::vector<Tile>{Tile::full, Tile::full, Tile::partial, Tile::partial});
  CHECK(mask.path() == "lists");
}

TEST_CASE("mask lists: to FlexAttention and back gives the same tensors") {
  const FlexTensors flex = to_flex(block_mask_from_flex(fingerprint(), Flex().lists()));
  CHECK(values_of(flex.kv_num_blocks) == std::vector<std::int32_t>{1, 1, 4});
  CHECK(values_of(flex.kv_indices) ==
        std::vector<std::int32_t>{0, 1, 2, 3, 1, 0, 2, 3, 0, 1, 2, 3});
  // The last row is ragged, so FlexAttention calls none of its tiles full.
  CHECK(values_of(flex.full_kv_num_blocks) == std::vector<std::int32_t>{0, 1, 0});
  CHECK(values_of(flex.full_kv_indices) ==
        std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3});
  const FlexTensors again = to_flex(block_mask_from_flex(fingerprint(), flex.view()));
  CHECK(values_of(again.kv_num_blocks) == values_of(flex.kv_num_blocks));
  CHECK(values_of(again.kv_indices) == values_of(flex.kv_indices));
  CHECK(values_of(again.full_kv_num_blocks) == values_of(flex.full_kv_num_blocks));
  CHECK(values_of(again.full_kv_indices) == values_of(flex.full_kv_indices));
}

TEST_CASE("mask lists: FlexAttention's rows may be in any order, padding is not read") {
  Flex flex;
  std::swap(flex.indices[8], flex.indices[9]);
  flex.indices[11] = 99;
  CHECK(block_mask_from_flex(fingerprint(), flex.lists()) ==
        block_mask_from_flex(fingerprint(), Flex().lists()));
}

TEST_CASE("mask lists: FlexAttention's lists per head, of 64 bits, without full ones") {
  const std::vector<std::int64_t> num = {1, 0, 0, 0, 0, 2};
  std::vector<std::int64_t> indices(2 * 3 * 2);
  indices[0] = 3;
  indices[11] = 1;
  const FlexTileLists lists{.kv_num_blocks = view(num, {1, 2, 3}),
                            .kv_indices = view(indices, {1, 2, 3, 2})};
  const BlockMask mask = block_mask_from_flex(fingerprint(4, 2), lists);
  CHECK(mask.batch() == 1);
  CHECK(mask.heads() == 2);
  CHECK(mask.row(0, 0, 0)[3] == Tile::partial);
  CHECK(mask.row(0, 1, 2)[1] == Tile::partial);
  CHECK(mask.partial_tiles() == 3);
  CHECK(mask.full_tiles() == 0);
}

TEST_CASE("mask lists: wrong lists of FlexAttention are refused with their first bad entry") {
  CHECK_THAT(flex_refusal([](Flex& f) { f.num[1] = 5; }),
             ContainsSubstring("kv_num_blocks[0, 0, 1] is 5, but a row of kv_indices has 4"));
  CHECK_THAT(flex_refusal([](Flex& f) { f.num[1] = -1; }),
             ContainsSubstring("kv_num_blocks[0, 0, 1] is -1"));
  CHECK_THAT(flex_refusal([](Flex& f) { f.indices[4] = 4; }),
             ContainsSubstring("kv_indices[0, 0, 1, 0] is 4; kv blocks are 0 to 3"));
  CHECK_THAT(flex_refusal([](Flex& f) { f.full_indices[9] = 0; }),
             ContainsSubstring("full_kv_indices[0, 0, 2, 1] is 0, which the row holds already"));
  CHECK_THAT(flex_refusal([](Flex& f) { f.full_indices[4] = 1; }),
             ContainsSubstring("row 1 holds kv block 1 as partial and as full"));
  CHECK_THAT(refusal(ErrorCode::tensor,
                     [] {
                       const Flex flex;
                       FlexTileLists lists = flex.lists();
                       lists.full_kv_indices.reset();
                       block_mask_from_flex(fingerprint(), lists);
                     }),
             ContainsSubstring("full_kv_indices is missing"));
  const Flex flex;
  FlexTileLists lists = flex.lists();
  lists.kv_num_blocks = view(flex.num, {1, 3, 1});
  CHECK_THAT(refusal(ErrorCode::tensor, [&] { block_mask_from_flex(fingerprint(), lists); }),
             ContainsSubstring("kv_num_blocks is i32 [1, 3, 1]"));
}

TEST_CASE("mask lists: a CSR is partial with a mask_mod and full without") {
  const std::vector<std::int32_t> crow = {0, 1, 1, 4};
  const std::vector<std::int64_t> col = {2, 0, 1, 3};
  const TileCsr csr{.crow = view(crow, {4}), .col = view(col, {4})};
  const BlockMask partial = block_mask_from_csr(fingerprint(2, 4), csr);
  CHECK(partial.batch() == 1);
  CHECK(partial.heads() == 1);
  CHECK(partial.partial_tiles() == 4);
  CHECK(partial.row(0, 0, 2) ==
        std::vector<Tile>{Tile::partial, Tile::partial, Tile::empty, Tile::partial});
  MaskFingerprint without = fingerprint();
  without.source.mask_mod.clear();
  const BlockMask full = block_mask_from_csr(without, csr);
  CHECK(full.full_tiles() == 4);
  CHECK(full.partial_tiles() == 0);
}

TEST_CASE("mask lists: a CSR per head, flat and padded, and per batch") {
  const std::vector<std::int64_t> crow = {0, 1, 2, 3, 0, 0, 1, 1};
  const std::vector<std::int32_t> flat = {0, 1, 2, 3};
  const std::vector<std::int32_t> padded = {0, 1, 2, 3, 99, 99};
  const BlockMask a =
      block_mask_from_csr(fingerprint(1, 2), {.crow = view(crow, {2, 4}), .col = view(flat, {4})});
  const BlockMask b = block_mask_from_csr(
      fingerprint(1, 2), {.crow = view(crow, {2, 4}), .col = view(padded, {2, 3})});
  CHECK(a == b);
  CHECK(a.heads() == 2);
  CHECK(a.row(0, 1, 1)[3] == Tile::partial);
  const BlockMask c = block_mask_from_csr(fingerprint(2, 8),
                                          {.crow = view(crow, {2, 1, 4}), .col = view(flat, {4})});
  CHECK(c.batch() == 2);
  CHECK(c.heads() == 1);
  CHECK(c.lists() == a.lists());
}

TEST_CASE("mask lists: a wrong CSR is refused with its first bad entry, row and position") {
  CHECK(csr_refusal({0, 1, 1, 3}, {2, 0, 1}) == "accepted");
  CHECK_THAT(csr_refusal({0, 1, 1, 3}, {2, 1, 1}),
             ContainsSubstring("col[2] is 1 a second time, position 1 of row 2"));
  CHECK_THAT(csr_refusal({0, 1, 1, 3}, {2, 3, 1}),
             ContainsSubstring("col[2] is 1 after 3, position 1 of row 2"));
  CHECK_THAT(csr_refusal({0, 1, 1, 3}, {4, 1, 3}),
             ContainsSubstring("col[0] is 4 of 4 kv blocks, position 0 of row 0"));
  CHECK_THAT(csr_refusal({0, 1, 1, 3}, {2, 1, -1}), ContainsSubstring("col[2] is -1"));
  CHECK_THAT(csr_refusal({1, 1, 1, 3}, {2, 1, 3}), ContainsSubstring("crow[0] is 1, not 0"));
  CHECK_THAT(csr_refusal({0, 2, 1, 3}, {1, 2, 3}), ContainsSubstring("crow[2] is 1 after 2"));
  CHECK_THAT(csr_refusal({0, 1, 1, 4}, {1, 2, 3}),
             ContainsSubstring("crow[3] is 4, but col has 3"));
  CHECK_THAT(csr_refusal({0, 1, 1, 2}, {1, 2, 3}),
             ContainsSubstring("col has 3 entries, but crow ends at 2"));
  CHECK_THAT(csr_refusal({0, 1, 1}, {1}, ErrorCode::tensor), ContainsSubstring("crow is i64 [3]"));
  const std::vector<std::int64_t> crow = {0, 1, 2, 3, 0, 1, 3, 3};
  const std::vector<std::int32_t> col = {0, 1, 2, 0, 3, 3};
  CHECK_THAT(refusal(ErrorCode::block_mask,
                     [&] {
                       block_mask_from_csr(fingerprint(1, 2),
                                           {.crow = view(crow, {2, 4}), .col = view(col, {6})});
                     }),
             ContainsSubstring("col[5] is 3 a second time, position 1 of row 4 (batch 0, head 1, "
                               "q block 1)"));
}

TEST_CASE("mask lists: a call takes a mask from lists, with and without a mask_mod") {
  constexpr std::int64_t kLength = 64, kWidth = 16;
  Tensor q = Tensor::zeros(f32, {1, 1, kLength, kWidth});
  Tensor v = Tensor::zeros(f32, {1, 1, kLength, kWidth});
  Tensor out = Tensor::zeros(f32, {1, 1, kLength, kWidth});
  for (std::int64_t row = 0; row < kLength; ++row) {
    static_cast<float*>(v.data())[row * kWidth] = static_cast<float>(row);
  }
  const ForwardTensors tensors{.q = q, .k = q, .v = v, .out = out};
  const auto first_of = [&](std::int64_t row) {
    return static_cast<const float*>(out.data())[row * kWidth];
  };
  // Row of tiles 1 sees tile 3 alone: rows 48 to 63 of v.
  const std::vector<std::int32_t> crow = {0, 1, 2, 3, 4}, col = {0, 3, 2, 3};
  const TileCsr csr{.crow = view(crow, {5}), .col = view(col, {4})};
  const Shape shape{.q_len = kLength, .kv_len = kLength};
  const Spec plain{.dtype = f32, .head_dim = kWidth, .block = {16, 16}};

  const Attention full(plain, {.takes_block_mask = true});
  full.forward(tensors, block_mask_from_csr(full.mask_fingerprint(shape), csr));
  CHECK(std::fabs(first_of(16) - 55.5f) < 1e-3f);
  CHECK_THAT(refusal(ErrorCode::block_mask, [&] { full.forward(tensors); }),
             ContainsSubstring("takes a block mask, and the call has none"));
  CHECK_THAT(refusal(ErrorCode::usage, [&] { full.block_mask(shape); }),
             ContainsSubstring("no mask_mod"));

  Spec odd = plain;
  odd.mask_mod = "kv_idx % 2 == 1";
  const Attention partial(odd);
  partial.forward(tensors, block_mask_from_csr(partial.mask_fingerprint(shape), csr));
  CHECK(std::fabs(first_of(16) - 56.0f) < 1e-3f);
}

TEST_CASE("mask lists: a combined snippet builds the combined mask, bodies and all") {
  const Shape shape{.q_len = 100, .kv_len = 100};
  const MaskMod causal{.text = "q_idx >= kv_idx"};
  const MaskMod near{
      .text = "if (q_idx < 8) return 1;\nconst int d = q_idx - kv_idx;\nreturn d < 20 && d > -20;"};
  Spec spec{.dtype = f32, .head_dim = 16, .block = {16, 32}};
  const auto lists = [&](const std::string& text) {
    spec.mask_mod = text;
    return Attention(spec).block_mask(shape).lists();
  };
  const std::string near_words = "(q_idx < 8 || (q_idx - kv_idx < 20 && q_idx - kv_idx > -20))";
  CHECK(lists(mask_and({causal, near}).text) == lists("q_idx >= kv_idx && " + near_words));
  CHECK(lists(mask_or({near, causal}).text) == lists("q_idx >= kv_idx || " + near_words));
}

TEST_CASE("mask lists: a compiler's message about a combination finds its part") {
  const MaskMod combined =
      mask_and({{.text = "q_idx >= kv_idx"}, {.text = "q_idx <\n  kv_ix", .name = "typo"}});
  try {
    const Attention attention({.dtype = f32, .head_dim = 16, .mask_mod = combined.text});
    FAIL("it compiled");
  } catch (const Error& error) {
    REQUIRE(error.place());
    CHECK(to_string(*in_its_part(error, combined).place()) == "typo:2:3");
  }
}

TEST_CASE("mask lists: more rows of tiles than can be counted are refused") {
  constexpr std::int64_t kMany = 65536;
  const std::vector<std::int32_t> zeros(4);
  TensorView crow = view(zeros, {1, 1, 4});
  crow.shape[0] = crow.shape[1] = kMany;
  crow.strides[0] = crow.strides[1] = 0;
  const std::string report = refusal(ErrorCode::tensor, [&] {
    block_mask_from_csr(fingerprint(kMany, kMany), {.crow = crow, .col = view(zeros, {4})});
  });
  CHECK_THAT(report, ContainsSubstring("more than 2^31 - 1 rows of tiles"));
}
