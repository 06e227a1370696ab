// Plans whose tiles lists over positions decide, on the CPU, against attention in double.
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "runtime/api/attention.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/position_lists.hpp"

namespace tilewright {
using namespace packed_calls;

namespace {

Error error_of(const auto& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "nothing was thrown");
}

void require_error(const Error& error, ErrorCode code, const std::string& message,
                   const std::string& hint) {
  CHECK(error.code() == code);
  CHECK(error.message() == message);
  CHECK_THAT(error.hint(), Catch::Matchers::ContainsSubstring(hint));
}

Spec dense_spec(Spec spec) {
  spec.layout = Layout::bshd;
  return spec;
}

// One sequence, planned with positions.
struct OneSequence {
  Attention attention;
  PackedShape shape;
  Tensor q_begin, kv_begin;
  Sequences sequences;
  Workspace workspace;

  OneSequence(const Spec& spec, int q_len, int kv_len, int heads = 1)
      : attention(spec, {.device = Device::cpu(), .positions = true}),
        shape{.batch = 1,
              .num_q_heads = heads,
              .num_kv_heads = 1,
              .total_q = q_len,
              .total_kv = kv_len},
        q_begin(int_tensor({0, q_len})),
        kv_begin(int_tensor({0, kv_len})),
        sequences{.q_begin = q_begin, .kv_begin = kv_begin.view()},
        workspace(attention.workspace_size(shape)) {}

  Plan plan(const BlockMask& positions, const Bindings& bindings = {}) {
    return attention.plan(shape, sequences, bindings,
                          {.workspace = workspace.view(), .positions = &positions});
  }
};

BlockMask mask_of(const Spec& packed, const Shape& shape) {
  return Attention(dense_spec(packed), {.device = Device::cpu(), .masks_only = true})
      .block_mask(shape);
}

}  // namespace

TEST_CASE("positions: vLLM's lists with a causal mask_mod") {
  check_sparse_lists(causal_spec(32, {64, 64}), 4e-6, Device::cpu());
}

TEST_CASE("positions: the lists of a dense Attention, square and oblong blocks") {
  const std::array<std::int64_t, 2> block =
      GENERATE(std::array<std::int64_t, 2>{64, 64}, std::array<std::int64_t, 2>{128, 64},
               std::array<std::int64_t, 2>{64, 128}, std::array<std::int64_t, 2>{128, 128});
  CAPTURE(block[0], block[1]);
  check_dense_lists(causal_spec(16, block), 4e-6, Device::cpu());
}

TEST_CASE("positions: the map keeps the tiles that the pattern as a mask_mod keeps") {
  const SparsePattern pattern{.block = 64, .local = 2, .vertical = 3, .step = 1};
  Spec spec = causal_spec(16, {64, 64});
  OneSequence listed(spec, 700, 700, 4);
  const BlockMask positions = block_mask_from_csr(listed.attention.position_fingerprint(704, 4),
                                                  SparseLists(pattern, 4, 11).view());
  const PlanMap by_lists(listed.plan(positions), spec.block);
  spec.mask_mod =
      "int qb = q_idx / 64, kb = kv_idx / 64;"
      "return q_idx >= kv_idx && (qb - kb < 2 || (kb + h + 1) % 3 == 0);";
  OneSequence decided(spec, 700, 700, 4);
  const Plan plan = decided.attention.plan(decided.shape, decided.sequences, {},
                                           {.workspace = decided.workspace.view()});
  const PlanMap by_mask(plan, spec.block);
  for (std::int64_t h = 0; h < 4; ++h) {
    for (std::int64_t q_block = 0; q_block < 11; ++q_block) {
      const auto a = by_lists.row(0, h, q_block), b = by_mask.row(0, h, q_block);
      for (std::size_t i = 0; i < a.size(); ++i) {
        CHECK((a[i] == PlanMap::Tile::empty) == (b[i] == PlanMap::Tile::empty));
      }
    }
  }
}

TEST_CASE("positions: \"true\" leaves all decisions to the lists") {
  const SparsePattern pattern{.block = 64, .local = 1, .vertical = 2, .step = 0};
  const Spec spec = [] {
    Spec causal = causal_spec(16, {64, 64});
    causal.mask_mod = "true";
    return causal;
  }();
  OneSequence one(spec, 150, 190);
  const BlockMask positions = block_mask_from_csr(one.attention.position_fingerprint(256),
                                                  SparseLists(pattern, 1, 4).view());
  Batch batch{.lengths = {{150, 190}}, .heads = 1, .kv_heads = 1, .dim = 16};
  batch.make();
  check_with_positions(
      spec, batch, positions,
      [&](int, int q, int kv) { return pattern.keeps_block(0, q / 64, kv / 64); }, 4e-6,
      Device::cpu(), [](const PlanMap&) {});
}

TEST_CASE("positions: a rebuild takes new lengths, and needs no new lists") {
  const Spec spec = causal_spec(16, {64, 64});
  const BlockMask positions = mask_of(spec, {.q_len = 640, .kv_len = 640});
  OneSequence one(spec, 300, 600);
  Plan plan = one.plan(positions);
  require_listed(PlanMap(plan, spec.block), positions, true);
  for (const int rows : {1, 63, 64, 65, 129, 300}) {
    static_cast<int*>(one.q_begin.data())[1] = rows;
    one.attention.rebuild(plan);
    CHECK(PlanMap(plan, spec.block).sequences()[0].q_offset == 600 - rows);
    require_listed(PlanMap(plan, spec.block), positions, true);
  }
}

TEST_CASE("positions: sequences longer than the lists keep nothing there, and are reported") {
  const Spec spec = causal_spec(16, {64, 64});
  const BlockMask positions = mask_of(spec, {.q_len = 100, .kv_len = 90});
  OneSequence one(spec, 150, 150);
  const Plan plan = one.plan(positions);
  CHECK(plan.report().text() ==
        "sequence 0 has rows up to position 149, but the positions' lists have 100 rows (2 values "
        "were clamped)");
  CHECK(plan.report().first->kind == PlanReport::Kind::position_rows);
  const PlanMap map(plan, spec.block);
  CHECK(map.row(0, 0, 1).at(1) == PlanMap::Tile::partial);
  for (const PlanMap::Tile tile : map.row(0, 0, 2)) CHECK(tile == PlanMap::Tile::empty);

  OneSequence wide(spec, 20, 95);
  CHECK(wide.plan(positions).report().text() ==
        "sequence 0 has columns up to position 94, but the positions' lists have 90 columns");
  OneSequence fits(spec, 50, 90);
  CHECK(fits.plan(positions).report().count == 0);
}

TEST_CASE("positions: the workspace has room for a list for each head where the option says so") {
  const Spec spec = causal_spec(16, {64, 64});
  const PackedShape shape = {
      .batch = 3, .num_q_heads = 4, .num_kv_heads = 4, .total_q = 303, .total_kv = 3000};
  const Attention plain(spec, {.device = Device::cpu()});
  const Attention with(spec, {.device = Device::cpu(), .positions = true});
  const BlockMask one = mask_of(spec, {.q_len = 128, .kv_len = 128});
  const SparsePattern pattern{.block = 64, .local = 1, .vertical = 2, .step = 1};
  const BlockMask four =
      block_mask_from_csr(plain.position_fingerprint(128, 4), SparseLists(pattern, 4, 2).view());
  CHECK(plain.workspace_size(shape, nullptr) == plain.workspace_size(shape));
  CHECK(plain.workspace_size(shape, &four) > plain.workspace_size(shape));
  CHECK(with.workspace_size(shape) == plain.workspace_size(shape, &four));
  Workspace small(plain.workspace_size(shape, &four) - 1);
  const Tensor begins = int_tensor({0, 1, 2, 303}), kv_begins = int_tensor({0, 33, 66, 3000});
  require_error(error_of([&] {
                  plain.plan(shape, {.q_begin = begins, .kv_begin = kv_begins.view()}, {},
                             {.workspace = small.view(), .positions = &four});
                }),
                ErrorCode::tensor,
                "the workspace has " + std::to_string(small.view().shape[0]) +
                    " bytes; this plan needs " + std::to_string(small.view().shape[0] + 1),
                "workspace_size(shape, &positions)");
}

TEST_CASE("positions: lists of something else are refused with what differs") {
  const Spec spec = causal_spec(16, {64, 64});
  const Shape shape = {.q_len = 128, .kv_len = 128};
  OneSequence one(spec, 100, 100, 2);
  const auto refused = [&](const BlockMask& mask) { return error_of([&] { one.plan(mask); }); };
  Spec other = spec;
  other.mask_mod = "q_idx > kv_idx";
  require_error(refused(mask_of(other, shape)), ErrorCode::block_mask,
                "the positions were built for the mask_mod q_idx > kv_idx, but the plan has q_idx "
                ">= kv_idx",
                "attention.position_fingerprint(length, heads, bindings)");
  other = causal_spec(16, {128, 64});
  CHECK(refused(mask_of(other, shape)).message() ==
        "the positions were built for a q block of 128, but the plan has 64");
  other = causal_spec(16, {64, 32});
  CHECK(refused(mask_of(other, shape)).message() ==
        "the positions were built for a kv block of 32, but the plan has 64");
  require_error(refused(mask_of(spec, {.q_len = 128, .kv_len = 128, .q_offset = 7})),
                ErrorCode::block_mask,
                "the positions were built with q_offset 7 and kv_offset 0; both must be 0",
                "for all positions from 0 on");
  const SparsePattern pattern{.block = 64, .local = 1, .vertical = 2, .step = 1};
  CHECK(refused(block_mask_from_csr(one.attention.position_fingerprint(128, 4),
                                    SparseLists(pattern, 4, 2).view()))
            .message() == "the positions were built for num_q_heads 4, but the plan has 2");
  MaskFingerprint of_two = one.attention.position_fingerprint(128);
  of_two.shape.batch = 2;
  TileLists lists{.row_offsets = std::vector<std::int64_t>(5),
                  .indices = {},
                  .full_row_offsets = std::vector<std::int64_t>(5),
                  .full_indices = {}};
  CHECK(refused(BlockMask(of_two, lists, "lists", 0)).message() ==
        "the positions have lists for batch 2; they must be one sequence's");
  BlockMask moved = mask_of(spec, shape);
  const BlockMask to = std::move(moved);
  CHECK(refused(moved).message() == "this BlockMask was moved from");
}

TEST_CASE("positions: scalars that mask_mod reads must be those of the lists, by name") {
  Spec spec = causal_spec(16, {64, 64});
  spec.mask_mod = "q_idx - kv_idx < window";
  spec.scalars = {{"window", {.dtype = i32, .default_value = 100}}};
  const BlockMask positions = mask_of(spec, {.q_len = 128, .kv_len = 128});
  // Another scalar stands first here.
  spec.score_mod = "score * alpha";
  spec.scalars.emplace("alpha", ScalarSpec{.dtype = f32, .default_value = 2.0});
  OneSequence one(spec, 100, 100);
  Plan plan = one.plan(positions);
  const Bindings wider = one.attention.bind({.scalars = {{"window", 200}}});
  require_error(error_of([&] { one.attention.rebuild(plan, wider); }), ErrorCode::block_mask,
                "the positions were built for window = 100, but the plan has 200",
                "make them by the block_mask of a dense Attention");
  CHECK(error_of([&] { one.plan(positions, wider); }).message() ==
        "the positions were built for window = 100, but the plan has 200");
  one.attention.rebuild(plan, one.attention.bind({.scalars = {{"alpha", 3.0}}}));
  const MaskFingerprint fingerprint = one.attention.position_fingerprint(64, 1, wider);
  CHECK(fingerprint.scalars == std::vector<double>{200});
}

TEST_CASE("positions: specs and sequences that have none are refused") {
  const std::string name = GENERATE("b", "q_len", "kv_len", "q_token", "kv_token");
  Spec spec = causal_spec(16, {64, 64});
  spec.mask_mod = "q_idx >= kv_idx && " + name + " >= 0";
  const Attention attention(spec, {.device = Device::cpu()});
  const std::string message = "mask_mod reads " + name +
                              ", which differs between sequences, and positions are the same "
                              "lists for all of them";
  require_error(error_of([&] { attention.position_fingerprint(128); }), ErrorCode::usage, message,
                "leave positions out");
  CHECK(error_of([&] {
          Attention(spec, {.device = Device::cpu(), .positions = true});
        }).message() == message);
}

TEST_CASE("positions: dense specs, specs without mask_mod, and kv_offset have none") {
  Spec spec = causal_spec(16, {64, 64});
  const BlockMask positions = mask_of(spec, {.q_len = 128, .kv_len = 128});
  OneSequence one(spec, 100, 100);
  const Tensor zero = int_tensor({0});
  one.sequences.kv_offset = zero.view();
  require_error(error_of([&] { one.plan(positions); }), ErrorCode::usage,
                "kv_offset was given, and positions begin with column 0", "leave kv_offset out");
  one.sequences.kv_offset.reset();
  one.sequences.q_offset = zero.view();
  CHECK(one.plan(positions).report().count == 0);

  const Attention dense(dense_spec(spec), {.device = Device::cpu(), .masks_only = true});
  CHECK(error_of([&] { dense.position_fingerprint(128); }).message() ==
        "layout is \"bshd\", and positions are for plans of packed calls");
  CHECK(error_of([&] { one.attention.position_fingerprint(0); }).code() == ErrorCode::tensor);
  CHECK(error_of([&] { one.attention.position_fingerprint(128, 0); }).code() == ErrorCode::tensor);
  spec.mask_mod.clear();
  const Attention everything(spec, {.device = Device::cpu()});
  require_error(error_of([&] { everything.workspace_size(one.shape, &positions); }),
                ErrorCode::usage,
                "the spec has no mask_mod, so its calls visit every tile and take no positions",
                R"("mask_mod": "true")");
}

}  // namespace tilewright
