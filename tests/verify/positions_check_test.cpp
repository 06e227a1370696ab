// Checks of packed calls whose tiles lists over positions decide: they pass where the call is
// right, and fail where a plan takes other tiles.
#include <memory>
#include <utility>

#include "runtime/api/mask_lists.hpp"
#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/position_lists.hpp"
#include "verify/check.hpp"
#include "verify/outputs.hpp"
#include "verify/random_sequences.hpp"

using namespace tilewright;
using namespace tilewright::verify;
using packed_calls::causal_spec;
using packed_calls::SparseLists;
using packed_calls::SparsePattern;

namespace {

const SparsePattern kPattern{.block = 64, .local = 1, .vertical = 3, .step = 1};
constexpr int kHeads = 4;

PackedInputs inputs_of(const Spec& spec) {
  return random_packed_inputs(
      spec,
      {.num_q_heads = kHeads, .num_kv_heads = 2, .sequences = {{70, 300}, {1, 130}, {90, 40}}}, 1,
      {});
}

CheckOptions on_cpu() {
  CheckOptions options;
  options.attention.device = Device::cpu();
  return options;
}

Report check_lists(const Spec& spec, const BlockMask& positions, const CheckOptions& options) {
  const PackedInputs inputs = inputs_of(spec);
  Problem problem = inputs.problem();
  problem.positions = &positions;
  return check(spec, problem, options);
}

BlockMask positions_of(const Spec& spec, const SparsePattern& pattern, int blocks) {
  const Attention attention(spec, {.device = Device::cpu()});
  return block_mask_from_csr(attention.position_fingerprint(blocks * 64, kHeads),
                             SparseLists(pattern, kHeads, blocks).view());
}

}  // namespace

TEST_CASE("positions check: lists that leave tiles out are right, and change the result") {
  const Spec spec = causal_spec(16, {64, 64});
  const BlockMask positions = positions_of(spec, kPattern, 5);
  const Report report = check_lists(spec, positions, on_cpu());
  CAPTURE(report.reasons());
  CHECK(report.ok);
  REQUIRE(report.mask_verdict);
  CHECK(report.mask_verdict->tiles > 0);

  const PackedInputs inputs = inputs_of(spec);
  Problem listed = inputs.problem();
  listed.positions = &positions;
  const Checker checker(spec, on_cpu());
  CHECK(!checker.check(inputs.problem(), {}, checker.expected(listed)).ok);
}

TEST_CASE("positions check: full tiles of lists are taken as they are") {
  const Spec spec = causal_spec(16, {64, 64});
  const BlockMask partial = positions_of(spec, kPattern, 5);
  TileLists lists = partial.lists();
  std::swap(lists.indices, lists.full_indices);
  std::swap(lists.row_offsets, lists.full_row_offsets);
  const Report report =
      check_lists(spec, BlockMask(partial.fingerprint(), std::move(lists), "lists", 0), on_cpu());
  CAPTURE(report.reasons());
  CHECK(report.ok);
}

TEST_CASE("positions check: a kernel that takes another head's list is found") {
  const Spec spec = causal_spec(16, {64, 64});
  CheckOptions options = on_cpu();
  options.attention.kernels.templates = std::make_shared<test::FaultyTemplates>(
      test::Fault{.what = "all heads have the first one's tiles",
                  .file = "cpu/forward.hpp",
                  .text = "map.spans + item.place.h * map.head_stride",
                  .replacement = "map.spans"});
  options.interpretations = Toolchain();
  CHECK(!check_lists(spec, positions_of(spec, kPattern, 5), options).ok);
}

TEST_CASE("positions check: the map is compared with the lists") {
  const Spec spec = causal_spec(16, {64, 64});
  const PackedInputs inputs = inputs_of(spec);
  const BlockMask positions = positions_of(spec, kPattern, 5);
  const BlockMask others =
      positions_of(spec, {.block = 64, .local = 2, .vertical = 3, .step = 1}, 5);
  Problem problem = inputs.problem();
  problem.positions = &positions;
  const Checker checker(spec, on_cpu());
  CallFacts facts;
  run_call(checker.attention(), problem, verify::Outputs(spec, problem.shape), &facts);
  const FloatInterpretation interpretation(spec, {});
  CHECK(check_tile_map(spec, problem, *facts.plan_map, &interpretation, ThreadPool::shared()).ok);
  problem.positions = &others;
  const MaskVerdict verdict =
      check_tile_map(spec, problem, *facts.plan_map, &interpretation, ThreadPool::shared());
  CHECK(!verdict.ok);
  CHECK_THAT(verdict.first_wrong, Catch::Matchers::ContainsSubstring(
                                      "is planned as empty, but the positions list it as partial"));
}

TEST_CASE("positions check: lists that are too short are refused before anything is run") {
  const Spec spec = causal_spec(16, {64, 64});
  REQUIRE_THROWS_WITH(
      check_lists(spec, positions_of(spec, kPattern, 4), on_cpu()),
      Catch::Matchers::ContainsSubstring("sequence 0 has rows up to position 299, but the "
                                         "positions' lists have 256 rows"));
}
