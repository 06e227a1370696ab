// Prefill whose q tiles' columns several blocks of threads share, on the emulated GPU: dense calls
// with a workspace, packed and paged ones, against the same calls unsplit and the reference.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "generator/spec/spec_json.hpp"
#include "runtime/call/few_rows.hpp"
#include "runtime/call/plan_state.hpp"
#include "runtime/call/split_parts.hpp"
#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/emulated_gpu/many_multiprocessors.hpp"
#include "tests/gpu/packed_gpu_call.hpp"
#include "tests/support/batch_invariance.hpp"
#include "tests/support/packed_batch.hpp"
#include "verify/attention_values.hpp"
#include "verify/outputs.hpp"
#include "verify/random_inputs.hpp"

using namespace tilewright;
using test::ManyMultiprocessors;

namespace {

struct Case {
  std::string fields;
  Shape shape;
};

// A tile of q for each of two heads of K and V, over tiles enough that each is cut into parts.
const Shape kShape = {.batch = 1,
                      .num_q_heads = 2,
                      .num_kv_heads = 1,
                      .q_len = 100,
                      .kv_len = 2100,
                      .q_offset = 2000};

Spec spec_of(const Case& one) {
  std::string text = R"({"outputs": ["out", "lse"])";
  if (one.fields.find("\"dtype\"") == std::string::npos) text += R"(, "dtype": "f16")";
  if (one.fields.find("head_dim") == std::string::npos) text += R"(, "head_dim": 32)";
  if (one.fields.find("of_") != std::string::npos) {
    text += R"(, "buffers": {
        "of_h": {"dtype": "f32", "shape": ["num_q_heads"], "range": [-2, 2]},
        "doc": {"dtype": "i32", "shape": ["kv_len"], "range": [0, 6], "sorted": true}})";
  }
  if (!one.fields.empty()) text += ", " + one.fields;
  return spec_from_json(text + "}", "few_q_tiles");
}

std::vector<Case> cases() {
  Shape two = kShape, short_rows = kShape;
  two.batch = 2;
  two.num_q_heads = 1;
  two.kv_len = 2048;
  short_rows.q_len = 20;  // one warpgroup of the tile has rows
  return {
      {"", kShape},
      {R"x("score_mod": "score + (kv_idx > 1900 ? 400.0f : 0.0f)")x", kShape},
      {R"("layout": "bshd", "mask_mod": "q_idx >= kv_idx")", two},
      {R"("mask_mod": "q_idx >= kv_idx && q_idx - kv_idx < 700")", kShape},
      {R"x("mask_mod": "doc[kv_idx] == q_idx % 6", "sink": "of_h[h]")x", kShape},
      // The first rows keep nothing, and parts have tiles that some rows keep nothing of.
      {R"("mask_mod": "q_idx >= 2040 && kv_idx % 1000 < 40")", kShape},
      {R"x("score_mod": "score + of_h[h] * (kv_idx - q_idx)")x", short_rows},
      {R"x("score_mod": "20.0 * tanh(score / 20.0)", "mask_mod": "q_idx >= kv_idx", "dtype": "bf16")x",
       kShape},
      {R"("head_dim": 256, "out_dtype": "f32")", kShape},
      {R"("kv_dtype": "f8e4m3", "k_scale": "0.5f", "v_scale": "1.5f")", kShape},
      {R"("head_dim": 256, "kv_dtype": "f8e5m2", "k_scale": "0.5f", "v_scale": "1.5f")", kShape}};
}

// A call whose tensors are the host's, which the emulated GPU shares.
struct Call {
  explicit Call(const Case& one)
      : spec(spec_of(one)),
        inputs(verify::random_inputs(spec, one.shape, 9)),
        problem(inputs.problem()),
        outputs(spec, one.shape) {}

  void run(const Attention& attention, const TensorView& workspace) const {
    const ForwardOptions options = {.q_offset = problem.shape.q_offset, .workspace = workspace};
    const Bindings bindings = attention.bind(problem.snippet);
    if (spec.mask_mod.empty())
      return attention.forward(outputs.tensors(problem), bindings, options);
    const BlockMask mask = attention.block_mask(problem.shape, bindings);
    attention.forward(outputs.tensors(problem), mask, bindings, options);
  }

  verify::Values values() const { return outputs.values(spec).out; }
  verify::Values lse() const { return outputs.values(spec).lse; }

  Spec spec;
  verify::Inputs inputs;
  verify::Problem problem;
  verify::Outputs outputs;
};

float farthest(const verify::Values& x, const verify::Values& y) {
  double most = 0;
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    const double a = x.data[i], b = y.data[i];
    if (a == b) continue;  // infinities too
    most = std::isfinite(a - b) ? std::max(most, std::fabs(a - b)) : 1e30;
  }
  return static_cast<float>(most);
}

AttentionOptions splitting(std::shared_ptr<const jinja::Loader> templates = nullptr) {
  AttentionOptions options{.device = Device::parse("cuda"), .decode = true};
  options.kernels.templates = std::move(templates);
  return options;
}

// Zeroed memory at a multiple of 256 bytes.
class ZeroedWorkspace {
 public:
  explicit ZeroedWorkspace(std::int64_t bytes)
      : memory_(static_cast<std::size_t>(bytes) + 256), bytes_(bytes) {}
  std::byte* begin() {
    const auto after = reinterpret_cast<std::uintptr_t>(memory_.data()) % 256;
    return memory_.data() + (256 - after) % 256;
  }
  TensorView view() {
    return TensorView::contiguous(static_cast<void*>(begin()), DType::u8, {bytes_});
  }
  bool counters_are_zero() {
    const std::byte* const first = begin();
    return std::all_of(first, first + 4096 * sizeof(unsigned),
                       [](std::byte x) { return x == std::byte{0}; });
  }

 private:
  std::vector<std::byte> memory_;
  std::int64_t bytes_;
};

// How far a split call is from the same call on the CPU. 1e30 where its bits differ the second
// time.
float error_of(const Case& one, std::shared_ptr<const jinja::Loader> templates = nullptr) {
  const Call split(one), again(one), wanted(one);
  const Attention attention(split.spec, splitting(std::move(templates)));
  ZeroedWorkspace workspace(attention.workspace_size(one.shape));
  split.run(attention, workspace.view());
  again.run(attention, workspace.view());
  const bool repeats = farthest(split.values(), again.values()) == 0 &&
                       farthest(split.lse(), again.lse()) == 0 && workspace.counters_are_zero();
  if (!repeats) return 1e30f;
  wanted.run(Attention(wanted.spec, {.device = Device::cpu()}), {});
  return std::max(farthest(split.values(), wanted.values()), farthest(split.lse(), wanted.lse()));
}

}  // namespace

TEST_CASE("split prefill: how many parts a call has") {
  const SplitLaunch h100 = {
      .multiprocessors = 132, .q_tile = 128, .kv_tile = 128, .value_dim = 128, .work_side = 128};
  const auto parts = [](const SplitLaunch& launch, std::int64_t q_tiles, std::int64_t kv_len) {
    return split_parts(launch, {q_tiles, q_tiles}, kv_len);
  };
  CHECK(parts(h100, 128, 32768) == 1);  // 32 heads x 512 rows fill the machine
  CHECK(parts(h100, 32, 32768) == 4);   // 8 heads
  CHECK(parts(h100, 96, 32768) == 4);   // three quarters of the machine: 3 waves of a quarter
  CHECK(parts(h100, 4, 1024) == 1);     // too short to gain
  CHECK(parts(h100, 4, 131072) == 32);  // one head over 128k
  CHECK(parts(h100, 1 << 20, 131072) == 1);
  CHECK(parts({}, 4, 131072) == 1);  // no such kernel
  for (const std::int64_t q_tiles : {1, 7, 50, 131, 133, 200, 396}) {
    CHECK(q_tiles * parts(h100, q_tiles, 131072) <= std::max<std::int64_t>(q_tiles, 3 * 132));
  }
}

TEST_CASE("split prefill: rows of tiles that no sequence can have count in the workspace alone") {
  const SplitLaunch h100 = {
      .multiprocessors = 132, .q_tile = 128, .kv_tile = 128, .value_dim = 128, .work_side = 128};
  const PackedShape chunk = {.batch = 1, .num_q_heads = 8, .total_q = 512};
  const QTiles q_tiles = packed_q_tiles(h100, chunk, 128, 5);
  CHECK(q_tiles.most == 32);
  CHECK(q_tiles.room == 40);
  CHECK(split_parts(h100, q_tiles, 32768) == 4);
  CHECK(split_parts(h100, {32, 120}, 32768) == 3);  // the workspace's bound
}

TEST_CASE("split prefill: dense calls are right, repeat their bits and clear their counters",
          "[every-kind]") {
  const ManyMultiprocessors many;
  for (const Case& one : cases()) {
    CAPTURE(one.fields, one.shape.describe());
    REQUIRE_FALSE(has_few_rows(spec_of(one), one.shape));
    REQUIRE(Attention(spec_of(one), splitting()).workspace_size(one.shape) > 0);
    CHECK(error_of(one) <= 0x1p-6f);
  }
}

TEST_CASE("split prefill: without a workspace a call is not split") {
  const ManyMultiprocessors many;
  const Case one = {R"("mask_mod": "q_idx >= kv_idx")", kShape};
  const Call whole(one), plain(one);
  whole.run(Attention(whole.spec, splitting()), {});
  plain.run(Attention(plain.spec, {.device = Device::parse("cuda")}), {});
  CHECK(farthest(whole.values(), plain.values()) == 0);
}

namespace {

int parts_of(const Spec& spec, packed_calls::Batch& batch) {
  using namespace packed_calls;
  const Attention attention(spec, {.device = Device::parse("cuda")});
  Workspace workspace(attention.workspace_size(batch.shape()));
  const BatchTensors staged(batch, spec.dtype);
  return attention.plan(batch.shape(), staged.sequences(), {}, {.workspace = workspace.view()})
      .state()
      .geometry.split_parts;
}

}  // namespace

TEST_CASE("split prefill: packed calls, with sequences of which some have no columns") {
  const ManyMultiprocessors many;
  using namespace packed_calls;
  const char* const mask =
      GENERATE("", "q_idx >= kv_idx", "q_idx - kv_idx < 300 && kv_idx % 900 > 100");
  Batch batch = {.lengths = {{70, 2300}, {130, 900}, {20, 0}, {40, 40}},
                 .heads = 1,
                 .kv_heads = 1,
                 .dim = 128};
  batch.make();
  Spec spec = packed_spec(128, mask, true);
  spec.dtype = f16;
  CHECK(parts_of(spec, batch) > 1);
  check_against_dense(spec, batch, 2 * 1.5f * 0x1p-11f, Device::parse("cuda"));
}

TEST_CASE(
    "split prefill: with batch_invariant a sequence has the same bits whatever else the call has") {
  const ManyMultiprocessors many;
  packed_calls::check_batch_invariance(
      {.dtype = f16, .head_dim = 128, .mask_mod = "q_idx >= kv_idx"}, Device::parse("cuda"),
      {70, 2300});
}

TEST_CASE(
    "split prefill: calls captured once replay with other lengths, and repeats have equal bits") {
  const ManyMultiprocessors many;
  constexpr PackedShape kFewQTiles = {.batch = 1,
                                      .num_q_heads = 2,
                                      .num_kv_heads = 1,
                                      .total_q = 60,
                                      .total_kv = 1500,
                                      .max_kv_len = 1400};
  for (const char* const mask : {"", "q_idx >= kv_idx"}) {
    Spec spec = packed_calls::packed_spec(128, mask, true);
    spec.dtype = bf16;
    require_equal_replays(spec, kFewQTiles, 2);
    require_equal_repeats(spec, kFewQTiles, 4);
  }
}

namespace {

// The last columns have each row's greatest scores, 400 above the scores of all other parts.
const Case kUnlikeParts = {R"x("score_mod": "score + (kv_idx > 1900 ? 400.0f : 0.0f)")x", kShape};
const Case kCausal = {R"("mask_mod": "q_idx >= kv_idx")", kShape};

}  // namespace

TEST_CASE("split prefill: planted faults are seen") {
  const ManyMultiprocessors many;
  const std::string items = "cuda/hopper/split_items.hpp", rows = "cuda/hopper/joined_rows.hpp";
  const std::string elects =
      "comes_last = add_and_synchronise(&arrived, 1u) + 1 == static_cast<unsigned>(part.parts);";
  const struct {
    test::Fault fault;
    const Case& seen_in;
  } faults[] = {
      {{"parts of the same tiles", items, "const int begin = first(partial + full)",
        "const int begin = 0 * first(partial + full)"},
       kCausal},
      {{"the last tile of each part is left out", items, "end = begin + count(partial + full);",
        "end = max(begin + count(partial + full) - 1, begin);"},
       kCausal},
      {{"warpgroups share a counter", rows, "arrived[q_tile * kConsumers + consumer]",
        "arrived[q_tile * kConsumers]"},
       kCausal},
      {{"two parts come last", rows, elects,
        "comes_last = add_and_synchronise(&arrived, 1u) + 2 >= static_cast<unsigned>(part.parts);"},
       kCausal},
      {{"no part comes last", rows, elects,
        "comes_last = add_and_synchronise(&arrived, 1u) + 2 == static_cast<unsigned>(part.parts) + "
        "2;"},
       kCausal},
      {{"the first part comes last", rows, elects,
        "comes_last = (add_and_synchronise(&arrived, 1u), part.number == 0);"},
       kCausal},
      {{"a counter is left behind", rows, "if (comes_last) arrived = 0;", ""}, kCausal},
      {{"sums are not weighed", rows, "end.y * weight;", "end.y;"}, kUnlikeParts},
      {{"values are not weighed", rows, "x.z * weight;", "x.z;"}, kUnlikeParts},
      {{"the first part alone", rows,
        "stored(arguments, first + k, consumer);\n#pragma unroll\n    for (int i = 0; i < kRows; "
        "++i) {\n",
        "stored(arguments, first, consumer);\n#pragma unroll\n    for (int i = 0; i < kRows; ++i) "
        "{\n"},
       kCausal},
      {{"the maximum of the last part", rows, "fmaxf(softmax.max[i], __ldcg(stored.end(i)).x)",
        "__ldcg(stored.end(i)).x"},
       kUnlikeParts}};
  for (const auto& [fault, seen_in] : faults) {
    CAPTURE(fault.what);
    const auto templates = std::make_shared<test::FaultyTemplates>(fault);
    CHECK(error_of(seen_in, templates) > 0x1p-6f);
  }
}

namespace {

// How a part is stored and counted in joined_rows.hpp.
const std::string kBarrier =
    "  sync_named<kWarpgroup>(kOwnBarrier + consumer);  // all of the part is written\n";
const std::string kUntilCounted =
    "  bool comes_last = false;\n"
    "  if (consumer_thread() % kWarpgroup == 0) {\n"
    "    unsigned& arrived = arguments.splits.arrived[q_tile * kConsumers + consumer];\n"
    "    comes_last = add_and_synchronise(&arrived, 1u) + 1 == "
    "static_cast<unsigned>(part.parts);\n";

// The thread that has counted the first of two parts then waits until another block has added up
// both. Only the first consumer does: two blocks could wait for each other's consumers.
const std::string kIsSlow =
    "    if (consumer == 0 && !comes_last) {\n"
    "      for (long long i = 0;\n"
    "           i < 10000000000 && *static_cast<volatile unsigned*>(&arrived) != 0; ++i) {\n"
    "      }\n"
    "      for (volatile int i = 0; i < 30000000;) i = i + 1;\n"
    "    }\n";

}  // namespace

TEST_CASE("split prefill: a part that is counted before all of it is written is seen") {
  // Two parts of each of two q tiles: the emulated GPU runs a tile's blocks at the same time.
  const ManyMultiprocessors four(4);
  const std::string rows = "cuda/hopper/joined_rows.hpp";
  const auto error_with = [&](const std::string& replacement) {
    return error_of(kCausal, std::make_shared<test::FaultyTemplates>(
                                 test::Fault{"", rows, kBarrier + kUntilCounted, replacement}));
  };
  CHECK(error_with(kBarrier + kUntilCounted + kIsSlow) <= 0x1p-6f);  // slow, and right
  CHECK(error_with(kUntilCounted + kIsSlow) > 0x1p-6f);
}
