// Packed calls against a dense call for each of their sequences, on the CPU.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/api/attention.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/packed_batch.hpp"

namespace tilewright {
using namespace packed_calls;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

std::string message_of(const auto& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.message();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("packed: without snippets it has the bits of a dense call per sequence") {
  Batch batch{
      .lengths = {{128, 128}, {57, 57}, {1, 1}, {300, 300}}, .heads = 4, .kv_heads = 4, .dim = 64};
  batch.make();
  check_against_dense(packed_spec(64, "", false), batch, 0.0f);
}

TEST_CASE("packed: causal, bottom right, with lse and shared kv heads") {
  Batch batch{.lengths = {{1, 332}, {5, 18}, {129, 463}}, .heads = 4, .kv_heads = 2, .dim = 64};
  batch.make();
  check_against_dense(packed_spec(64, "q_idx >= kv_idx", true), batch, 4e-6f);
}

TEST_CASE("packed: rows without columns, sequences without columns or rows") {
  Batch batch{.lengths = {{300, 100}, {7, 3}, {64, 0}, {0, 9}, {129, 1}},
              .heads = 2,
              .kv_heads = 2,
              .dim = 32};
  batch.make();
  check_against_dense(packed_spec(32, "q_idx >= kv_idx", true), batch, 4e-6f);
}

TEST_CASE("packed: masks that tell heads and sequences apart") {
  Batch batch{.lengths = {{200, 300}, {33, 700}}, .heads = 2, .kv_heads = 1, .dim = 32};
  batch.make();
  check_against_dense(packed_spec(32, "q_idx >= kv_idx && (q_idx - kv_idx) < 100 + 64 * h", true),
                      batch, 4e-6f);
}

TEST_CASE("packed: q_token and kv_token are rows of the packed tensors") {
  Spec spec = packed_spec(32, "doc[q_token] == doc[kv_token]", false);
  spec.buffers = {{"doc", {.dtype = i32, .shape = {NamedDim::total_kv}}}};
  const int rows = 160;
  Tensor doc = Tensor::zeros(i32, {rows});
  for (int i = 0; i < rows; ++i) static_cast<int*>(doc.data())[i] = i / 37;
  const Tensor q = random_tensor({rows, 1, 32}, 1), k = random_tensor({rows, 1, 32}, 2);
  const Tensor v = random_tensor({rows, 1, 32}, 3);
  const Tensor begins = int_tensor({0, 100, rows});
  const PackedShape shape = {.batch = 2, .total_q = rows, .total_kv = rows};

  const Attention attention(spec, {.device = Device::cpu()});
  const Bindings bindings = attention.bind({.buffers = {{"doc", doc}}});
  Workspace workspace(attention.workspace_size(shape));
  const Plan plan = attention.plan(shape, {.q_begin = begins, .kv_begin = begins.view()}, bindings,
                                   {.workspace = workspace.view()});
  Tensor out = Tensor::zeros(f32, {rows, 1, 32});
  attention.forward({.q = q, .k = k, .v = v, .out = out}, plan, bindings);

  // Each document of each sequence is a sequence of its own.
  const Attention plain(packed_spec(32, "", false), {.device = Device::cpu()});
  const Tensor cuts = int_tensor({0, 37, 74, 100, 111, 148, rows});
  const PackedShape cut_shape = {.batch = 6, .total_q = rows, .total_kv = rows};
  Workspace cut_workspace(plain.workspace_size(cut_shape));
  const Plan cut = plain.plan(cut_shape, {.q_begin = cuts, .kv_begin = cuts.view()}, {},
                              {.workspace = cut_workspace.view()});
  Tensor wanted = Tensor::zeros(f32, {rows, 1, 32});
  plain.forward({.q = q, .k = k, .v = v, .out = wanted}, cut);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    REQUIRE(std::fabs(floats(out)[i] - floats(wanted)[i]) <= 4e-6f);
  }
}

TEST_CASE("packed: lengths that lie are clamped and reported, and nothing else is written") {
  const Attention attention(packed_spec(32, "q_idx >= kv_idx", false), {.device = Device::cpu()});
  const PackedShape shape = {.batch = 3, .total_q = 40, .total_kv = 50};
  Workspace workspace(attention.workspace_size(shape));
  const Tensor q = random_tensor({40, 1, 32}, 1), k = random_tensor({50, 1, 32}, 2);
  Tensor out = Tensor::zeros(f32, {40, 1, 32});
  Tensor q_begin = int_tensor({0, 20, 17, 40}), kv_begin = int_tensor({0, 10, 20});
  Tensor kv_len = int_tensor({10, 10, 10});
  Plan plan = attention.plan(
      shape, {.q_begin = q_begin, .kv_begin = kv_begin.view(), .kv_len = kv_len.view()}, {},
      {.workspace = workspace.view()});
  const auto text_of = [&](std::initializer_list<int> begins, std::initializer_list<int> lens) {
    std::copy(begins.begin(), begins.end(), static_cast<int*>(q_begin.data()));
    std::copy(lens.begin(), lens.end(), static_cast<int*>(kv_len.data()));
    attention.rebuild(plan);
    attention.forward({.q = q, .k = k, .v = k, .out = out}, plan);
    return plan.report().text();
  };
  CHECK(plan.report().text() == "q_begin[2] is 17 after 20");
  CHECK(text_of({0, 20, 30, 40}, {10, 10, 10}).empty());
  CHECK(text_of({0, 20, 30, 41}, {10, 10, 10}) == "q_begin[3] is 41, but q has 40 rows");
  CHECK(text_of({-3, 20, 30, 40}, {10, 10, 10}) == "q_begin[0] is -3");
  CHECK(text_of({0, 20, 30, 40}, {10, -1, 10}) == "kv_len[1] is -1");
  CHECK(text_of({0, 20, 30, 40}, {10, 10, 31}) == "kv_len[2] is 31, but there is room for 30");
  CHECK(text_of({2147483647, -2147483647, 2147483647, -5}, {2147483647, -2147483647, 77}) ==
        "q_begin[0] is 2147483647, but q has 40 rows (7 values were clamped)");
  CHECK(text_of({0, 40, 0, 40}, {10, 10, 10}) == "q_begin[2] is 0 after 40");
}

TEST_CASE("packed: a sequence of more rows than max_q_len is cut and reported") {
  const Attention attention(packed_spec(32, "q_idx >= kv_idx", false), {.device = Device::cpu()});
  const PackedShape shape = {.batch = 2, .total_q = 9, .total_kv = 20, .max_q_len = 4};
  Workspace workspace(attention.workspace_size(shape));
  const Tensor q = random_tensor({9, 1, 32}, 1), k = random_tensor({20, 1, 32}, 2);
  const Tensor q_begin = int_tensor({0, 4, 9}), kv_begin = int_tensor({0, 10, 20});
  Tensor out = Tensor::zeros(f32, {9, 1, 32});
  fill(out, kPoison);
  const Plan plan = attention.plan(shape, {.q_begin = q_begin, .kv_begin = kv_begin.view()}, {},
                                   {.workspace = workspace.view()});
  attention.forward({.q = q, .k = k, .v = k, .out = out}, plan);
  const PlanReport report = plan.report();
  CHECK(report.text() == "sequence 1 has 5 rows of q, but max_q_len is 4");
  REQUIRE(report.first);
  CHECK(report.first->kind == PlanReport::Kind::q_len);
  const auto is_poison = [](float x) { return std::isnan(x); };
  CHECK(std::none_of(floats(out), floats(out) + 8 * 32, is_poison));
  CHECK(std::all_of(floats(out) + 8 * 32, floats(out) + 9 * 32, is_poison));
}

TEST_CASE("packed: what the host can see is refused before anything is launched") {
  const Attention attention(packed_spec(32, "", false), {.device = Device::cpu()});
  const PackedShape shape = {.batch = 1, .total_q = 8, .total_kv = 8};
  Workspace workspace(attention.workspace_size(shape));
  const Tensor begins = int_tensor({0, 8});
  const auto plan_of = [&](const Sequences& sequences, TensorView memory) {
    return attention.plan(shape, sequences, {}, {.workspace = memory});
  };
  const Sequences sequences = {.q_begin = begins, .kv_begin = begins.view()};
  CHECK(message_of([&] { plan_of({.q_begin = begins}, workspace.view()); }) ==
        "kv_layout is \"packed\", and the sequences have no kv_begin");
  TensorView small = workspace.view();
  small.shape[0] -= 1;
  CHECK(message_of([&] { plan_of(sequences, small); }).find("bytes; this plan needs") !=
        std::string::npos);
  TensorView crooked = TensorView::contiguous(static_cast<std::byte*>(workspace.view().data) + 16,
                                              u8, {workspace.view().shape[0]});
  CHECK(message_of([&] { plan_of(sequences, crooked); }) ==
        "the workspace begins at no multiple of 256 bytes");
  const Tensor long_begins = int_tensor({0, 4, 8});
  CHECK(message_of([&] {
          plan_of({.q_begin = long_begins, .kv_begin = begins.view()}, workspace.view());
        }) == "q_begin has 3 elements, which is not [2] (batch + 1)");

  const Plan plan = plan_of(sequences, workspace.view());
  const Tensor q = random_tensor({8, 1, 32}, 1), q4 = random_tensor({1, 8, 1, 32}, 1);
  const Tensor longer = random_tensor({9, 1, 32}, 1);
  Tensor out = Tensor::zeros(f32, {8, 1, 32});
  CHECK(message_of([&] { attention.forward({.q = q4, .k = q, .v = q, .out = out}, plan); }) ==
        "q has rank 4; packed attention needs rank 3");
  CHECK(message_of([&] {
          attention.forward({.q = q, .k = longer, .v = longer, .out = out}, plan);
        }) == "the call has total_kv 9, but the plan was made for 8");
  CHECK(message_of([&] { attention.forward({.q = q, .k = q, .v = q, .out = out}); }) ==
        "the spec is packed, and the call has no plan");
  CHECK(message_of([&] {
          attention.forward({.q = q, .k = q, .v = q, .out = out}, plan, {}, {.q_offset = 1});
        }) == "a packed call takes no offsets");
  const Attention other(packed_spec(32, "", false), {.device = Device::cpu()});
  CHECK(message_of([&] { other.forward({.q = q, .k = q, .v = q, .out = out}, plan); }) ==
        "the plan was made by another Attention");
}

TEST_CASE("packed: outputs that share a byte with another tensor are refused") {
  const Attention attention(packed_spec(16, "", true), {.device = Device::cpu()});
  const PackedShape shape = {.batch = 1, .total_q = 6, .total_kv = 6};
  Workspace workspace(attention.workspace_size(shape));
  const Tensor begins = int_tensor({0, 6});
  const Plan plan = attention.plan(shape, {.q_begin = begins, .kv_begin = begins.view()}, {},
                                   {.workspace = workspace.view()});
  const std::int64_t elements = 6 * 16;
  Tensor memory = Tensor::zeros(f32, {5 * elements});
  const auto at = [&](std::int64_t element, std::initializer_list<std::int64_t> extents) {
    return TensorView::contiguous(floats(memory) + element, f32, extents);
  };
  const auto tensor = [&](std::int64_t element) { return at(element, {6, 1, 16}); };
  const auto refusal = [&](const TensorView& out, const TensorView& lse) -> std::string {
    try {
      attention.forward({.q = tensor(0),
                         .k = tensor(elements),
                         .v = tensor(2 * elements),
                         .out = out,
                         .lse = lse},
                        plan);
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  };
  const TensorView out = tensor(3 * elements), lse = at(4 * elements, {1, 6});
  CHECK(refusal(out, lse) == "accepted");
  CHECK(refusal(tensor(0), lse) == "accepted");  // q itself
  CHECK_THAT(refusal(tensor(1), lse), ContainsSubstring("out overlaps q"));
  CHECK_THAT(refusal(tensor(3 * elements - 1), lse), ContainsSubstring("out overlaps v"));
  CHECK_THAT(refusal(out, at(elements - 1, {1, 6})), ContainsSubstring("lse overlaps q"));
  CHECK_THAT(refusal(out, at(2 * elements - 6, {1, 6})), ContainsSubstring("lse overlaps k"));
  CHECK_THAT(refusal(out, at(3 * elements - 1, {1, 6})), ContainsSubstring("lse overlaps v"));
  CHECK_THAT(refusal(out, at(4 * elements - 1, {1, 6})), ContainsSubstring("lse overlaps out"));
}

TEST_CASE("packed: a plan's workspace shares no byte with what is read or written beside it") {
  Spec spec = packed_spec(16, "q_idx >= kv_idx && x[kv_token] == 0", true);
  spec.buffers = {{"x", {.dtype = i32, .shape = {NamedDim::total_kv}}}};
  const Attention attention(spec, {.device = Device::cpu()});
  const PackedShape shape = {.batch = 1, .total_q = 6, .total_kv = 6};
  const std::int64_t bytes = attention.workspace_size(shape);
  Workspace all(bytes + 4096);
  TensorView memory = all.view();
  auto* const behind = static_cast<float*>(memory.data) + bytes / 4;
  memory.shape[0] = bytes;
  const Tensor begins = int_tensor({0, 6}), x = Tensor::zeros(i32, {6});
  const Tensor q = random_tensor({6, 1, 16}, 1);
  Tensor out = Tensor::zeros(f32, {6, 1, 16}), lse = Tensor::zeros(f32, {1, 6});
  const auto at = [](float* data, DType dtype, std::initializer_list<std::int64_t> extents) {
    return TensorView::contiguous(static_cast<void*>(data), dtype, extents);
  };
  const auto plan_with = [&](const TensorView& q_begin, const TensorView& buffer) {
    return attention.plan(shape, {.q_begin = q_begin, .kv_begin = begins.view()},
                          attention.bind({.buffers = {{"x", buffer}}}), {.workspace = memory});
  };
  std::memcpy(behind, begins.data(), 8);
  CHECK(message_of([&] { plan_with(at(behind, i32, {2}), x); }) == "nothing was thrown");
  CHECK_THAT(message_of([&] { plan_with(at(behind - 1, i32, {2}), x); }),
             ContainsSubstring("the plan's workspace overlaps q_begin in memory"));
  CHECK_THAT(message_of([&] { plan_with(begins, at(behind - 5, i32, {6})); }),
             ContainsSubstring("the plan's workspace overlaps x in memory"));
  const Bindings bindings = attention.bind({.buffers = {{"x", x.view()}}});
  const Plan plan = plan_with(begins, x);
  const auto forward = [&](const TensorView& to, const TensorView& lse_to) {
    return message_of([&] {
      attention.forward({.q = q, .k = q, .v = q, .out = to, .lse = lse_to}, plan, bindings);
    });
  };
  CHECK(forward(at(behind, f32, {6, 1, 16}), lse) == "nothing was thrown");
  CHECK_THAT(forward(at(behind - 1, f32, {6, 1, 16}), lse),
             ContainsSubstring("out overlaps the plan's workspace in memory"));
  CHECK(forward(out, at(behind, f32, {1, 6})) == "nothing was thrown");
  CHECK_THAT(forward(out, at(behind - 6, f32, {1, 6})),
             ContainsSubstring("lse overlaps the plan's workspace in memory"));
}

TEST_CASE("packed: of several lies in a sequence the report names the first in its own order") {
  const Attention attention(packed_spec(32, "q_idx >= kv_idx", false), {.device = Device::cpu()});
  const PackedShape shape = {.batch = 1, .total_q = 4, .total_kv = 5};
  Workspace workspace(attention.workspace_size(shape));
  const Tensor q_begin = int_tensor({0, 4}), kv_begin = int_tensor({0});
  const Tensor kv_len = int_tensor({5}), far = int_tensor({2147483647});
  Sequences sequences = {.q_begin = q_begin, .kv_begin = kv_begin.view(), .kv_len = kv_len.view()};
  const auto text = [&] {
    return attention.plan(shape, sequences, {}, {.workspace = workspace.view()}).report().text();
  };
  sequences.q_offset = far.view();
  CHECK_THAT(text(), StartsWith("q_offset[0] is 2147483647"));
  sequences.kv_offset = far.view();
  CHECK_THAT(text(), StartsWith("kv_offset[0] is 2147483647"));
  CHECK_THAT(text(), ContainsSubstring("(2 values were clamped)"));
}

TEST_CASE("packed: no sequences or no rows are no work") {
  const Attention attention(packed_spec(32, "q_idx >= kv_idx", false), {.device = Device::cpu()});
  for (const int batch : {0, 2}) {
    const PackedShape shape = {.batch = batch, .total_q = 0, .total_kv = 0};
    Workspace workspace(attention.workspace_size(shape));
    const Tensor begins = int_tensor(std::vector<int>(static_cast<std::size_t>(batch) + 1, 0));
    const Plan plan = attention.plan(shape, {.q_begin = begins, .kv_begin = begins.view()}, {},
                                     {.workspace = workspace.view()});
    CHECK(plan.report().count == 0);
    Tensor out = Tensor::zeros(f32, {0, 1, 32});
    attention.forward({.q = out, .k = out, .v = out, .out = out}, plan);
    // As an empty std::vector's data is.
    const TensorView null = TensorView::contiguous(static_cast<void*>(nullptr), f32, {0, 1, 32});
    attention.forward({.q = null, .k = null, .v = null, .out = null}, plan);
  }
}

TEST_CASE("packed: tensors without elements may be null, all others may not") {
  Spec spec = packed_spec(32, "q_idx >= kv_idx", false);
  const Attention attention(spec, {.device = Device::cpu()});
  const PackedShape shape = {.batch = 1, .total_q = 3, .total_kv = 0};
  Workspace workspace(attention.workspace_size(shape));
  const Tensor q_begin = int_tensor({0, 3}), kv_begin = int_tensor({0, 0});
  const Plan plan = attention.plan(shape, {.q_begin = q_begin, .kv_begin = kv_begin.view()}, {},
                                   {.workspace = workspace.view()});
  const Tensor q = random_tensor({3, 1, 32}, 1);
  Tensor out = random_tensor({3, 1, 32}, 2);
  const auto null = [](std::int64_t rows) {
    return TensorView::contiguous(static_cast<void*>(nullptr), f32, {rows, 1, 32});
  };
  attention.forward({.q = q, .k = null(0), .v = null(0), .out = out}, plan);
  for (int i = 0; i < 3 * 32; ++i) REQUIRE(floats(out)[i] == 0);
  CHECK(message_of([&] {
          attention.forward({.q = null(3), .k = null(0), .v = null(0), .out = out}, plan);
        }) == "q has no data");

  spec.kv_layout = Layout::paged;
  const Attention paged(spec, {.device = Device::cpu()});
  const PackedShape no_batch = {.batch = 0, .total_q = 0, .total_kv = 0, .page_size = 16};
  Workspace room(paged.workspace_size(no_batch));
  const Tensor begin = int_tensor({0});
  const auto no_ints = TensorView::contiguous(static_cast<void*>(nullptr), DType::i32, {0});
  CHECK(paged.plan(no_batch, {.q_begin = begin, .kv_len = no_ints}, {}, {.workspace = room.view()})
            .report()
            .count == 0);
}

TEST_CASE("packed: a scalar of mask_mod may be NaN") {
  Spec spec = packed_spec(32, "float(q_idx - kv_idx) > w || q_idx % 2 == 1", false);
  spec.scalars["w"] = {.dtype = f32};
  const Attention attention(spec, {.device = Device::cpu()});
  const PackedShape shape = {.batch = 1, .total_q = 4, .total_kv = 4};
  Workspace workspace(attention.workspace_size(shape));
  const Tensor begins = int_tensor({0, 4});
  const auto with = [&](double w) { return attention.bind({.scalars = {{"w", w}}}); };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Plan plan = attention.plan(shape, {.q_begin = begins, .kv_begin = begins.view()}, with(nan),
                             {.workspace = workspace.view()});
  const Tensor q = random_tensor({4, 1, 32}, 1);
  Tensor out = random_tensor({4, 1, 32}, 2);
  const ForwardTensors tensors = {.q = q, .k = q, .v = q, .out = out};
  attention.forward(tensors, plan, with(nan));
  CHECK(floats(out)[0] == 0);  // row 0 keeps nothing
  CHECK(floats(out)[32] != 0);
  CHECK(message_of([&] { attention.forward(tensors, plan, with(1)); }) ==
        "the plan was built with w = nan, but this call has 1");
}

TEST_CASE(
    "packed: an Attention for masks alone refuses forward, and a plan outlives its Attention") {
  const Spec spec = packed_spec(32, "q_idx >= kv_idx", false);
  const PackedShape shape = {.batch = 1, .total_q = 8, .total_kv = 8};
  const Tensor begins = int_tensor({0, 8}), q = random_tensor({8, 1, 32}, 1);
  Tensor out = Tensor::zeros(f32, {8, 1, 32});
  const ForwardTensors tensors = {.q = q, .k = q, .v = q, .out = out};
  const Sequences sequences = {.q_begin = begins, .kv_begin = begins.view()};
  const auto plan_of = [&](const Attention& attention, Workspace& workspace) {
    return attention.plan(shape, sequences, {}, {.workspace = workspace.view()});
  };
  const Attention masks(spec, {.device = Device::cpu(), .masks_only = true});
  Workspace workspace(masks.workspace_size(shape));
  const Plan of_masks = plan_of(masks, workspace);
  CHECK(message_of([&] { masks.forward(tensors, of_masks); }) ==
        "this Attention was made for block masks only");

  std::optional<Plan> orphan;
  {
    const Attention first(spec, {.device = Device::cpu()});
    orphan = plan_of(first, workspace);
  }
  for (int i = 0; i < 8; ++i) {
    const Attention later(spec, {.device = Device::cpu()});
    CHECK(message_of([&] { later.forward(tensors, *orphan); }) ==
          "the plan was made by another Attention");
  }
}

TEST_CASE("packed: the token of every row is an int, whatever its position") {
  Spec spec = packed_spec(32, "q_token >= kv_token", false);
  const Attention attention(spec, {.device = Device::cpu()});
  const PackedShape shape = {.batch = 1, .total_q = 4000, .total_kv = 4000};
  Workspace workspace(attention.workspace_size(shape));
  const Tensor begins = int_tensor({3990, 4000});
  constexpr int kLeast = std::numeric_limits<int>::min();
  const Tensor far = int_tensor({kLeast}), q = random_tensor({4000, 1, 32}, 1);
  Tensor out = Tensor::zeros(f32, {4000, 1, 32});
  const Plan plan = attention.plan(shape,
                                   {.q_begin = begins,
                                    .kv_begin = begins.view(),
                                    .q_offset = far.view(),
                                    .kv_offset = far.view()},
                                   {}, {.workspace = workspace.view()});
  CHECK(plan.report().text() ==
        "kv_offset[0] is -2147483648, which leaves the range of a 32-bit index (2 values were "
        "clamped)");
  attention.forward({.q = q, .k = q, .v = q, .out = out}, plan);
  // The first row keeps the first column alone.
  for (int i = 0; i < 32; ++i)
    CHECK(floats(out)[3990 * 32 + i] == static_cast<const float*>(q.data())[3990 * 32 + i]);
}

}  // namespace tilewright
