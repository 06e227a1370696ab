// What no call may bring: numbers out of range, memory that overlaps, objects that were moved from.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "cache/store.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/api/mask_lists.hpp"
#include "runtime/api/mask_slice.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

template <typename Body>
std::string refusal(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

MaskFingerprint fingerprint(
    std::array<std::int64_t, 2> block = {16, 16},
    Shape shape = {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 40, .kv_len = 40}) {
  return {.source = {.mask_mod = {}, .block = block, .scalars = {}},
          .shape = shape,
          .scalars = {},
          .counts = {}};
}

TileLists lists_of_three_rows() {
  return {.row_offsets = {0, 1, 2, 3},
          .indices = {0, 1, 2},
          .full_row_offsets = {0, 0, 0, 0},
          .full_indices = {}};
}

BlockMask three_rows() {
  return {fingerprint(), lists_of_three_rows(), "lists", 0};
}

const Spec kPlain{.dtype = f32, .head_dim = 16, .outputs = {.lse = true}};

const Attention& plain() {
  static const Attention attention(kPlain, {.device = Device::cpu()});
  return attention;
}

// q, k, v and out of kTokens tokens and two heads, side by side in each token's row.
constexpr std::int64_t kTokens = 40, kRow = 4 * 2 * 16;

struct Packed {
  Tensor memory = Tensor::zeros(f32, {kTokens + 1, kRow});
  Tensor lse = Tensor::zeros(f32, {1, 2, kTokens});

  Packed() {
    auto* values = static_cast<float*>(memory.data());
    for (std::int64_t i = 0; i < memory.numel(); ++i) {
      values[i] = static_cast<float>((i * 7919) % 101) / 50.0f - 1.0f;
    }
  }
  // Of a position among q, k, v, out; in floats from there.
  TensorView slice(std::int64_t position, std::int64_t floats = 0) const {
    return {.data = static_cast<float*>(const_cast<void*>(memory.data())) + position * 32 + floats,
            .dtype = f32,
            .rank = 4,
            .shape = {1, 2, kTokens, 16},
            .strides = {kRow * kTokens, 16, kRow, 1}};
  }
  ForwardTensors tensors() const {
    return {.q = slice(0), .k = slice(1), .v = slice(2), .out = slice(3), .lse = lse.view()};
  }
  std::string refusal_if(void (*change)(const Packed&, ForwardTensors&)) const {
    ForwardTensors call = tensors();
    change(*this, call);
    return refusal([&] { plain().forward(call); });
  }
};

}  // namespace

TEST_CASE("limits: a row that a block mask does not have") {
  const BlockMask mask = three_rows();
  REQUIRE(mask.row(0, 0, 2)[2] == BlockMask::Tile::partial);
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{3}, kHuge, -kHuge - 1}) {
    REQUIRE_THAT(refusal([&] { mask.row(0, 0, bad); }), ContainsSubstring("no row of q block"));
    REQUIRE_THAT(refusal([&] { mask.row(0, bad, 0); }), ContainsSubstring("no row of head"));
    REQUIRE_THAT(refusal([&] { mask.row(bad, 0, 0); }), ContainsSubstring("no row of batch"));
  }
}

TEST_CASE("limits: fingerprints that no mask has") {
  const auto refused = [](const MaskFingerprint& bad) {
    const std::string by_mask = refusal([&] { BlockMask(bad, lists_of_three_rows(), "lists", 0); });
    const Tensor crow = Tensor::zeros(i32, {4}), col = Tensor::zeros(i32, {0});
    REQUIRE(refusal([&] { block_mask_from_csr(bad, {.crow = crow, .col = col}); }) == by_mask);
    const Tensor counts = Tensor::zeros(i32, {1, 1, 3}), indices = Tensor::zeros(i32, {1, 1, 3, 3});
    REQUIRE(refusal([&] {
              block_mask_from_flex(bad, {.kv_num_blocks = counts, .kv_indices = indices});
            }) == by_mask);
    return by_mask;
  };
  REQUIRE_THAT(refused(fingerprint({0, 0})), ContainsSubstring("fingerprint is [0, 0]"));
  REQUIRE_THAT(refused(fingerprint({16, -16})), ContainsSubstring("fingerprint is [16, -16]"));
  REQUIRE_THAT(refused(fingerprint({kHuge, 16})), ContainsSubstring("fingerprint is ["));
  const auto shape = [](const auto& change) {
    MaskFingerprint bad = fingerprint();
    change(bad.shape);
    return bad;
  };
  REQUIRE_THAT(refused(shape([](Shape& s) { s.q_len = 0; })), ContainsSubstring("q_len is 0"));
  REQUIRE_THAT(refused(shape([](Shape& s) { s.kv_len = -kHuge; })), ContainsSubstring("kv_len is"));
  REQUIRE_THAT(refused(shape([](Shape& s) { s.batch = kHuge; })), ContainsSubstring("batch is"));
  REQUIRE_THAT(refused(shape([](Shape& s) { s.num_kv_heads = 0; })),
               ContainsSubstring("num_kv_heads is 0"));
  REQUIRE_THAT(refused(shape([](Shape& s) { s.q_offset = kHuge; })), ContainsSubstring("q_offset"));
  MaskFingerprint counts = fingerprint();
  counts.counts.batch = -1;
  REQUIRE_THAT(refused(counts), ContainsSubstring("is -1"));
  MaskFingerprint scalars = fingerprint();
  scalars.source.scalars.push_back({"window", 5});
  REQUIRE_THAT(refused(scalars), ContainsSubstring("names 1 scalars and holds 0 values"));
  scalars.scalars.push_back(1);
  REQUIRE_THAT(refusal([&] {
                 require_fit(BlockMask(scalars, lists_of_three_rows(), "lists", 0), scalars.source,
                             scalars.shape, Bindings());
               }),
               ContainsSubstring("hold 0 scalars, and mask_mod reads \"window\""));
}

TEST_CASE("limits: lists by columns of rows that are none") {
  const TileLists lists = lists_of_three_rows();
  REQUIRE(transpose(lists, 3, 3).indices.size() == 3);
  REQUIRE_THAT(refusal([&] { transpose(lists, 0, 3); }), ContainsSubstring("heads of 0 rows"));
  REQUIRE_THAT(refusal([&] { transpose(lists, 2, 3); }), ContainsSubstring("heads of 2 rows"));
  REQUIRE_THAT(refusal([&] { transpose(lists, 3, 2); }), ContainsSubstring("holds kv block 2"));
  REQUIRE_THAT(refusal([&] { transpose(lists, 3, 0); }), ContainsSubstring("no rows of tiles"));
  REQUIRE_THAT(refusal([&] { transpose({}, 3, 3); }), ContainsSubstring("lists of -1 rows"));
  REQUIRE_THAT(refusal([&] { count_tile_rows(-1, 1, 1); }), ContainsSubstring("no rows of tiles"));
  REQUIRE_THAT(refusal([&] { BlockMask(fingerprint(), nullptr, {}, "proved"); }),
               ContainsSubstring("made of no lists"));
  REQUIRE_THAT(refusal([&] { slice_rows(three_rows(), {.first_row = kHuge, .rows = kHuge}); }),
               ContainsSubstring("but the mask has 40"));
}

TEST_CASE("limits: a tensor of a dtype that is none") {
  const auto none = static_cast<DType>(99);
  REQUIRE_THAT(refusal([&] { Tensor::zeros(none, {2}); }), ContainsSubstring("has dtype 99"));
  TensorView view{.data = &view, .dtype = none, .rank = 1, .shape = {1}, .strides = {1}};
  REQUIRE_THAT(refusal([&] { Tensor::copy_of(view); }), ContainsSubstring("has dtype 99"));
}

TEST_CASE("limits: objects that were moved from") {
  Attention attention(kPlain, {.device = Device::cpu()});
  const Attention owner = std::move(attention);
  const Shape shape{.num_q_heads = 2, .num_kv_heads = 2, .q_len = 40, .kv_len = 40};
  const std::string moved = "this Attention was moved from";
  // NOLINTBEGIN(bugprone-use-after-move)
  REQUIRE_THAT(refusal([&] { attention.forward(Packed().tensors()); }), ContainsSubstring(moved));
  REQUIRE_THAT(refusal([&] { attention.forward(Packed().tensors(), three_rows()); }),
               ContainsSubstring(moved));
  REQUIRE_THAT(refusal([&] { attention.block_mask(shape); }), ContainsSubstring(moved));
  REQUIRE_THAT(refusal([&] { attention.mask_fingerprint(shape); }), ContainsSubstring(moved));
  REQUIRE_THAT(refusal([&] { attention.bind({}); }), ContainsSubstring(moved));
  REQUIRE_THAT(refusal([&] { attention.prepare(); }), ContainsSubstring(moved));
  REQUIRE_THAT(refusal([&] { attention.builds(); }), ContainsSubstring(moved));
  REQUIRE_THAT(refusal([&] { attention.target(); }), ContainsSubstring(moved));
  REQUIRE_THAT(refusal([&] { attention.device(); }), ContainsSubstring(moved));
  REQUIRE_THAT(refusal([&] { attention.spec(); }), ContainsSubstring(moved));
  BlockMask mask = three_rows();
  REQUIRE_THAT(refusal([&] { attention.rebuild(mask, shape); }), ContainsSubstring(moved));

  const BlockMask mask_owner = std::move(mask);
  const std::string moved_mask = "this BlockMask was moved from";
  REQUIRE_THAT(refusal([&] { mask.row(0, 0, 0); }), ContainsSubstring(moved_mask));
  REQUIRE_THAT(refusal([&] { mask.lists(); }), ContainsSubstring(moved_mask));
  REQUIRE_THAT(refusal([&] { mask.transposed(); }), ContainsSubstring(moved_mask));
  REQUIRE_THAT(refusal([&] { mask.density(); }), ContainsSubstring(moved_mask));
  REQUIRE_THAT(refusal([&] { mask.path(); }), ContainsSubstring(moved_mask));
  REQUIRE_THAT(refusal([&] { mask.take_tiles(mask_owner); }), ContainsSubstring(moved_mask));
  REQUIRE_THAT(refusal([&] { to_flex(mask); }), ContainsSubstring(moved_mask));
  Bindings bindings;
  const Bindings bindings_owner = std::move(bindings);
  owner.forward(Packed().tensors(), bindings);

  cache::Store store({});
  const cache::Store store_owner = std::move(store);
  const cache::Key key{};
  REQUIRE_THAT(refusal([&] { store.load(key); }), ContainsSubstring("this Store was moved from"));
  REQUIRE_THAT(refusal([&] { store.stats(); }), ContainsSubstring("this Store was moved from"));
  // NOLINTEND(bugprone-use-after-move)
  REQUIRE_THAT(refusal([&] { cache::Store({}).load_or_build(key, {}); }),
               ContainsSubstring("nothing that builds an entry"));
}

TEST_CASE("limits: outputs that overlap another tensor are refused, interleaved ones are not") {
  const Packed packed;
  REQUIRE(packed.refusal_if([](const Packed&, ForwardTensors&) {}) == "accepted");
  const auto refused = [&](void (*change)(const Packed&, ForwardTensors&), const char* message) {
    REQUIRE_THAT(packed.refusal_if(change), ContainsSubstring(message));
  };
  refused([](const Packed& p, ForwardTensors& t) { t.out = p.slice(2); }, "out overlaps v");
  refused([](const Packed& p, ForwardTensors& t) { t.out = p.slice(1); }, "out overlaps k");
  refused([](const Packed& p, ForwardTensors& t) { t.out = p.slice(0, kRow); }, "out overlaps q");
  refused([](const Packed& p, ForwardTensors& t) { t.out = p.slice(3, -1); }, "out overlaps v");
  refused([](const Packed& p, ForwardTensors& t) { t.out = p.slice(3, 1); }, "out overlaps q");
  refused([](const Packed& p, ForwardTensors& t) { t.lse->data = p.slice(1).data; },
          "lse overlaps k");
  refused([](const Packed&, ForwardTensors& t) { t.lse->data = t.out.data; }, "lse overlaps");
  // Rows of out that share bytes, in each pair of dimensions.
  refused([](const Packed&, ForwardTensors& t) { t.out.strides[2] = 8; }, "out overlaps itself");
  refused([](const Packed&, ForwardTensors& t) { t.out.strides[1] = 8; }, "stride 8 (32 bytes)");
  refused([](const Packed&, ForwardTensors& t) { t.out.strides[2] = -15; }, "out overlaps itself");
  refused([](const Packed&, ForwardTensors& t) { t.out.strides[1] = kRow; },
          "out overlaps itself: elements [0, 0, 1, 0] and [0, 1, 0, 0] share bytes");
}

TEST_CASE("limits: out may be q itself") {
  const Packed apart, same;
  plain().forward(apart.tensors());
  ForwardTensors in_place = same.tensors();
  in_place.out = in_place.q;
  plain().forward(in_place);
  for (std::int64_t i = 0; i < kTokens * 2 * 16; ++i) {
    const std::int64_t at = i / 32 * kRow + i % 32;
    REQUIRE(static_cast<const float*>(in_place.out.data)[at] ==
            static_cast<const float*>(apart.tensors().out.data)[at]);
  }
}

TEST_CASE("limits: outputs that overlap a buffer, and a call without bind") {
  const Attention biased({.dtype = f32,
                          .head_dim = 16,
                          .score_mod = "score + bias[h]",
                          .buffers = {{"bias", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}}},
                         {.device = Device::cpu()});
  const Packed packed;
  ForwardTensors tensors = packed.tensors();
  tensors.lse.reset();
  REQUIRE_THAT(
      refusal([&] { biased.forward(tensors); }),
      ContainsSubstring("bind() was not called: this spec reads buffers bias; pass bindings"));
  const auto bound = [&](float* data, std::int64_t stride) {
    TensorView bias = TensorView::contiguous(data, f32, {2});
    bias.strides[0] = stride;
    return refusal([&] { biased.forward(tensors, biased.bind({.buffers = {{"bias", bias}}})); });
  };
  auto* const out = static_cast<float*>(tensors.out.data);
  REQUIRE_THAT(bound(out + 3, 1), ContainsSubstring("out overlaps buffer \"bias\""));
  REQUIRE_THAT(bound(out - 5, 5), ContainsSubstring("out overlaps buffer \"bias\""));
  REQUIRE(bound(out + 32, kRow) == "accepted");  // in q, between rows of out
}
