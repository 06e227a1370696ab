// Packed calls whose tiles lists over positions decide and whose q tiles' columns several blocks of
// threads share, on the emulated GPU.
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/call/plan_state.hpp"
#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/emulated_gpu/many_multiprocessors.hpp"
#include "tests/support/position_lists.hpp"

namespace tilewright {
using namespace packed_calls;

namespace {

constexpr int kHeads = 2, kBlocks = 16, kSide = 128;
const SparsePattern kPattern = {.block = kSide, .local = 3, .vertical = 4, .step = 1};
constexpr double kTolerance = 2 * 1.5 * 0x1p-11;  // as of packed_test.cpp

Spec spec_of_lists() {
  Spec spec = causal_spec(128, {kSide, kSide});
  spec.dtype = f16;
  return spec;
}

// The first sequence's rows begin inside a tile of positions and reach into the next one.
Batch batch_of_many_columns() {
  Batch batch{.lengths = {{130, 2000}, {20, 1500}, {1, 1400}, {0, 9}, {70, 40}},
              .heads = kHeads,
              .kv_heads = 1,
              .dim = 128};
  batch.make();
  return batch;
}

BlockMask lists_over_positions() {
  const Attention on_cpu(spec_of_lists(), {.device = Device::cpu()});
  return block_mask_from_csr(on_cpu.position_fingerprint(kBlocks * kSide, kHeads),
                             SparseLists(kPattern, kHeads, kBlocks).view());
}

bool keeps(int h, int q_idx, int kv_idx) {
  return q_idx >= 0 && kPattern.keeps(h, q_idx, kv_idx);
}

// The greatest error of the first sequence's out.
double error_with(std::shared_ptr<const jinja::Loader> templates) {
  const BlockMask positions = lists_over_positions();
  Batch batch = batch_of_many_columns();
  AttentionOptions options{.device = Device::parse("cuda"), .positions = true};
  options.kernels.templates = std::move(templates);
  const Attention attention(spec_of_lists(), options);
  Workspace workspace(attention.workspace_size(batch.shape()));
  const BatchTensors tensors(batch, f16);
  const Plan plan = attention.plan(batch.shape(), tensors.sequences(), {},
                                   {.workspace = workspace.view(), .positions = &positions});
  REQUIRE(plan.state().geometry.split_parts > 1);
  Tensor out = in_dtype(batch.out, f16);
  attention.forward(
      {.q = tensors.q, .k = tensors.k, .v = tensors.v, .out = out, .lse = batch.lse.view()}, plan);
  read_back(out, batch.out);
  const Lengths first = batch.lengths.front();
  double greatest = 0;
  for (int item = 0; item < first.q * kHeads; ++item) {
    const int row = item / kHeads, h = item % kHeads, q_idx = row + first.kv - first.q;
    const RowOfAttention wanted(batch, 0, h, row, [&](int j) { return keeps(h, q_idx, j); });
    const float* const given =
        floats(batch.out) + ((batch.q_begins.front() + row) * kHeads + h) * batch.dim;
    for (int d = 0; d < batch.dim; ++d) {
      const double error = std::fabs(given[d] - wanted.out[static_cast<std::size_t>(d)]);
      greatest = std::isnan(error) ? INFINITY : std::fmax(greatest, error);
    }
  }
  return greatest;
}

}  // namespace

TEST_CASE("split prefill: q tiles of plans with lists over positions are right", "[every-kind]") {
  const test::ManyMultiprocessors many(40);
  const BlockMask positions = lists_over_positions();
  Batch batch = batch_of_many_columns();
  check_with_positions(spec_of_lists(), batch, positions, keeps, kTolerance, Device::parse("cuda"),
                       [&](const PlanMap& map) { require_listed(map, positions, true); });
  CHECK(error_with(nullptr) <= kTolerance);
}

TEST_CASE("split prefill: planted faults of plans with lists over positions are seen") {
  const test::ManyMultiprocessors many(40);
  const test::Fault faults[] = {
      {"parts of the same tiles", "cuda/hopper/split_items.hpp",
       "const int begin = first(partial + full)", "const int begin = 0 * first(partial + full)"},
      {"parts pass by no tiles", "cuda/hopper/mapped_tiles.hpp",
       "if (kSplits) pass_by(lists.or_else(0));", ""},
      {"all heads have the first one's lists", "cuda/plan/listed_span.hpp",
       "lists.heads == 1 ? 0 : h", "0 * h"}};
  for (const test::Fault& fault : faults) {
    CAPTURE(fault.what);
    CHECK(error_with(std::make_shared<test::FaultyTemplates>(fault)) > 2 * kTolerance);
  }
}

}  // namespace tilewright
