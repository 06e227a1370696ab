// Packed calls through the C ABI against the C++ API.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "generator/spec/spec_json.hpp"
#include "tests/c/calls.hpp"
#include "tests/support/paged_batch.hpp"

using namespace tilewright;
using namespace tilewright::c_abi;
using Catch::Matchers::ContainsSubstring;

namespace {

const char* const kPacked = R"({
  "dtype": "f32", "head_dim": 16, "layout": "packed", "outputs": ["out", "lse"],
  "mask_mod": "q_idx >= kv_idx", "block": [32, 32]})";

tw_tensor c_tensor(const TensorView& view) {
  return tw_tensor_contiguous(view.data, static_cast<std::int32_t>(view.dtype), view.rank,
                              view.shape.data());
}

// Two sequences of 40 and 25 rows.
struct Step {
  packed_calls::Batch batch{.lengths = {{40, 40}, {25, 50}}, .heads = 2, .kv_heads = 1, .dim = 16};
  Tensor q_begin, kv_begin, kv_len;

  Step() {
    batch.make();
    q_begin = packed_calls::int_tensor(batch.q_begins);
    kv_begin = packed_calls::int_tensor(batch.kv_begins);
    kv_len = packed_calls::int_tensor(batch.kv_lens);
  }

  tw_packed_shape shape() const {
    const PackedShape sizes = batch.shape();
    return {sizeof(tw_packed_shape),
            sizes.batch,
            sizes.num_q_heads,
            sizes.num_kv_heads,
            sizes.total_q,
            sizes.total_kv,
            0,
            0,
            0};
  }

  tw_sequences sequences() const {
    auto made = sized<tw_sequences>();
    made.q_begin = c_tensor(q_begin);
    made.kv_begin = c_tensor(kv_begin);
    made.kv_len = c_tensor(kv_len);
    return made;
  }

  tw_call call() {
    auto made = sized<tw_call>();
    made.q = c_tensor(batch.q);
    made.k = c_tensor(batch.k);
    made.v = c_tensor(batch.v);
    made.out = c_tensor(batch.out);
    made.lse = c_tensor(batch.lse);
    return made;
  }
};

bool same(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.bytes())) == 0;
}

// A plan with its memory.
struct Planned {
  std::int64_t bytes = 0;
  packed_calls::Workspace memory;
  PlanHandle plan;

  Planned(const AttentionHandle& made, const Step& step, const tw_mask* positions = nullptr)
      : bytes(size_of_workspace(made, step, positions)), memory(bytes) {
    const tw_packed_shape sizes = step.shape();
    const tw_sequences sequences = step.sequences();
    auto options = sized<tw_plan_options>();
    options.workspace = memory.view().data;
    options.workspace_bytes = bytes;
    options.positions = positions;
    plan = make<PlanHandle>(tw_plan_create, made.get(), &sizes, &sequences, nullptr, &options);
  }

  static std::int64_t size_of_workspace(const AttentionHandle& made, const Step& step,
                                        const tw_mask* positions) {
    std::int64_t size = 0;
    const tw_packed_shape sizes = step.shape();
    auto options = sized<tw_plan_options>();
    options.positions = positions;
    options.batch_invariant = 1;
    succeed(tw_plan_workspace_size, made.get(), &sizes, &options, &size);
    return size;
  }
};

}  // namespace

TEST_CASE("C: a packed call equals the C++ call, and after a rebuild too") {
  Step by_c, by_cpp;
  const Attention expected(spec_from_json(kPacked), {.device = Device::cpu()});
  packed_calls::Workspace memory(expected.workspace_size(by_cpp.batch.shape()));
  Plan plan = expected.plan(by_cpp.batch.shape(),
                            {.q_begin = by_cpp.q_begin,
                             .kv_begin = by_cpp.kv_begin.view(),
                             .kv_len = by_cpp.kv_len.view()},
                            {}, {.workspace = memory.view()});
  const auto run = [&] {
    auto& batch = by_cpp.batch;
    expected.forward(
        {.q = batch.q, .k = batch.k, .v = batch.v, .out = batch.out, .lse = batch.lse.view()},
        plan);
  };
  const AttentionHandle made = attention(kPacked);
  const Planned planned(made, by_c);
  tw_call call = by_c.call();
  call.plan = planned.plan.get();
  succeed(tw_forward, made.get(), &call);
  run();
  CHECK(same(by_c.batch.out, by_cpp.batch.out));
  CHECK(same(by_c.batch.lse, by_cpp.batch.lse));

  for (Step* step : {&by_c, &by_cpp}) static_cast<std::int32_t*>(step->kv_len.data())[1] = 33;
  succeed(tw_plan_rebuild, made.get(), planned.plan.get(), nullptr, nullptr);
  succeed(tw_forward, made.get(), &call);
  expected.rebuild(plan);
  run();
  CHECK(same(by_c.batch.out, by_cpp.batch.out));
}

TEST_CASE("C: a plan reports what it clamped, in numbers and in words") {
  Step step;
  const AttentionHandle made = attention(kPacked);
  static_cast<std::int32_t*>(step.kv_len.data())[1] = 5000;
  const Planned planned(made, step);
  auto report = sized<tw_report>();
  const auto* const plan = planned.plan.get();
  succeed(tw_plan_report, plan, &report);
  CHECK((report.count == 1 && report.kind == TW_KV_LEN && report.sequence == 1));
  CHECK((report.value == 5000 && report.limit < 5000 && report.unplanned_rows > 0));
  CHECK(report.unsorted == 0);
  CHECK_THAT(text(tw_plan_report_text, plan), ContainsSubstring("kv_len[1] is 5000"));
}

TEST_CASE("C: a plan's workspace is as large with batch_invariant and count_absent") {
  const Step step;
  const AttentionHandle made = attention(kPacked);
  const tw_packed_shape sizes = step.shape();
  auto options = sized<tw_plan_options>();
  options.batch_invariant = options.count_absent = 1;
  std::int64_t bytes = 0;
  succeed(tw_plan_workspace_size, made.get(), &sizes, &options, &bytes);
  std::int64_t without = 0;
  succeed(tw_plan_workspace_size, made.get(), &sizes, nullptr, &without);
  CHECK((bytes > 0 && bytes == without));
}

TEST_CASE("C: positions decide a plan's tiles") {
  Step step;
  tw_options options = cpu_options();
  options.positions = 1;
  const AttentionHandle made = attention(kPacked, options);
  std::vector<std::int32_t> rows = {0, 1, 3}, columns = {0, 0, 1};
  const tw_tensor crow = tensor(rows, {3}), col = tensor(columns, {3});
  const auto positions = make<MaskHandle>(tw_positions_from_csr, made.get(), int64_t{64},
                                          int64_t{1}, nullptr, &crow, &col);
  const Planned planned(made, step, positions.get());
  tw_call call = step.call();
  call.plan = planned.plan.get();
  succeed(tw_forward, made.get(), &call);
  auto report = sized<tw_report>();
  succeed(tw_plan_report, planned.plan.get(), &report);
  CHECK((report.count == 0 && report.kind == TW_NOTHING_CLAMPED));
}

TEST_CASE("C: k and v in pages give the bits of packed ones, and an absent page is counted") {
  Step packed_step, paged_step;
  const AttentionHandle packed = attention(kPacked);
  const Planned packed_plan(packed, packed_step);
  tw_call packed_call = packed_step.call();
  packed_call.plan = packed_plan.plan.get();
  succeed(tw_forward, packed.get(), &packed_call);

  std::string spec = kPacked;
  spec.insert(spec.rfind('}'), R"(, "kv_layout": "paged")");
  const AttentionHandle made = attention(spec.c_str());
  packed_calls::PagedBatch paged(paged_step.batch, 16, packed_calls::TableForm::flat_with_ends);
  tw_packed_shape sizes = paged_step.shape();
  sizes.page_size = paged.page_size;
  sizes.total_kv = paged.pages * paged.page_size;
  tw_sequences sequences = paged_step.sequences();
  sequences.kv_begin = {};
  sequences.page_table = c_tensor(*paged.page_table);
  sequences.page_begin = c_tensor(*paged.page_begin);
  std::int64_t bytes = 0;
  succeed(tw_plan_workspace_size, made.get(), &sizes, nullptr, &bytes);
  packed_calls::Workspace memory(bytes);
  auto options = sized<tw_plan_options>();
  options.workspace = memory.view().data;
  options.workspace_bytes = bytes;
  options.count_absent = 1;
  const auto plan =
      make<PlanHandle>(tw_plan_create, made.get(), &sizes, &sequences, nullptr, &options);
  tw_call call = paged_step.call();
  call.k = c_tensor(paged.k);
  call.v = c_tensor(paged.v);
  call.plan = plan.get();
  succeed(tw_forward, made.get(), &call);
  CHECK(same(paged_step.batch.out, packed_step.batch.out));
  CHECK(same(paged_step.batch.lse, packed_step.batch.lse));

  static_cast<std::int32_t*>(paged.page_table->data())[0] = 77;
  succeed(tw_plan_rebuild, made.get(), plan.get(), nullptr, nullptr);
  auto report = sized<tw_report>();
  succeed(tw_plan_report, plan.get(), &report);
  CHECK((report.count == 1 && report.kind == TW_PAGE_TABLE && report.value == 77));
}

TEST_CASE("C: pages of a packed spec are refused, and a plan with a mask") {
  Step step;
  const AttentionHandle made = attention(kPacked);
  const Planned planned(made, step);
  tw_sequences sequences = step.sequences();
  sequences.page_table = sequences.kv_len;
  const tw_packed_shape sizes = step.shape();
  const auto options = sized<tw_plan_options>();
  const ErrorHandle error = fail(TW_TENSOR, [&](tw_error** to) {
    tw_plan* plan = nullptr;
    return tw_plan_create(made.get(), &sizes, &sequences, nullptr, &options, &plan, to);
  });
  CHECK_THAT(tw_error_message(error.get()),
             ContainsSubstring("page_table was given, and kv_layout is \"packed\""));

  const AttentionHandle dense =
      attention(R"({"dtype": "f32", "head_dim": 16, "mask_mod": "q_idx >= kv_idx"})");
  const tw_shape square = shape(1, 64, 64);
  const auto mask = make<MaskHandle>(tw_mask_create, dense.get(), &square, nullptr, nullptr);
  tw_call call = step.call();
  call.plan = planned.plan.get();
  call.mask = mask.get();
  fail(TW_USAGE, tw_forward, made.get(), &call);

  tw_tensor out = {}, lse = {};
  succeed(tw_packed_output_shape, made.get(), &sizes, &out, &lse);
  CHECK((out.rank == 3 && out.shape[0] == sizes.total_q && lse.rank == 2));
}

TEST_CASE("C: gradients of a packed call are the C++ API's") {
  const char* const text = R"({
    "dtype": "f32", "head_dim": 16, "layout": "packed", "outputs": ["out", "lse"],
    "mask_mod": "q_idx >= kv_idx", "block": [32, 32], "gradients": ["k"]})";
  const auto made = attention(text);
  Step step;
  auto options = sized<tw_plan_options>();
  const tw_packed_shape shape = step.shape();
  succeed(tw_plan_workspace_size, made.get(), &shape, nullptr, &options.workspace_bytes);
  packed_calls::Workspace memory(options.workspace_bytes);
  options.workspace = memory.view().data;
  const tw_sequences sequences = step.sequences();
  const auto plan_with = [&](int backward) {
    options.backward = backward;
    tw_plan* plan = nullptr;
    succeed(tw_plan_create, made.get(), &shape, &sequences, nullptr, &options, &plan);
    return plan;
  };
  tw_plan* const plan = plan_with(1);
  tw_call forward = step.call();
  forward.plan = plan;
  succeed(tw_forward, made.get(), &forward);
  Tensor dk = Tensor::zeros(f32, step.batch.k.shape()), wanted = Tensor::zeros(f32, dk.shape());
  auto call = sized<tw_backward_call>();
  call.q = forward.q;
  call.k = forward.k;
  call.v = forward.v;
  call.out = forward.out;
  call.lse = forward.lse;
  call.dout = forward.out;
  call.dk = c_tensor(dk);
  call.plan = plan;
  succeed(tw_backward, made.get(), &call);
  std::int64_t bytes = -1;
  succeed(tw_packed_backward_workspace_size, made.get(), &shape, nullptr, 1, &bytes);
  CHECK(bytes == 0);

  const Attention same_spec(spec_from_json(text), {.device = Device::cpu()});
  packed_calls::Workspace own(same_spec.workspace_size(step.batch.shape()));
  const Plan own_plan = same_spec.plan(
      step.batch.shape(),
      {.q_begin = step.q_begin, .kv_begin = step.kv_begin.view(), .kv_len = step.kv_len.view()}, {},
      {.workspace = own.view(), .backward = true});
  same_spec.backward({.q = step.batch.q,
                      .k = step.batch.k,
                      .v = step.batch.v,
                      .out = step.batch.out,
                      .lse = step.batch.lse,
                      .dout = step.batch.out,
                      .dk = wanted.view()},
                     own_plan);
  CHECK(same(dk, wanted));
  tw_plan_destroy(plan);

  tw_plan* const forward_alone = plan_with(0);
  call.plan = forward_alone;
  fail(TW_USAGE, tw_backward, made.get(), &call);
  tw_plan_destroy(forward_alone);
}
