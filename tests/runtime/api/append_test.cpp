// Attention::append on a CPU: what pools hold after it, and what it refuses.
#include <string>

#include "tests/support/appended_rows.hpp"
#include "tests/support/refusal.hpp"

namespace tilewright {
using test::refusal;
using namespace appended_rows;

namespace {

Attention appending(const Spec& spec) {
  return Attention(spec, {.device = Device::cpu(), .append = true});
}

}  // namespace

TEST_CASE("append: pools hold the new rows, and the rest is unchanged") {
  const Attention in_f32 = appending(append_spec(f32, f32)),
                  mixed = appending(append_spec(f32, f16));
  const Attention narrow = appending(append_spec(bf16, bf16));
  for (const std::int64_t page_size : {1, 3, 16, 64}) {
    check_append(in_f32, page_size, TableForm::rows);
    check_append(mixed, page_size, TableForm::flat);
    check_append(narrow, page_size, TableForm::flat_with_ends);
  }
  check_append(in_f32, 140, TableForm::none);
}

TEST_CASE("append: rows of absent pages are skipped") {
  check_absent_pages(appending(append_spec(f32, f32)));
}

TEST_CASE("append: finite values stay finite in a narrower dtype") {
  const Attention attention = appending(append_spec(f32, f16));
  Tensor k_new = Tensor::zeros(f32, {1, 1, 24}), v_new = Tensor::zeros(f32, {1, 1, 24});
  floats(k_new)[0] = 1e6f;
  floats(k_new)[1] = -1e30f;
  floats(k_new)[2] = std::numeric_limits<float>::infinity();
  floats(k_new)[3] = kPoison;
  floats(k_new)[4] = 1.0f + 0x1p-11f;  // between two: to the even one
  Tensor k = Tensor::zeros(f16, {1, 1, 1, 24}), v = Tensor::zeros(f16, {1, 1, 1, 24});
  const Tensor slots = int_tensor({0});
  attention.append({.k_new = k_new, .v_new = v_new, .slots = slots.view()}, k, v);
  Tensor found = Tensor::zeros(f32, k.shape());
  read_back(k, found);
  CHECK(floats(found)[0] == 65504.0f);
  CHECK(floats(found)[1] == -65504.0f);
  CHECK(floats(found)[2] == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(floats(found)[3]));
  CHECK(floats(found)[4] == 1.0f);
}

TEST_CASE("append: pools may be views with other strides, side by side") {
  const Attention attention = appending(append_spec(f32, f32));
  const Tensor k_new = random_tensor({5, 2, 24}, 1), v_new = random_tensor({5, 2, 24}, 2);
  // [pages, heads, page_size, K and V, dim]
  Tensor both = Tensor::zeros(f32, {3, 2, 4, 2, 24});
  fill(both, -3.0f);
  TensorView k = TensorView::contiguous(both.data(), f32, {3, 4, 2, 24});
  k.strides = {2 * 4 * 48, 48, 4 * 48, 1};
  TensorView v = k;
  v.data = floats(both) + 24;
  const Tensor slots = int_tensor({11, 0, -1, 5, 12});
  attention.append({.k_new = k_new, .v_new = v_new, .slots = slots.view()}, k, v);
  for (std::int64_t slot = 0; slot < 12; ++slot) {
    const std::int64_t row = slot == 11 ? 0 : slot == 0 ? 1 : slot == 5 ? 3 : -1;
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t d = 0; d < 24; ++d) {
        const std::int64_t at = slot / 4 * 384 + slot % 4 * 48 + h * 192 + d;
        const auto wanted = [&](const Tensor& fresh) {
          return row < 0 ? -3.0f : static_cast<const float*>(fresh.data())[(row * 2 + h) * 24 + d];
        };
        REQUIRE(floats(both)[at] == wanted(k_new));
        REQUIRE(floats(both)[at + 24] == wanted(v_new));
      }
    }
  }
}

TEST_CASE("append: what it refuses says what to do") {
  const Attention attention = appending(append_spec(f32, f32));
  const Tensor k_new = random_tensor({5, 2, 24}, 1), v_new = random_tensor({5, 2, 24}, 2);
  const Tensor k = Tensor::zeros(f32, {3, 4, 2, 24}), v = Tensor::zeros(f32, {3, 4, 2, 24});
  const Tensor slots = int_tensor({0, 1, 2, 3, 4}), few = int_tensor({0, 1});
  const NewRows good = {.k_new = k_new, .v_new = v_new, .slots = slots.view()};
  const auto append = [&](const NewRows& rows, const TensorView& to_k, const TensorView& to_v) {
    return refusal([&] { attention.append(rows, to_k, to_v); });
  };
  CHECK(append(good, k, v).empty());
  NewRows rows = good;
  rows.slots.reset();
  CHECK(append(rows, k, v) == "append was given neither slots nor a plan");
  rows.slots = few.view();
  CHECK(append(rows, k, v) == "slots has 2 elements, but k_new has 5 rows");
  rows.slots = k_new.view();
  CHECK(append(rows, k, v) == "slots is f32; it must be i32 or i64");
  const Tensor in_f16 = Tensor::zeros(f16, {5, 2, 24}), one_head = Tensor::zeros(f32, {5, 1, 24});
  rows = good;
  rows.k_new = in_f16;
  CHECK(append(rows, k, v) == "k_new is f16, but the spec says f32");
  rows = good;
  rows.v_new = one_head;
  CHECK(append(rows, k, v) == "v_new has num_kv_heads 1, but that of k is 2");
  CHECK(append(good, k, k) == "k overlaps v in memory");
  CHECK(append(good, k_new, v) == "k has rank 3; paged attention needs rank 4");
  const Tensor other_pages = Tensor::zeros(f32, {3, 5, 2, 24});
  CHECK(append(good, k, other_pages) == "v has page_size 5, but that of k is 4");
  TensorView shared = k.view();
  shared.strides[0] = 0;
  CHECK(append(good, shared, v).starts_with("k overlaps itself"));

  const Attention without(append_spec(f32, f32), {.device = Device::cpu()});
  CHECK(refusal([&] { without.append(good, k, v); }) ==
        "this Attention has no kernel that appends");
  Spec packed = append_spec(f32, f32);
  packed.kv_layout.reset();
  CHECK(refusal([&] { appending(packed); }) ==
        "append writes to pages, and kv_layout is \"packed\"");

  const PackedShape shape = {.batch = 1,
                             .num_q_heads = 2,
                             .num_kv_heads = 2,
                             .total_q = 5,
                             .total_kv = 12,
                             .page_size = 4};
  const Tensor begins = int_tensor({0, 5}), lengths = int_tensor({4});
  Workspace workspace(attention.workspace_size(shape));
  const Sequences sequences = {.q_begin = begins, .kv_len = lengths.view()};
  const Plan plan = attention.plan(shape, sequences, {}, {.workspace = workspace.view()});
  rows = {.k_new = k_new, .v_new = v_new};
  CHECK(refusal([&] { attention.append(rows, other_pages, other_pages, &plan); }) ==
        "k has page_size 5, but the plan was made for 4");
  CHECK(refusal([&] { appending(append_spec(f32, f32)).append(rows, k, v, &plan); }) ==
        "the plan was made by another Attention");
  CHECK(refusal([&] { attention.append(rows, k, v, &plan); }).empty());
}

}  // namespace tilewright
