// Checks of packed calls: they pass where the call is right, and fail where it is not.
// `TILEWRIGHT_TEST_DEVICE=cuda verify_tests "packed check: right calls*,packed check: examples*"`
// makes them on a GPU.
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/call/plan_map.hpp"
#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/full_run.hpp"
#include "tests/support/packed_spec.hpp"
#include "tests/support/source_root.hpp"
#include "verify/check.hpp"
#include "verify/outputs.hpp"
#include "verify/random_sequences.hpp"
#include "verify/sequences.hpp"

using namespace tilewright;
using namespace tilewright::verify;
using Catch::Matchers::ContainsSubstring;

namespace {

using Lengths = std::vector<PackedLengths::Sequence>;

struct Case {
  std::string name;
  Spec spec;
  std::int64_t q_heads, kv_heads;
  Lengths sequences;
  RandomOptions options = {};
};

Spec packed(DType dtype, std::int64_t head_dim, std::string mask_mod = "q_idx >= kv_idx",
            bool lse = true) {
  return {.dtype = dtype,
          .head_dim = head_dim,
          .layout = Layout::packed,
          .mask_mod = std::move(mask_mod),
          .outputs = {.lse = lse}};
}

CheckOptions on_cpu() {
  CheckOptions options;
  options.attention.device = Device::cpu();
  return options;
}

PackedInputs inputs_of(const Case& c, std::uint64_t seed = 1) {
  return random_packed_inputs(c.spec,
                              {.num_q_heads = c.q_heads,
                               .num_kv_heads = c.kv_heads,
                               .sequences = c.sequences,
                               .pages = {.page_size = c.spec.is_paged() ? 16 : 0}},
                              seed, c.options);
}

// TILEWRIGHT_TEST_DEVICE: another device for what has to be right on each.
CheckOptions on_device() {
  const char* const device = std::getenv("TILEWRIGHT_TEST_DEVICE");
  CheckOptions options;
  options.attention.device = device != nullptr ? Device::parse(device) : Device::cpu();
  return options;
}

// A GPU, which may be an emulated one, takes the day's sixth, and all only in a whole run.
bool is_due(std::size_t number) {
  const bool is_cpu = on_device().attention.device.kind() == Device::Kind::cpu;
  return is_cpu || is_whole_run() || is_in_share(number, 6);
}

Report check_case(const Case& c, const CheckOptions& options = on_cpu()) {
  const PackedInputs inputs = inputs_of(c);
  return check(c.spec, inputs.problem(), options);
}

const Lengths kDecodeAndPrefill = {{1, 332}, {5, 18}, {129, 463}};

Case biased() {
  Spec spec = packed(f32, 64, "", true);
  spec.score_mod = "score + bias(h, q_idx - (kv_len - q_len), kv_idx)";
  spec.buffers = {{"bias", {.dtype = f32, .shape = {NamedDim::num_q_heads, FreeDim{}, FreeDim{}}}}};
  return {.name = "a bias shared by all sequences",
          .spec = spec,
          .q_heads = 6,
          .kv_heads = 3,
          .sequences = {{50, 50}, {80, 128}, {1, 19}},
          .options = {.null_extents = {{"bias", {80, 128}}}}};
}

Case documents() {
  Spec spec = packed(bf16, 32, "doc_q[q_token] == doc_k[kv_token]");
  spec.buffers = {
      {"doc_q", {.dtype = i32, .shape = {NamedDim::total_q}, .range = {{0, 3}}, .sorted = true}},
      {"doc_k", {.dtype = i32, .shape = {NamedDim::total_kv}, .range = {{0, 3}}, .sorted = true}}};
  return {.name = "documents by q_token and kv_token",
          .spec = spec,
          .q_heads = 2,
          .kv_heads = 1,
          .sequences = {{60, 60}, {90, 130}, {33, 20}}};
}

std::vector<Case> right_cases() {
  std::vector<Case> cases = {
      {"no mask", packed(f16, 128, "", false), 8, 8, {{32, 32}, {15, 15}, {1, 1}, {75, 75}}},
      {"causal, shared kv heads", packed(bf16, 128), 8, 2, kDecodeAndPrefill},
      {"rows without columns", packed(bf16, 64), 4, 4, {{75, 25}, {7, 3}, {16, 0}, {33, 1}}},
      {"sequences without rows or columns",
       packed(f32, 32),
       4,
       2,
       {{5, 9}, {0, 0}, {0, 31}, {7, 40}, {0, 0}, {0, 0}}},
      {"rows that keep nothing", packed(bf16, 32, "q_idx % 7 != 3"), 2, 2, kDecodeAndPrefill},
      {"heads and sequences apart",
       packed(f32, 32, "q_idx >= kv_idx && q_idx - kv_idx < 60 + 32 * h + 10 * b"), 4, 2,
       kDecodeAndPrefill},
      biased(),
      documents()};
  // A word of the tile map holds 32 tiles.
  Spec words = packed(f32, 16);
  words.block = {16, 16};
  cases.push_back({"sequences with one word of tiles and with three",
                   words,
                   2,
                   1,
                   {{20, 9}, {17, 1100}, {3, 600}}});
  for (const std::int64_t dim : {16, 24, 40, 96, 112, 256}) {
    Spec spec = packed(bf16, dim);
    spec.v_head_dim = 64;
    cases.push_back({"head_dim " + std::to_string(dim), spec, 2, 1, {{1, 130}, {40, 57}}});
  }
  return cases;
}

Report check_with_fault(const Case& c, test::Fault fault) {
  CheckOptions options = on_cpu();
  options.attention.kernels.templates = std::make_shared<test::FaultyTemplates>(std::move(fault));
  options.interpretations = Toolchain();
  return check_case(c, options);
}

Case short_rows() {
  return {.name = "short rows",
          .spec = packed(f32, 32),
          .q_heads = 2,
          .kv_heads = 1,
          .sequences = {{10, 300}, {20, 200}}};
}

bool has_reason(const Report& report, const std::string& text) {
  for (const std::string& reason : report.reasons()) {
    if (reason.find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("packed check: right calls pass") {
  std::size_t number = 0;
  for (const Case& c : right_cases()) {
    if (!is_due(number++)) continue;
    const Report report = check_case(c, on_device());
    CAPTURE(c.name, report.reasons());
    CHECK(report.ok);
    CHECK(report.mask_verdict.has_value() == !c.spec.mask_mod.empty());
    CHECK(!report.mask);
    CHECK(report.verdict.bound_max > 0);
  }
}

TEST_CASE("packed check: examples pass, packed where their buffers allow it") {
  int packed_ones = 0;
  std::size_t number = 0;
  for (const char* const folder : {"examples", "examples/packed"}) {
    for (const auto& file :
         std::filesystem::directory_iterator(source_root(TILEWRIGHT_SOURCE_DIR) / folder)) {
      if (file.path().extension() != ".json") continue;
      const std::optional<Spec> spec = test::as_packed(spec_from_file(file.path().string()));
      if (!spec) continue;
      ++packed_ones;
      if (!is_due(number++)) continue;
      const Report report = check_case({.name = spec->name,
                                        .spec = *spec,
                                        .q_heads = 4,
                                        .kv_heads = 2,
                                        .sequences = {{1, 83}, {5, 18}, {33, 150}}},
                                       on_device());
      CAPTURE(spec->name, report.reasons());
      CHECK(report.ok);
    }
  }
  CHECK(packed_ones >= 12);
}

TEST_CASE("packed check: examples of local and vertical blocks that slide by head") {
  Spec spec = spec_from_file(
      (source_root(TILEWRIGHT_SOURCE_DIR) / "examples/packed/block_sparse.json").string());
  spec.scalars.at("local_blocks").default_value = 2;
  spec.scalars.at("vertical_stride").default_value = 3;
  spec.scalars.at("first_head").default_value = GENERATE(0, 4);
  const Report report = check_case({.name = spec.name,
                                    .spec = spec,
                                    .q_heads = 3,
                                    .kv_heads = 3,
                                    .sequences = {{200, 200}, {1, 333}, {130, 450}}},
                                   on_device());
  CAPTURE(report.reasons());
  CHECK(report.ok);
  REQUIRE(report.mask_verdict.has_value());
}

TEST_CASE("packed check: positions follow kv_offset and q_offset") {
  const Case c = {.name = "offsets",
                  .spec = packed(f32, 32, "q_idx >= kv_idx && kv_idx % 3 != 1"),
                  .q_heads = 2,
                  .kv_heads = 1,
                  .sequences = {{40, 90}, {3, 70}}};
  const PackedInputs inputs = random_packed_inputs(c.spec,
                                                   {.num_q_heads = c.q_heads,
                                                    .num_kv_heads = c.kv_heads,
                                                    .sequences = c.sequences,
                                                    .kv_offset = 7},
                                                   1);
  Problem problem = inputs.problem();
  const Tensor q_offset = Tensor::zeros(i32, {2});
  SECTION("kv_offset alone") {}
  SECTION("both") {
    problem.sequences->q_offset = q_offset.view();
  }
  const Report report = check(c.spec, problem, on_cpu());
  CAPTURE(report.reasons());
  CHECK(report.ok);
}

TEST_CASE("packed check: sequences may share rows of k, in any order, and begin after row 0 of q") {
  const Case c = {.name = "shared",
                  .spec = packed(f32, 32, "q_idx >= kv_idx && (kv_token + q_token) % 5 != 1"),
                  .q_heads = 2,
                  .kv_heads = 1,
                  .sequences = {{30, 140}, {9, 60}, {2, 150}}};
  PackedInputs inputs = inputs_of(c);
  auto* const kv_begin = static_cast<std::int32_t*>(inputs.kv_begin->data());
  auto* const kv_len = static_cast<std::int32_t*>(inputs.kv_len.data());
  std::swap(kv_begin[0], kv_begin[2]);
  kv_begin[1] = kv_begin[0] + 7;
  kv_len[1] = 100;
  static_cast<std::int32_t*>(inputs.q_begin.data())[0] = 4;
  const Report report = check(c.spec, inputs.problem(), on_cpu());
  CAPTURE(report.reasons());
  CHECK(report.ok);
}

TEST_CASE("packed check: a wrong result is found, with its sequence") {
  const Report report =
      check_with_fault(short_rows(), {.what = "the last column is lost",
                                      .file = "cpu/forward.hpp",
                                      .text = "item.kv_len = snippet.kv_len;",
                                      .replacement = "item.kv_len = snippet.kv_len - 1;"});
  CHECK(!report.ok);
  REQUIRE(report.verdict.first_bad);
  CHECK(report.verdict.first_bad->b >= 0);
  CHECK(report.verdict.first_bad->row < 20);
}

TEST_CASE("packed check: a sequence of small values is judged alone too") {
  const Case c = short_rows();
  PackedInputs inputs = inputs_of(c);
  // The first sequence's values set bounds that hide the error, the second's do not.
  auto* const v = static_cast<float*>(inputs.inputs.v.data());
  for (std::int64_t i = 0; i < (PackedLengths::kGap + 300) * 32; ++i) v[i] *= 1e4f;
  CheckOptions options = on_cpu();
  options.attention.kernels.templates = std::make_shared<test::FaultyTemplates>(
      test::Fault{.what = "out is off by a constant",
                  .file = "cpu/forward.hpp",
                  .text = "lane[d * kLanes] * end.factor;",
                  .replacement = "lane[d * kLanes] * end.factor + 1e-4f;"});
  options.interpretations = Toolchain();
  const Report report = check(c.spec, inputs.problem(), options);
  CHECK(report.verdict.ok);
  CHECK(!report.ok);
  CHECK(has_reason(report, "sequence 1 alone"));
  CHECK(!has_reason(report, "sequence 0 alone"));
}

TEST_CASE("packed check: a write into rows of no sequence is found") {
  const Report report = check_with_fault(
      short_rows(), {.what = "a row too many is written",
                     .file = "cpu/forward.hpp",
                     .text = "for (int row = 0; row < item.rows; ++row) {",
                     .replacement = "for (int row = 0; row <= item.rows; ++row) {"});
  CHECK(!report.ok);
  CHECK(has_reason(report, "row 30 of out belongs to no sequence and was written to"));
}

TEST_CASE("packed check: a plan that calls a partial tile full or empty is found") {
  for (const std::string state : {"kTileFull", "kTileEmpty"}) {
    const Report report =
        check_with_fault(short_rows(), {.what = "tiles are not evaluated",
                                        .file = "cpu/mask/rows.hpp",
                                        .text = ": evaluate(range));",
                                        .replacement = ": tilewright::abi::" + state + ");"});
    CAPTURE(state, report.reasons());
    CHECK(!report.ok);
    REQUIRE(report.mask_verdict);
    CHECK(!report.mask_verdict->ok);
    CHECK(has_reason(report, "the plan's tile map is wrong"));
  }
}

TEST_CASE("packed check: a buffer that breaks the spec's promise is named, and the call is made") {
  Case made = documents();
  for (auto& [name, buffer] : made.spec.buffers) buffer.sorted = Sorted::promised;
  PackedInputs inputs = inputs_of(made, 5);
  CHECK(check(made.spec, inputs.problem(), on_cpu()).ok);
  static_cast<int*>(inputs.inputs.buffers.at("doc_k").data())[0] = 4;
  const Report report = check(made.spec, inputs.problem(), on_cpu());
  CHECK(!report.ok);
  REQUIRE(!report.reasons().empty());
  CHECK(report.reasons()[0] == "doc_k[1] is 0 after 4, but the spec promises that it is sorted");
  CHECK(report.verdict.bound_max > 0);
}

TEST_CASE("packed check: a table that lies is refused before anything is run") {
  const Case c = short_rows();
  PackedInputs inputs = inputs_of(c);
  static_cast<std::int32_t*>(inputs.kv_len.data())[1] = 5000;
  REQUIRE_THROWS_WITH(check(c.spec, inputs.problem(), on_cpu()),
                      ContainsSubstring("kv_len[1] is 5000, but there is room for"));
}

TEST_CASE("packed check: the tile map may call a full tile partial, and nothing else") {
  const Case c = short_rows();
  const PackedInputs inputs = inputs_of(c);
  const Problem problem = inputs.problem();
  const Attention attention(c.spec, {.device = Device::cpu()});
  const FloatInterpretation interpretation(c.spec, Toolchain());
  const PackedShape shape = packed_shape(problem);
  std::vector<std::byte> memory(static_cast<std::size_t>(attention.workspace_size(shape)) + 256);
  auto* const start = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256);
  const Plan plan = attention.plan(
      shape, *problem.sequences, {},
      {.workspace = TensorView::contiguous(start, u8, {attention.workspace_size(shape)})});
  const auto verdict = [&] {
    const PlanMap map(plan, c.spec.block);
    return check_tile_map(c.spec, problem, map, &interpretation, ThreadPool::shared());
  };
  REQUIRE(verdict().ok);
  REQUIRE(verdict().tiles == 2 * (3 + 2));
  auto* const span = reinterpret_cast<abi::TileSpan*>(start + plan.state().geometry.layout.spans);
  const abi::TileSpan right = *span;
  REQUIRE(right.kept == 7u);
  SECTION("a full tile as partial") {
    span->partial |= 1u;
    CHECK(verdict().ok);
  }
  SECTION("a partial tile as full") {
    span->partial = 0;
    CHECK(!verdict().ok);
  }
  SECTION("a kept tile as empty") {
    span->kept &= ~1u;
    CHECK(!verdict().ok);
  }
  SECTION("a tile after the last") {
    span->kept |= 8u;
    CHECK_THAT(verdict().first_wrong, ContainsSubstring("after the sequence's last column"));
  }
  SECTION("another length") {
    auto* const sequence =
        reinterpret_cast<abi::PlannedSequence*>(start + plan.state().geometry.layout.sequences);
    sequence->kv_len -= 1;
    CHECK_THAT(verdict().first_wrong, ContainsSubstring("sequence 0 is planned with"));
  }
}

TEST_CASE("packed check: what a snippet reads outside of a buffer is found in each sequence") {
  Spec spec = packed(f32, 32, "");
  spec.score_mod = "score + x[kv_token + (b == 1 ? 100000 : 0)]";
  spec.buffers = {{"x", {.dtype = f32, .shape = {NamedDim::total_kv}}}};
  const Report report = check_case(
      {.name = "x", .spec = spec, .q_heads = 1, .kv_heads = 1, .sequences = {{3, 9}, {4, 8}}});
  CHECK(report.ok);
  CHECK(report.undefined.elements == 3 * 9 + 4 * 8);
  CHECK(report.undefined.elements_checked == report.undefined.elements);
  REQUIRE(report.undefined.operations.size() == 1);
  CHECK_THAT(report.undefined.operations[0].message, ContainsSubstring("at b 1"));
}

TEST_CASE("packed check: rows without columns have a sink, which is checked") {
  Spec spec = packed(f32, 32, "");
  spec.sink = "x[2 + b]";
  spec.buffers = {{"x", {.dtype = f32, .shape = {3}}}};
  const Report report = check_case(
      {.name = "x", .spec = spec, .q_heads = 1, .kv_heads = 1, .sequences = {{3, 9}, {4, 0}}});
  CHECK(report.ok);
  REQUIRE(report.undefined.operations.size() == 1);
  CHECK_THAT(report.undefined.operations[0].message, ContainsSubstring("at b 1, h 0, q_idx -4)"));
}

TEST_CASE("packed check: a result from elsewhere is judged over the rows of sequences") {
  const Case c = short_rows();
  const PackedInputs inputs = inputs_of(c);
  const Problem problem = inputs.problem();
  CheckOptions options = on_cpu();
  options.theirs = run_call(Attention(c.spec, options.attention), problem);
  const std::int64_t last = options.theirs->out.rows - 1;
  options.theirs->out.at(0, 0, last, 0) = 77;  // a row of no sequence
  CHECK(check(c.spec, problem, options).ok);
  options.theirs->out.at(0, 0, 3, 0) += 0.5;
  CHECK(!check(c.spec, problem, options).ok);
}
