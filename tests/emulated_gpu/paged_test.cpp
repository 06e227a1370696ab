// Paged calls on the emulated GPU, against packed calls on the CPU: the portable kernel in float32
// and on tensor cores.
#include <cmath>

#include "tests/support/paged_batch.hpp"

namespace tilewright {
using namespace packed_calls;

namespace {

// As in packed_test.cpp: P and out in f16 are each off by 2^-11 of what is at most 1.5.
constexpr float kF16Tolerance = 2 * 1.5f * 0x1p-11f;

void require_near(const Tensor& found, const Tensor& wanted, float tolerance) {
  const auto* const a = static_cast<const float*>(found.data());
  const auto* const b = static_cast<const float*>(wanted.data());
  for (std::int64_t i = 0; i < wanted.numel(); ++i) {
    CAPTURE(i, a[i], b[i]);
    const bool is_near = a[i] == b[i] || std::fabs(a[i] - b[i]) <= tolerance;
    REQUIRE(is_near);
  }
}

void check(const Spec& spec, Batch& batch, std::int64_t page_size, TableForm form,
           std::int64_t misaligned = 0) {
  CAPTURE(to_string(spec.dtype), spec.mask_mod, page_size, static_cast<int>(form), misaligned);
  const BatchTensors staged(batch, spec.dtype);  // what f16 holds, the CPU gets too
  const PagedBatch paged(batch, page_size, form);
  run_packed(spec, batch);
  const Attention attention(spec, {.device = Device::parse("cuda")});
  const PackedShape shape = paged.shape(batch);
  Workspace workspace(attention.workspace_size(shape));
  const Plan plan = attention.plan(shape, paged.sequences(staged.q_begin), {},
                                   {.workspace = workspace.view(), .count_absent = true});
  CHECK(plan.report().text().empty());
  Tensor k = in_dtype(paged.k, spec.dtype), v = in_dtype(paged.v, spec.dtype);
  if (misaligned > 0) {
    // The same rows, `misaligned` elements into a larger pool.
    const auto moved = [&](const Tensor& from) {
      const std::int64_t width = from.shape()[3];
      Tensor to = Tensor::zeros(
          spec.dtype, {from.shape()[0], from.shape()[1], from.shape()[2], width + 2 * misaligned});
      const auto bytes = static_cast<std::int64_t>(size_of(spec.dtype));
      for (std::int64_t row = 0; row < from.numel() / width; ++row) {
        std::memcpy(static_cast<std::byte*>(to.data()) +
                        (row * (width + 2 * misaligned) + misaligned) * bytes,
                    static_cast<const std::byte*>(from.data()) + row * width * bytes,
                    static_cast<std::size_t>(width * bytes));
      }
      return to;
    };
    k = moved(k);
    v = moved(v);
  }
  const auto pool = [&](const Tensor& tensor) {
    TensorView view = tensor.view();
    if (misaligned == 0) return view;
    view.data = static_cast<std::byte*>(view.data) +
                misaligned * static_cast<std::int64_t>(size_of(spec.dtype));
    view.shape[3] -= 2 * misaligned;
    return view;
  };
  Tensor lse = Tensor::zeros(f32, batch.lse.shape()), found = Tensor::zeros(f32, batch.out.shape());
  // Twice, as a call leaves a plan's counters as they were.
  for (int call = 0; call < 2; ++call) {
    fill(lse, -9.0f);
    fill(found, -7.0f);
    Tensor out = in_dtype(found, spec.dtype);
    attention.forward({.q = staged.q, .k = pool(k), .v = pool(v), .out = out, .lse = lse.view()},
                      plan);
    read_back(out, found);
    require_near(found, batch.out, spec.dtype == f16 ? kF16Tolerance : 2e-5f);
    require_near(lse, batch.lse, spec.dtype == f16 ? 2e-3f : 2e-5f);
  }
}

Batch mixed_batch() {
  Batch batch = {.lengths = {{1, 132}, {5, 18}, {70, 103}, {0, 9}, {7, 0}, {3, 64}},
                 .heads = 4,
                 .kv_heads = 2,
                 .dim = 32};
  batch.make();
  return batch;
}

}  // namespace

TEST_CASE("paged on a GPU: sizes of pages and forms of tables", "[every-kind]") {
  const DType dtype = GENERATE(f32, f16);
  const Spec spec = paged_spec(dtype, 32, "q_idx >= kv_idx");
  for (const std::int64_t page_size : {1, 3, 16, 17, 64}) {
    Batch batch = mixed_batch();
    check(spec, batch, page_size, page_size % 2 == 0 ? TableForm::rows : TableForm::flat_with_ends);
  }
  Batch batch = mixed_batch();
  check(spec, batch, 140, TableForm::none);
}

// Sequences whose rows of q times the heads of a head of k and v are at most 16 are decoded; the
// last of the second batch is not. Its tile map tells heads apart.
TEST_CASE(
    "paged on a GPU: decoding with wide heads, large groups and heads that keep other tiles") {
  Batch wide = {.lengths = {{1, 300}, {1, 0}, {1, 77}}, .heads = 16, .kv_heads = 1, .dim = 256};
  wide.make();
  check(paged_spec(f16, 256, "q_idx >= kv_idx"), wide, 16, TableForm::rows);
  Batch mixed = {.lengths = {{4, 260}, {5, 33}, {6, 300}}, .heads = 6, .kv_heads = 2, .dim = 72};
  mixed.make();
  check(paged_spec(f16, 72, "q_idx >= kv_idx && (kv_idx / 128 + h) % 3 != 0"), mixed, 3,
        TableForm::flat);
}

TEST_CASE("paged on a GPU: without a mask, and tensors that are not aligned") {
  const DType dtype = GENERATE(f32, f16);
  Batch batch = mixed_batch();
  check(paged_spec(dtype, 32, ""), batch, 16, TableForm::flat);
  Batch other = mixed_batch();
  check(paged_spec(dtype, 32, "q_idx >= kv_idx"), other, 16, TableForm::rows, 1);
}

TEST_CASE("paged on a GPU: rows of freed and absent pages are zeros, and absent ones are counted") {
  const Spec spec = paged_spec(f16, 32, "");
  Batch batch = {.lengths = {{3, 40}}, .heads = 1, .kv_heads = 1, .dim = 32};
  batch.make();
  PagedBatch paged(batch, 16, TableForm::rows);
  for (std::int64_t i = 16 * 32; i < 32 * 32; ++i) {
    floats(batch.k)[batch.kv_begins[0] * 32 + i] = floats(batch.v)[batch.kv_begins[0] * 32 + i] = 0;
  }
  const BatchTensors staged(batch, f16);
  run_packed(spec, batch);
  const Attention attention(spec, {.device = Device::parse("cuda")});
  const PackedShape shape = paged.shape(batch);
  Workspace workspace(attention.workspace_size(shape));
  const Tensor k = in_dtype(paged.k, f16), v = in_dtype(paged.v, f16);
  for (const int entry : {-1, 1 << 30, -7}) {
    static_cast<int*>(paged.page_table->data())[1] = entry;
    const Plan plan = attention.plan(shape, paged.sequences(staged.q_begin), {},
                                     {.workspace = workspace.view(), .count_absent = true});
    CHECK(plan.report().count == (entry == -1 ? 0 : 1));
    Tensor lse = Tensor::zeros(f32, batch.lse.shape());
    Tensor found = Tensor::zeros(f32, batch.out.shape());
    fill(found, -7.0f);
    fill(lse, -9.0f);
    Tensor out = in_dtype(found, f16);
    attention.forward({.q = staged.q, .k = k, .v = v, .out = out, .lse = lse.view()}, plan);
    read_back(out, found);
    require_near(found, batch.out, kF16Tolerance);
    require_near(lse, batch.lse, 2e-3f);
  }
}

TEST_CASE("paged on a GPU: kv_token is a row of the pool") {
  Spec spec = paged_spec(f32, 32, "keep[kv_token]");
  spec.score_mod = "score + bias[kv_token]";
  spec.buffers = {{"bias", {.dtype = f32, .shape = {NamedDim::total_kv}}},
                  {"keep", {.dtype = boolean, .shape = {NamedDim::total_kv}}}};
  Batch batch = {.lengths = {{9, 40}, {2, 70}}, .heads = 2, .kv_heads = 1, .dim = 32};
  batch.make();
  const PagedBatch paged(batch, 16, TableForm::flat);
  const PackedShape shape = paged.shape(batch);
  const Tensor bias = random_tensor({shape.total_kv}, 5);
  Tensor keep = Tensor::zeros(boolean, {shape.total_kv});
  for (std::int64_t i = 0; i < shape.total_kv; ++i) {
    static_cast<std::uint8_t*>(keep.data())[i] = i % 3 != 1;
  }
  const Tensor q_begin = int_tensor(batch.q_begins);
  const auto run = [&](const Device& device) {
    const Attention attention(spec, {.device = device});
    const Bindings bindings = attention.bind({.buffers = {{"bias", bias}, {"keep", keep}}});
    Workspace workspace(attention.workspace_size(shape));
    const Plan plan =
        attention.plan(shape, paged.sequences(q_begin), bindings, {.workspace = workspace.view()});
    Tensor out = Tensor::zeros(f32, batch.out.shape());
    Tensor lse = Tensor::zeros(f32, batch.lse.shape());
    attention.forward({.q = batch.q, .k = paged.k, .v = paged.v, .out = out, .lse = lse.view()},
                      plan, bindings);
    return out;
  };
  require_near(run(Device::parse("cuda")), run(Device::cpu()), 2e-5f);
}

}  // namespace tilewright
