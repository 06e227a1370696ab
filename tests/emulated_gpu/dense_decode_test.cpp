// Dense calls with few rows of q on the emulated GPU, by the decode kernel: whole and split over
// their columns, against the reference.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "c/tilewright.h"
#include "generator/spec/spec_json.hpp"
#include "runtime/api/mask_lists.hpp"
#include "runtime/call/few_rows.hpp"
#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/refusal.hpp"
#include "verify/attention_values.hpp"
#include "verify/check.hpp"
#include "verify/outputs.hpp"
#include "verify/random_inputs.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Case {
  std::string fields;
  Shape shape;
  verify::RandomOptions random = {};
};

Spec spec_of(const Case& one) {
  std::string text = R"({"dtype": "f16", "outputs": ["out", "lse"])";
  if (one.fields.find("head_dim") == std::string::npos) text += R"(, "head_dim": 32)";
  if (one.fields.find("of_") != std::string::npos) {
    text += R"(, "buffers": {
        "of_h": {"dtype": "f32", "shape": ["num_q_heads"], "range": [-2, 2]},
        "of_b": {"dtype": "i32", "shape": ["batch"], "range": [40, 200]}})";
  }
  if (!one.fields.empty()) text += ", " + one.fields;
  return spec_from_json(text + "}", "few_rows");
}

AttentionOptions decoding(std::shared_ptr<const jinja::Loader> templates = nullptr) {
  AttentionOptions options{.device = Device::parse("cuda"), .decode = true};
  options.kernels.templates = std::move(templates);
  return options;
}

const Shape kShape = {
    .batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 3, .kv_len = 700, .q_offset = 697};

std::vector<Case> cases() {
  Shape one_row = kShape, two_lists = kShape, wide = kShape, lone = kShape;
  one_row.q_len = 1;
  wide = {.batch = 1, .num_q_heads = 16, .num_kv_heads = 1, .q_len = 1, .kv_len = 300};
  lone = {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 16, .kv_len = 1};
  two_lists.kv_offset = 5;
  return {
      {"", kShape},
      {"", lone},
      {R"("layout": "bshd", "mask_mod": "q_idx >= kv_idx")", kShape},
      {R"x("kv_layout": "bshd", "score_mod": "score + of_h[h] * (kv_idx - q_idx)")x", one_row},
      {R"("mask_mod": "q_idx - kv_idx < 100 && q_idx >= kv_idx", "block": [16, 16])", two_lists},
      {R"("mask_mod": "kv_idx < of_b[b]", "sink": "of_h[h]")", kShape},
      {R"("mask_mod": "(kv_idx / 128 + h) % 3 == 0 && q_idx >= kv_idx")", two_lists},
      {R"("mask_mod": "h_kv == 1 && b == 1 && kv_idx != 130")", kShape},
      {R"("head_dim": 256, "mask_mod": "q_idx + 200 >= kv_idx")", wide},
      {R"("head_dim": 72, "v_head_dim": 40, "out_dtype": "f32")", wide},
      {R"("kv_dtype": "f8e4m3", "k_scale": "0.5f", "v_scale": "of_h[h_kv]", "q_scale": "1.5f")",
       kShape},
      {R"("kv_dtype": "i8", "k_scale": "0.03f", "v_scale": "0.03f", "mask_mod": "q_idx >= kv_idx")",
       one_row},
      {R"("mask_mod": "q_idx >= kv_idx")", kShape, {.broadcast_kv = true}}};
}

std::string reasons_of(const verify::Report& report) {
  std::string text;
  for (const std::string& reason : report.reasons()) text += reason + "\n";
  return text;
}

verify::Inputs inputs_of(const Case& one) {
  return verify::random_inputs(spec_of(one), one.shape, 9, one.random);
}

std::string problems_of(const Case& one, std::shared_ptr<const jinja::Loader> templates = nullptr) {
  return reasons_of(verify::check(spec_of(one), inputs_of(one).problem(),
                                  {.attention = decoding(std::move(templates))}));
}

// A call whose tensors are the host's, which the emulated GPU shares.
struct Call {
  explicit Call(const Case& one)
      : spec(spec_of(one)),
        inputs(inputs_of(one)),
        problem(inputs.problem()),
        outputs(spec, one.shape) {}

  void run(const Attention& attention, const TensorView& workspace) const {
    const ForwardOptions options = {.q_offset = problem.shape.q_offset,
                                    .kv_offset = problem.shape.kv_offset,
                                    .workspace = workspace};
    const Bindings bindings = attention.bind(problem.snippet);
    if (spec.mask_mod.empty())
      return attention.forward(outputs.tensors(problem), bindings, options);
    const BlockMask mask = attention.block_mask(problem.shape, bindings);
    attention.forward(outputs.tensors(problem), mask, bindings, options);
  }

  Spec spec;
  verify::Inputs inputs;
  verify::Problem problem;
  verify::Outputs outputs;
};

// Memory at a multiple of 256 bytes.
class Workspace {
 public:
  explicit Workspace(std::int64_t bytes) : memory_(static_cast<std::size_t>(bytes) + 256) {
    const auto after = reinterpret_cast<std::uintptr_t>(memory_.data()) % 256;
    begin_ = memory_.data() + (256 - after) % 256;
    bytes_ = bytes;
  }
  TensorView view(std::int64_t shift = 0) const {
    return TensorView::contiguous(static_cast<void*>(begin_ + shift), DType::u8, {bytes_});
  }

 private:
  std::vector<std::byte> memory_;
  std::byte* begin_;
  std::int64_t bytes_;
};

float farthest(const verify::Values& x, const verify::Values& y) {
  const std::vector<double>&a = x.data, &b = y.data;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;  // infinities too
    most = std::isfinite(a[i] - b[i]) ? std::max(most, std::fabs(a[i] - b[i])) : 1e30;
  }
  return static_cast<float>(most);
}

}  // namespace

TEST_CASE("dense decode: calls that are split over their columns are right", "[every-kind]") {
  for (const Case& one : cases()) {
    CAPTURE(one.fields, one.shape.describe());
    REQUIRE(has_few_rows(spec_of(one), one.shape));
    CHECK(problems_of(one) == "");
  }
}

// Twice with one workspace, as a call leaves its counters at 0.
TEST_CASE("dense decode: whole and split calls agree, and share a workspace with other shapes",
          "[every-kind]") {
  Workspace workspace(std::int64_t{4} << 20);
  for (const Case& one : cases()) {
    CAPTURE(one.fields, one.shape.describe());
    const Call whole(one), split(one), again(one);
    const Attention attention(whole.spec, decoding());
    REQUIRE(attention.workspace_size(one.shape) <= std::int64_t{4} << 20);
    CHECK((attention.workspace_size(one.shape) > 0) == (one.shape.kv_len > 128));
    whole.run(attention, {});
    split.run(attention, workspace.view());
    again.run(attention, workspace.view());
    const auto values = [&](const Call& call) { return call.outputs.values(call.spec); };
    // out is at most 5, of which f16 rounds 2^-11; P by as much, and one-byte scales multiply that.
    CHECK(farthest(values(whole).out, values(split).out) <= 0x1p-7f);
    CHECK(farthest(values(whole).lse, values(split).lse) <= 1e-4f);
    CHECK(farthest(values(split).out, values(again).out) == 0);
    CHECK(farthest(values(split).lse, values(again).lse) == 0);
  }
}

TEST_CASE("dense decode: tensors that are not aligned") {
  for (const std::string mask : {"", R"("mask_mod": "q_idx >= kv_idx")"}) {
    const Case one = {mask, kShape};
    const verify::Inputs inputs = inputs_of(one);
    verify::Problem problem = inputs.problem();
    const auto q = verify::GuardedTensor::copy_of(problem.q, {.row_padding = 3, .offset = 1});
    const auto k = verify::GuardedTensor::copy_of(problem.k, {.row_padding = 1, .offset = 3});
    problem.q = q.view();
    problem.k = k.view();
    CHECK(reasons_of(verify::check(spec_of(one), problem, {.attention = decoding()})) == "");
  }
}

TEST_CASE("dense decode: lists of full tiles without a mask_mod") {
  const Case one = {"", {.num_q_heads = 4, .num_kv_heads = 2, .q_len = 2, .kv_len = 512}};
  const Call call(one);
  AttentionOptions options = decoding();
  options.takes_block_mask = true;
  const Attention attention(call.spec, options);
  std::int32_t crow[] = {0, 2}, col[] = {1, 3};  // of 4 tiles of 128 columns
  const auto list = [](std::int32_t* numbers) {
    return TensorView::contiguous(static_cast<void*>(numbers), DType::i32, {2});
  };
  const BlockMask mask = block_mask_from_csr(attention.mask_fingerprint(one.shape),
                                             {.crow = list(crow), .col = list(col)});
  Workspace workspace(attention.workspace_size(one.shape));
  attention.forward(call.outputs.tensors(call.problem), mask, attention.bind(call.problem.snippet),
                    {.workspace = workspace.view()});
  Case masked = one;
  masked.fields = R"("mask_mod": "kv_idx / 128 % 2 == 1")";
  const Call wanted(masked);
  const Attention on_cpu(wanted.spec, {.device = Device::cpu()});
  wanted.run(on_cpu, {});
  const auto found = call.outputs.values(call.spec), right = wanted.outputs.values(wanted.spec);
  CHECK(farthest(found.out, right.out) <= 4 * 0x1p-10f);
  CHECK(farthest(found.lse, right.lse) <= 2e-3f);
}

TEST_CASE("dense decode: what is no workspace for a call", "[every-kind]") {
  const Case one = {R"("mask_mod": "q_idx >= kv_idx")", kShape};
  const Call call(one);
  const Attention attention(call.spec, decoding());
  const std::int64_t bytes = attention.workspace_size(one.shape);
  Workspace small(bytes - 1), whole(bytes);
  CHECK_THAT(test::refusal([&] { call.run(attention, small.view()); }),
             ContainsSubstring(std::to_string(bytes - 1) + " bytes; this call needs " +
                               std::to_string(bytes)));
  CHECK(test::refusal([&] { call.run(attention, whole.view(16)); }) ==
        "the workspace begins at no multiple of 256 bytes");
  TensorView over = whole.view();
  const auto misaligned = reinterpret_cast<std::uintptr_t>(call.problem.k.data) % 256;
  over.data = static_cast<std::byte*>(call.problem.k.data) + (256 - misaligned) % 256;
  CHECK_THAT(test::refusal([&] { call.run(attention, over); }),
             ContainsSubstring("the workspace overlaps k"));
  Shape many = one.shape;
  many.q_len = 9;  // 18 rows
  CHECK(attention.workspace_size(many) == 0);
  CHECK(Attention(call.spec, {.device = Device::parse("cuda")}).workspace_size(one.shape) == 0);
  CHECK(Attention(call.spec, {.device = Device::cpu(), .decode = true}).workspace_size(one.shape) ==
        0);
}

TEST_CASE("dense decode: through the C ABI", "[every-kind]") {
  const Case one = {"", kShape};
  const Call call(one);
  tw_options options = {};
  options.struct_size = sizeof options;
  options.device = "cuda";
  options.decode = 1;
  tw_attention* attention = nullptr;
  REQUIRE(tw_attention_create(to_json(call.spec).c_str(), &options, &attention, nullptr) == TW_OK);
  const tw_shape shape = {.struct_size = sizeof shape,
                          .batch = 2,
                          .num_q_heads = 4,
                          .num_kv_heads = 2,
                          .q_len = 3,
                          .kv_len = 700,
                          .q_offset = 697};
  std::int64_t bytes = 0;
  REQUIRE(tw_workspace_size(attention, &shape, &bytes, nullptr) == TW_OK);
  CHECK(bytes == Attention(call.spec, decoding()).workspace_size(one.shape));
  const Workspace workspace(bytes);
  const ForwardTensors tensors = call.outputs.tensors(call.problem);
  const auto tensor = [](const TensorView& view) {
    return tw_tensor_contiguous(view.data, view.dtype == f32 ? TW_F32 : TW_F16, view.rank,
                                view.shape.data());
  };
  tw_call made = {};
  made.struct_size = sizeof made;
  made.q = tensor(tensors.q);
  made.k = tensor(tensors.k);
  made.v = tensor(tensors.v);
  made.out = tensor(tensors.out);
  made.lse = tensor(*tensors.lse);
  made.q_offset = 697;
  made.workspace = workspace.view().data;
  made.workspace_bytes = bytes - 1;
  CHECK(tw_forward(attention, &made, nullptr) == TW_TENSOR);
  made.workspace_bytes = bytes;
  CHECK(tw_forward(attention, &made, nullptr) == TW_OK);
  const Call by_cpp(one);
  by_cpp.run(Attention(by_cpp.spec, decoding()), workspace.view());
  CHECK(farthest(call.outputs.values(call.spec).out, by_cpp.outputs.values(by_cpp.spec).out) == 0);
  tw_attention_destroy(attention);
}

TEST_CASE("dense decode: planted faults are seen") {
  const std::string items = "cuda/decode/dense_items.hpp";
  const std::string tiles = "cuda/decode/listed_unit_tiles.hpp";
  const std::string causal = R"("mask_mod": "q_idx >= kv_idx")";
  const std::string by_batch = R"("mask_mod": "kv_idx < of_b[b]")";
  const std::string by_head = R"("mask_mod": "(kv_idx / 128 + h) % 3 == 0 && q_idx >= kv_idx")";
  const std::string nothing = R"("mask_mod": "h_kv == 1 && b == 1 && kv_idx != 130")";
  struct Planted {
    test::Fault fault;
    std::string shown_by;
  };
  const std::vector<Planted> faults = {
      {{"rows of batch 0 alone", items, "batch_of_rows(const QTile& q_tile) { return q_tile.b; }",
        "batch_of_rows(const QTile& q_tile) { return 0; }"},
       ""},
      {{"no unit for an item without tiles", items, "kUnitsOfTile + entry)", "kUnitsOfTile)"},
       nothing},
      {{"full tiles are not counted", items,
        "__ldg(mask_.full_row_offsets + entry) - __ldg(mask_.full_row_offsets)", "0"},
       causal},
      {{"the lists of batch 0 alone", items, "(mask.batch == 1 ? 0 : q_tile.b)", "0"}, by_batch},
      {{"the lists of head 0 alone", items, "(mask.heads == 1 ? 0 : q_tile.h)", "0"}, by_head},
      {{"the first full tile in place of others", tiles, "full_ + (tile - partials_)", "full_"},
       causal},
      {{"partial tiles without their mask", tiles, "KvTile(column, tile_ < partials_)",
        "KvTile(column, false)"},
       causal},
      {{"units of the first tile again", tiles, "find(tile_ + 1);", "find(tile_);"}, causal},
      {{"a counter is left behind", "cuda/decode/finish_item.hpp", "if (comes_last) arrived = 0;",
        ""},
       ""}};
  for (const Planted& planted : faults) {
    CAPTURE(planted.fault.what);
    const auto templates = std::make_shared<test::FaultyTemplates>(planted.fault);
    CHECK(problems_of({planted.shown_by, kShape}, templates) != "");
  }
}
