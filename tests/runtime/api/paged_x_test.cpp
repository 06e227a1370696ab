// What calls over pages of paged_x refuse.
#include <string>

#include "tests/support/appended_rows.hpp"
#include "tests/support/refusal.hpp"

namespace tilewright {
using namespace appended_rows;
using test::refusal;

TEST_CASE("paged_x: what a call refuses says what is wrong") {
  Spec spec = paged_spec(f16, 24, "");
  spec.kv_layout = Layout::paged_x;
  const Attention attention(spec, {.device = Device::cpu(), .masks_only = true, .append = true});
  const Tensor fresh = Tensor::zeros(f16, {2, 2, 24}), slots = int_tensor({0, 5});
  const Tensor k = Tensor::zeros(f16, {3, 2, 3, 4, 8}), v = Tensor::zeros(f16, {3, 2, 24, 4});
  const auto append = [&](const TensorView& to_k, const TensorView& to_v) {
    return refusal([&] {
      attention.append({.k_new = fresh, .v_new = fresh, .slots = slots.view()}, to_k, to_v);
    });
  };
  CHECK(append(k, v).empty());
  const Tensor in_pages = Tensor::zeros(f16, {3, 4, 2, 24});
  CHECK(append(in_pages, v) == "k has rank 4; kv_layout \"paged_x\" needs rank 5");
  CHECK(append(k, k) == "v has rank 5; kv_layout \"paged_x\" needs rank 4");
  const Tensor fours = Tensor::zeros(f16, {3, 2, 6, 4, 4}),
               short_k = Tensor::zeros(f16, {3, 2, 2, 4, 8});
  CHECK(append(fours, v) == "k has 4 elements in its last dimension, but 16 bytes of f16 are 8");
  CHECK(append(short_k, v) == "k has head_dim 16, but the spec's head_dim is 24");
  CHECK(append(k, in_pages) == "v has v_head_dim 2, but the spec's v_head_dim is 24");
  const Tensor other_pages = Tensor::zeros(f16, {3, 2, 24, 5});
  CHECK(append(k, other_pages) == "v has page_size 5, but that of k is 4");
  // Heads and pages may lie apart, elements of a head's page may not.
  const Tensor wide = Tensor::zeros(f16, {3, 4, 3, 4, 8});
  TensorView heads = wide.view();
  heads.shape[1] = 2;
  heads.strides[1] *= 2;
  CHECK(append(heads, v).empty());
  TensorView rows = wide.view();
  rows.shape[1] = 2;
  rows.strides[3] = 16;
  CHECK(
      append(rows, v) ==
      "k has stride 16 in dimension 3; what a page of kv_layout \"paged_x\" has of a head must be "
      "contiguous");
  const PackedShape shape = {
      .batch = 1, .num_q_heads = 2, .num_kv_heads = 2, .total_q = 2, .total_kv = 12};
  CHECK(refusal([&] { static_cast<void>(attention.workspace_size(shape)); }) ==
        "kv_layout is \"paged_x\", and the shape has no page_size");
}

TEST_CASE("paged_x: quantise stores no pools") {
  Spec spec = paged_spec(bf16, 32, "");
  spec.kv_layout = Layout::paged_x;
  spec.kv_dtype = f8e4m3;
  spec.k_scale = spec.v_scale = "1.0f";
  const Attention attention(spec, {.device = Device::cpu(), .masks_only = true, .quantise = true});
  const Tensor from = Tensor::zeros(bf16, {3, 2, 2, 4, 16}),
               to = Tensor::zeros(f8e4m3, {3, 2, 2, 4, 16});
  CHECK(refusal([&] { attention.quantise(from, to, nullptr, Operand::k); }) ==
        "quantise does not write pools of kv_layout \"paged_x\"");
}

}  // namespace tilewright
