#include "tests/mutants/special_calls.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "runtime/mask_lists.hpp"
#include "runtime/staged_call.hpp"
#include "tests/mutants/fenced_call.hpp"
#include "tests/mutants/functions.hpp"
#include "tests/mutants/one_key.hpp"
#include "verify/outputs.hpp"
#include "verify/random_inputs.hpp"

namespace tilewright::mutants {
namespace {

// A mask of full tiles over a mask_mod that keeps nothing, against the same without a mask_mod.
std::string wrong_with_full_tiles(const Attention& attention, const KernelContext&) {
  const Spec& spec = attention.spec();
  const Shape shape{.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 50, .kv_len = 70};
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 1);
  const std::vector<std::int32_t> none(4, 0), all = {3, 3, 3, 3};
  const std::vector<std::int32_t> columns = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2};
  const auto view = [](const std::vector<std::int32_t>& values,
                       std::initializer_list<std::int64_t> extents) {
    return TensorView::contiguous(static_cast<const void*>(values.data()), DType::i32, extents);
  };
  const BlockMask mask = block_mask_from_flex(attention.mask_fingerprint(shape),
                                              {.kv_num_blocks = view(none, {1, 1, 4}),
                                               .kv_indices = view(columns, {1, 1, 4, 3}),
                                               .full_kv_num_blocks = view(all, {1, 1, 4}),
                                               .full_kv_indices = view(columns, {1, 1, 4, 3})});
  Spec without_mask = spec;
  without_mask.mask_mod.clear();
  const Attention dense(without_mask, {.device = attention.device()});
  const verify::AttentionValues wanted = verify::run_call(dense, inputs.problem());
  const verify::Outputs outputs(spec, shape);
  const StagedCall staged(attention.device(), outputs.tensors(inputs.problem()), {});
  attention.forward(staged.tensors(), mask);
  staged.copy_back();
  const std::vector<double> got = outputs.values(spec).out.data;
  for (std::size_t i = 0; i < got.size(); ++i) {
    // Sums in another order.
    if (std::abs(got[i] - wanted.out.data[i]) < 1e-5) continue;
    return "mask_mod was asked in tiles that the caller's lists call full";
  }
  return "";
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

}  // namespace

std::vector<SpecialCall> special_calls(Device::Kind device) {
  std::vector<SpecialCall> calls;
  for (Spec& spec : one_key_specs()) {
    calls.push_back({std::move(spec), [](const Attention& attention, const KernelContext&) {
                       return wrong_with_one_key(attention);
                     }});
  }
  calls.push_back({full_tiles_spec(""), wrong_with_full_tiles});
  calls.push_back({full_tiles_spec("score + 0.01 * kv_idx"), wrong_with_full_tiles});
  if (device != Device::Kind::cpu) return calls;
  calls.push_back({functions_spec(), [](const Attention& attention, const KernelContext&) {
                     return wrong_functions(attention);
                   }});
  calls.push_back({fenced_mask_spec(), wrong_mask_between_fences});
  for (Spec& spec : fenced_specs()) calls.push_back({std::move(spec), wrong_between_fences});
  return calls;
}

}  // namespace tilewright::mutants
