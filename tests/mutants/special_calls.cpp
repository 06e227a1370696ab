#include "tests/mutants/special_calls.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "runtime/api/mask_lists.hpp"
#include "runtime/call/staged_call.hpp"
#include "tests/mutants/cache_calls.hpp"
#include "tests/mutants/decode_calls.hpp"
#include "tests/mutants/fenced_call.hpp"
#include "tests/mutants/functions.hpp"
#include "tests/mutants/one_key.hpp"
#include "tests/mutants/packed_calls.hpp"
#include "tests/mutants/paged_calls.hpp"
#include "tests/mutants/slow_hardware.hpp"
#include "tests/mutants/training_calls.hpp"
#include "tests/mutants/training_specs.hpp"
#include "verify/outputs.hpp"
#include "verify/random_inputs.hpp"

namespace tilewright::mutants {
namespace {

using TileNumbers = std::vector<std::int32_t>;

// A mask of a call with one list for all batches and heads.
// columns: [rows of tiles][columns of tiles]; partial, full: how many of each row's count
BlockMask mask_from_lists(const Attention& attention, const Shape& shape,
                          const TileNumbers& columns, const TileNumbers& partial,
                          const TileNumbers& full) {
  const auto rows = static_cast<std::int64_t>(full.size());
  const auto view = [](const TileNumbers& values, std::initializer_list<std::int64_t> extents) {
    return TensorView::contiguous(static_cast<const void*>(values.data()), DType::i32, extents);
  };
  const auto width = static_cast<std::int64_t>(columns.size()) / rows;
  return block_mask_from_flex(attention.mask_fingerprint(shape),
                              {.kv_num_blocks = view(partial, {1, 1, rows}),
                               .kv_indices = view(columns, {1, 1, rows, width}),
                               .full_kv_num_blocks = view(full, {1, 1, rows}),
                               .full_kv_indices = view(columns, {1, 1, rows, width})});
}

std::vector<double> out_over_mask(const Attention& attention, const BlockMask& mask,
                                  const verify::Problem& problem) {
  const verify::Outputs outputs(attention.spec(), problem.shape);
  const StagedCall staged(attention.device(), outputs.tensors(problem), {});
  attention.forward(staged.tensors(), mask);
  staged.copy_back();
  return outputs.values(attention.spec()).out.data;
}

// A mask of full tiles over a mask_mod that keeps nothing, against the same without a mask_mod.
std::string wrong_with_full_tiles(const Attention& attention, const Toolchain&) {
  const Spec& spec = attention.spec();
  const Shape shape{.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 50, .kv_len = 70};
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 1);
  const BlockMask mask = mask_from_lists(attention, shape, {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2},
                                         {0, 0, 0, 0}, {3, 3, 3, 3});
  Spec without_mask = spec;
  without_mask.mask_mod.clear();
  const Attention dense(without_mask, {.device = attention.device()});
  const verify::AttentionValues wanted = verify::run_call(dense, inputs.problem());
  const std::vector<double> got = out_over_mask(attention, mask, inputs.problem());
  for (std::size_t i = 0; i < got.size(); ++i) {
    // Sums in another order.
    if (std::abs(got[i] - wanted.out.data[i]) < 1e-5) continue;
    return "mask_mod was asked in tiles that the caller's lists call full";
  }
  return "";
}

// Of two rows of tiles the first has none.
std::string wrong_with_empty_rows(const Attention& attention, const Toolchain&) {
  const Spec& spec = attention.spec();
  const std::int64_t tile = spec.block[0];
  const Shape shape{
      .batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 2 * tile, .kv_len = tile / 2};
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 1);
  const BlockMask mask = mask_from_lists(attention, shape, {0, 0}, {0, 0}, {0, 1});
  const std::vector<double> got = out_over_mask(attention, mask, inputs.problem());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(i) / spec.head_dim % shape.q_len;
    if ((got[i] == 0) != (row < tile)) {
      return fmt::format("out is {} in row {} of lists whose first {} have no tile", got[i], row,
                         tile);
    }
  }
  return "";
}

Spec empty_rows_spec() {
  Spec spec;
  spec.name = "empty rows";
  spec.dtype = DType::bf16;
  spec.head_dim = 64;
  spec.block = {128, 128};
  return spec;
}

Spec full_tiles_spec(const std::string& score_mod) {
  Spec spec;
  spec.name = "full tiles";
  spec.dtype = DType::f32;
  spec.head_dim = 16;
  spec.score_mod = score_mod;
  spec.mask_mod = "kv_idx < 0";
  spec.block = {16, 32};
  return spec;
}

void add_fenced_calls(std::vector<SpecialCall>& calls) {
  calls.push_back({functions_spec(), 1, [](const Attention& attention, const Toolchain&) {
                     return wrong_functions(attention);
                   }});
  calls.push_back({fenced_mask_spec(), 1, wrong_mask_between_fences});
  for (Spec& spec : fenced_specs()) calls.push_back({std::move(spec), 1, wrong_between_fences});
}

void add_slow_calls(std::vector<SpecialCall>& calls) {
  for (Spec& spec : specs_with_many_q_tiles()) {
    calls.push_back({std::move(spec), 3, wrong_with_far_output_or_late_warps});
  }
  calls.push_back({spec_with_many_blocks(), 2, [](const Attention& attention, const Toolchain&) {
                     return wrong_with_far_output(attention);
                   }});
  for (const Spec& spec :
       {spec_with_many_blocks_of_one_place(), spec_with_stages(), spec_with_q_in_registers()}) {
    calls.push_back({spec, 2, [](const Attention& attention, const Toolchain&) {
                       return wrong_with_far_inputs(attention);
                     }});
  }
}

}  // namespace

std::vector<SpecialCall> special_calls(Device::Kind device) {
  std::vector<SpecialCall> calls;
  for (Spec& spec : one_key_specs()) {
    calls.push_back({std::move(spec), 1, [](const Attention& attention, const Toolchain&) {
                       return wrong_with_one_key(attention);
                     }});
  }
  calls.push_back({full_tiles_spec(""), 1, wrong_with_full_tiles});
  calls.push_back({full_tiles_spec("score + 0.01 * kv_idx"), 1, wrong_with_full_tiles});
  calls.push_back({empty_rows_spec(), 1, wrong_with_empty_rows, true});
  for (Spec& spec : cache_specs()) {
    calls.push_back({std::move(spec), kCacheLaunches, wrong_cache_calls, false, true});
  }
  calls.push_back({spec_with_scales_of_sequences(), 2, wrong_quantise_by_plan, false, true});
  for (Spec& spec : paged_specs()) {
    calls.push_back({std::move(spec), kPagedLaunches, wrong_paged_call});
  }
  const int training_launches =
      device == Device::Kind::cpu ? kTrainingLaunches : kTrainingLaunchesOnGpu;
  for (Spec& spec : training_specs()) {
    calls.push_back({std::move(spec), training_launches, wrong_training_call});
  }
  if (device == Device::Kind::cpu) {
    add_fenced_calls(calls);
    calls.push_back({spec_that_names_tokens(), kPackedLaunches, wrong_packed_call});
    return calls;
  }
  add_slow_calls(calls);
  for (Spec& spec : packed_specs()) {
    calls.push_back({std::move(spec), kPackedLaunches, wrong_packed_call});
  }
  for (Spec& spec : decode_specs()) {
    calls.push_back({std::move(spec), kDecodeLaunches, wrong_decode_call});
  }
  for (Spec& spec : hopper_training_specs()) {
    calls.push_back({std::move(spec), training_launches, wrong_hopper_training_call});
  }
  return calls;
}

}  // namespace tilewright::mutants
