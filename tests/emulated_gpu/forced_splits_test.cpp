// Calls whose columns are cut into as many parts as their options wish for, on the emulated GPU.
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/call/plan_state.hpp"
#include "tests/emulated_gpu/many_multiprocessors.hpp"
#include "tests/gpu/packed_gpu_call.hpp"
#include "tests/support/packed_batch.hpp"
#include "verify/check.hpp"
#include "verify/random_inputs.hpp"
#include "verify/random_sequences.hpp"

using namespace tilewright;

namespace {

const std::vector<std::int64_t> kSplits = {1, 2, 16, 64};

Spec spec_of(const std::string& mask_mod) {
  Spec spec = packed_calls::packed_spec(64, mask_mod, true);
  spec.dtype = DType::f16;
  return spec;
}

std::string reasons_of(const Spec& spec, const verify::Problem& problem) {
  const verify::Report report = verify::check(
      spec, problem, {.attention = {.device = Device::parse("cuda"), .decode = true}});
  std::string text;
  for (const std::string& reason : report.reasons()) text += reason + "\n";
  return text;
}

verify::PackedLengths decoded(std::int64_t kv_len) {
  return {.num_q_heads = 4,
          .num_kv_heads = 2,
          .sequences = {{.q_len = 1, .kv_len = kv_len}, {.q_len = 1, .kv_len = kv_len}}};
}

PlanState state_of(const Spec& spec, std::int64_t splits) {
  using namespace packed_calls;
  const Attention attention(spec, {.device = Device::parse("cuda")});
  Batch batch = {.lengths = {{1, 900}, {1, 900}}, .heads = 4, .kv_heads = 2, .dim = 64};
  batch.make();
  const BatchTensors staged(batch, spec.dtype);
  Workspace workspace(attention.workspace_size(batch.shape()));
  return attention
      .plan(batch.shape(), staged.sequences(), {},
            {.workspace = workspace.view(), .splits = splits})
      .state();
}

}  // namespace

TEST_CASE("forced splits: decoded sequences of any length are right") {
  const test::ManyMultiprocessors many;
  const char* const mask = GENERATE("", "q_idx - kv_idx < 700");
  const Spec spec = spec_of(mask);
  for (const std::int64_t kv_len : {1, 15, 16, 17, 1000, 4095}) {
    const verify::PackedInputs inputs = verify::random_packed_inputs(spec, decoded(kv_len), 3);
    for (const std::int64_t splits : kSplits) {
      CAPTURE(mask, kv_len, splits);
      verify::Problem problem = inputs.problem();
      problem.splits = splits;
      CHECK(reasons_of(spec, problem).empty());
    }
  }
}

TEST_CASE("forced splits: a plan has so many parts of each head, as far as there is room") {
  const test::ManyMultiprocessors many(24);
  const Spec spec = spec_of("");
  const int room = state_of(spec, 0).decode_blocks();
  CHECK(room >= 24);
  CHECK_FALSE(state_of(spec, 0).keeps_items_whole());
  CHECK(state_of(spec, 1).keeps_items_whole());
  CHECK(state_of(spec, 2).decode_blocks() == 2 * 4);  // two sequences with two heads of k and v
  CHECK(state_of(spec, 5).decode_blocks() == 5 * 4);
  CHECK(state_of(spec, 1000).decode_blocks() == room);
}

TEST_CASE("forced splits: dense calls of few rows, and of few q tiles, are right") {
  const test::ManyMultiprocessors many;
  Spec spec{.dtype = DType::f16, .head_dim = 32};
  const std::int64_t q_len = GENERATE(1, 100);
  const Shape shape = {
      .batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = q_len, .kv_len = 2100};
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 9);
  for (const std::int64_t splits : kSplits) {
    CAPTURE(q_len, splits);
    verify::Problem problem = inputs.problem();
    problem.splits = splits;
    CHECK(reasons_of(spec, problem).empty());
  }
}
