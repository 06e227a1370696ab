// kv_new on a CPU: the bits of an append and a call without it, bounds, and what is refused.
#include "tests/support/new_rows.hpp"

#include <string>

#include "tests/support/refusal.hpp"

namespace tilewright {
using test::refusal;
using namespace new_rows;

TEST_CASE("new rows: the bits of append and a paged call") {
  const Spec in_f32 = append_spec(f32, f32), in_bf16 = append_spec(bf16, bf16);
  for (const std::int64_t page_size : {1, 3, 16, 64}) {
    check_against_append(in_f32, Device::cpu(), page_size, TableForm::rows);
    check_against_append(in_bf16, Device::cpu(), page_size, TableForm::flat_with_ends);
  }
  check_against_append(in_f32, Device::cpu(), 140, TableForm::none);
  for (const char* const mask : {"", "q_idx >= kv_idx && q_idx - kv_idx < 16", "q_idx % 7 != 3"}) {
    check_against_append(with_mask(in_f32, mask), Device::cpu(), 16, TableForm::rows);
  }
}

TEST_CASE("new rows: a pool without pages, and lengths that leave the room") {
  Spec spec = append_spec(f32, f32);
  spec.kv_new = true;
  const Attention attention(spec, {.device = Device::cpu()});
  const Tensor q = random_tensor({4, 2, 24}, 1), k_new = random_tensor({4, 2, 24}, 2);
  const Tensor pool = Tensor::zeros(f32, {1, 4, 2, 24});
  TensorView none = pool.view();
  none.shape[0] = 0;
  const Tensor begins = int_tensor({0, 4}), lengths = int_tensor({9});
  const PackedShape shape = {
      .batch = 1, .num_q_heads = 2, .num_kv_heads = 2, .total_q = 4, .total_kv = 0, .page_size = 4};
  Workspace workspace(attention.workspace_size(shape));
  const Tensor table = Tensor::zeros(i32, {1, 2});
  const Plan plan = attention.plan(
      shape, {.q_begin = begins, .kv_len = lengths.view(), .page_table = table.view()}, {},
      {.workspace = workspace.view()});
  CHECK(plan.report().text() == "kv_len[0] is 9, but there is room for 4");
  Tensor out = Tensor::zeros(f32, {4, 2, 24}), lse = Tensor::zeros(f32, {2, 4});
  attention.forward({.q = q,
                     .k = none,
                     .v = none,
                     .out = out,
                     .lse = lse.view(),
                     .k_new = k_new.view(),
                     .v_new = k_new.view()},
                    plan);
  // The first row sees its own column alone.
  for (std::int64_t i = 0; i < 48; ++i)
    CHECK(floats(out)[i] == static_cast<const float*>(k_new.data())[i]);
}

TEST_CASE("new rows: kv_token is -1 there") {
  Spec spec = append_spec(f32, f32);
  spec.kv_new = true;
  spec.mask_mod = "kv_token < 0";
  const Attention attention(spec, {.device = Device::cpu()});
  const Batch batch = mixed_batch();
  const PagedBatch paged(batch, 16, TableForm::rows);
  const Step step(batch, paged);
  const PackedShape shape = paged.shape(batch);
  Workspace workspace(attention.workspace_size(shape));
  const Tensor q_begin = int_tensor(batch.q_begins);
  const Plan plan =
      attention.plan(shape, paged.sequences(q_begin), {}, {.workspace = workspace.view()});
  Results found(batch, f32);
  attention.forward({.q = batch.q,
                     .k = step.k,
                     .v = step.v,
                     .out = found.out,
                     .lse = found.lse.view(),
                     .k_new = step.k_new.view(),
                     .v_new = step.v_new.view()},
                    plan);
  // The first sequence's only row keeps its only new column: out is that row of v_new.
  const std::int64_t row = batch.q_begins[0];
  for (int h = 0; h < 4; ++h) {
    for (int d = 0; d < 24; ++d) {
      CHECK(floats(found.out)[(row * 4 + h) * 24 + d] ==
            static_cast<const float*>(step.v_new.data())[(row * 2 + h / 2) * 24 + d]);
    }
  }
}

TEST_CASE("new rows: what is refused") {
  Spec spec = append_spec(f32, f32);
  spec.kv_new = true;
  const Attention attention(spec, {.device = Device::cpu()});
  const Tensor q = random_tensor({4, 2, 24}, 1), k_new = random_tensor({4, 2, 24}, 2);
  const Tensor k = Tensor::zeros(f32, {2, 4, 2, 24}), v = Tensor::zeros(f32, {2, 4, 2, 24});
  const Tensor begins = int_tensor({0, 4}), lengths = int_tensor({6});
  const PackedShape shape = {
      .batch = 1, .num_q_heads = 2, .num_kv_heads = 2, .total_q = 4, .total_kv = 8, .page_size = 4};
  Workspace workspace(attention.workspace_size(shape));
  const Plan plan = attention.plan(shape, {.q_begin = begins, .kv_len = lengths.view()}, {},
                                   {.workspace = workspace.view()});
  Tensor out = Tensor::zeros(f32, {4, 2, 24}), lse = Tensor::zeros(f32, {2, 4});
  ForwardTensors tensors = {.q = q,
                            .k = k,
                            .v = v,
                            .out = out,
                            .lse = lse.view(),
                            .k_new = k_new.view(),
                            .v_new = k_new.view()};
  const auto forward = [&] { return refusal([&] { attention.forward(tensors, plan); }); };
  CHECK(forward().empty());
  tensors.k_new.reset();
  CHECK(forward() == "k_new is missing, but the spec says kv_new");
  const Tensor fewer = random_tensor({3, 2, 24}, 2);
  tensors.k_new = fewer.view();
  CHECK(forward() == "k_new has total_q 3, but that of q is 4");
  tensors.k_new = out.view();
  CHECK(forward().starts_with("out overlaps k_new in memory"));
  Spec packed = spec;
  packed.kv_layout.reset();
  CHECK(refusal([&] { Attention(packed, {.device = Device::cpu()}); }) ==
        "kv_new is true, but kv_layout is \"packed\"");
}

}  // namespace tilewright
