// Attention::merge on a CPU: against its definition in double, and what it refuses.
#include <string>

#include "tests/support/merged_parts.hpp"
#include "tests/support/refusal.hpp"

namespace tilewright {
using test::refusal;
using namespace merged_parts;
using packed_calls::fill;
using packed_calls::floats;
using packed_calls::in_dtype;
using packed_calls::kPoison;

namespace {

Attention merging(const Spec& spec) {
  return Attention(spec, {.device = Device::cpu(), .merge = true});
}

}  // namespace

TEST_CASE("merge: the attention over all columns, in every layout and dtype") {
  const Layout layout = GENERATE(Layout::bhsd, Layout::bshd, Layout::packed);
  const DType dtype = GENERATE(f32, f16, bf16);
  const Spec spec = merge_spec(dtype, layout, 24);
  const Attention attention = merging(spec);
  for (const int count : {2, 3, 16}) {
    CAPTURE(to_string(layout), to_string(dtype), count);
    check_merge(attention, count, layout == Layout::packed ? 1 : 2, 3, 70);
  }
}

TEST_CASE("merge: parts without columns do not count, and rows without any are 0") {
  check_empty_parts(merging(merge_spec(f32, Layout::packed, 16)));
}

TEST_CASE("merge: NaN and infinite lse") {
  check_special_values(merging(merge_spec(f32, Layout::bhsd, 16)));
}

TEST_CASE("merge: out and lse may be a part's") {
  check_in_place(merging(merge_spec(f16, Layout::bshd, 72)));
}

TEST_CASE("merge: parts of two calls over halves of the columns are the call over all") {
  const Spec spec = merge_spec(f32, Layout::bhsd, 32);
  const Attention attention = merging(spec);
  const Tensor q = packed_calls::random_tensor({1, 2, 40, 32}, 1);
  const Tensor k = packed_calls::random_tensor({1, 2, 100, 32}, 2);
  const Tensor v = packed_calls::random_tensor({1, 2, 100, 32}, 3);
  const auto run = [&](std::int64_t begin, std::int64_t count, Tensor& out, Tensor& lse) {
    TensorView some_k = k.view(), some_v = v.view();
    some_k.data = static_cast<float*>(some_k.data) + begin * 32;
    some_v.data = static_cast<float*>(some_v.data) + begin * 32;
    some_k.shape[2] = some_v.shape[2] = count;
    attention.forward({.q = q, .k = some_k, .v = some_v, .out = out, .lse = lse.view()});
  };
  const auto outs = [] { return Tensor::zeros(f32, {1, 2, 40, 32}); };
  const auto lses = [] { return Tensor::zeros(f32, {1, 2, 40}); };
  Tensor all = outs(), first = outs(), second = outs(), merged = outs();
  Tensor all_lse = lses(), first_lse = lses(), second_lse = lses(), merged_lse = lses();
  run(0, 100, all, all_lse);
  run(0, 37, first, first_lse);
  run(37, 63, second, second_lse);
  const Part parts[] = {{first, first_lse}, {second, second_lse}};
  attention.merge(parts, merged, merged_lse.view());
  for (std::int64_t i = 0; i < all.numel(); ++i) {
    REQUIRE(std::fabs(floats(all)[i] - floats(merged)[i]) <= 2e-6f);
  }
  for (std::int64_t i = 0; i < all_lse.numel(); ++i) {
    REQUIRE(std::fabs(floats(all_lse)[i] - floats(merged_lse)[i]) <= 2e-6f);
  }
}

TEST_CASE("merge: what it refuses says what to do") {
  const Spec spec = merge_spec(f32, Layout::bhsd, 16);
  const Attention attention = merging(spec);
  const Parts parts(spec, 2, 1, 2, 5);
  Tensor out = Tensor::zeros(f32, parts.out_shape), lse = Tensor::zeros(f32, parts.lse_shape);
  std::vector<Part> given = {{parts.out[0], parts.lse[0]}, {parts.out[1], parts.lse[1]}};
  const auto merge = [&] { return refusal([&] { attention.merge(given, out, lse.view()); }); };
  CHECK(merge().empty());
  const Part good = given[1];
  given[1].lse = {};
  CHECK(merge() == "parts[1].lse is missing: a part counts by its lse");
  given[1].lse = parts.out[1];
  CHECK(merge().starts_with("parts[1].lse does not fit: given f32 [1, 2, 5, 16]"));
  given[1] = good;
  const Tensor half = Tensor::zeros(f16, parts.out_shape);
  given[1].out = half;
  CHECK(merge() == "parts[1].out is f16, but the spec says f32");
  const Tensor more_rows = Tensor::zeros(f32, {1, 2, 6, 16});
  given[1].out = more_rows;
  CHECK(merge() == "parts[1].out has q_len 6, but that of out is 5");
  const Tensor wider = Tensor::zeros(f32, {1, 2, 5, 24});
  given[1].out = wider;
  CHECK(merge() == "parts[1].out has v_head_dim 24, but the spec's v_head_dim is 16");
  // One row of out later.
  Tensor room = Tensor::zeros(f32, {1, 2, 6, 16});
  TensorView shifted = out.view();
  shifted.data = floats(room);
  given[1].out = shifted;
  TensorView to = shifted;
  to.data = floats(room) + 16;
  CHECK(refusal([&] { attention.merge(given, to); }) == "out overlaps parts[1].out in memory");
  given[1] = good;
  CHECK(refusal([&] {
          attention.merge(given, out, TensorView::contiguous(floats(out), f32, {1, 2, 5}));
        }) == "lse overlaps out in memory");
  given.resize(1);
  CHECK(merge() == "merge was given 1 part; it takes 2 to 16");
  given.assign(17, good);
  CHECK(merge() == "merge was given 17 parts; it takes 2 to 16");
  const Attention without(spec, {.device = Device::cpu()});
  given.resize(2);
  CHECK(refusal([&] { without.merge(given, out); }) == "this Attention has no kernel that merges");
  Spec no_lse = spec;
  no_lse.outputs.lse = false;
  CHECK(refusal([&] { merging(no_lse); }).starts_with("merge needs the lse of each part"));
}

TEST_CASE("merge: a packed call without rows does nothing") {
  const Spec spec = merge_spec(f32, Layout::packed, 16);
  const Tensor none = Tensor::zeros(f32, {1, 3, 16}), lse = Tensor::zeros(f32, {3, 1});
  TensorView empty = none.view(), empty_lse = lse.view();
  empty.shape[0] = empty_lse.shape[1] = 0;
  const Part parts[] = {{empty, empty_lse}, {empty, empty_lse}};
  merging(spec).merge(parts, empty, empty_lse);
}

}  // namespace tilewright
