#include "verify/interpretations.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "verify/positions.hpp"

namespace tilewright::verify {
namespace {

template <typename Score>
RowSnippets<Score> unchanged(std::int64_t kv_len) {
  return [kv_len](std::int64_t, std::int64_t, std::int64_t, const Score* scores, Score* modified,
                  unsigned char* keep) {
    std::copy(scores, scores + kv_len, modified);
    std::fill(keep, keep + kv_len, static_cast<unsigned char>(1));
  };
}

void apply_positions(const Problem& problem, const Parts::Piece& piece, std::int64_t h,
                     std::int64_t row, unsigned char* keep) {
  if (problem.positions) PositionTiles(*problem.positions, piece).apply(h, row, keep);
}

}  // namespace

Interpretations::Interpretations(const Spec& spec, const Toolchain& toolchain, bool wants_checked) {
  if (spec.score_mod.empty() && spec.mask_mod.empty() && !spec.has_other_snippets()) return;
  std::vector<KernelVariant> ids = {{.role = KernelRole::evaluate_float},
                                    {.role = KernelRole::evaluate_double}};
  if (wants_checked) ids.push_back({.role = KernelRole::evaluate_checked});
  // Compiled side by side; the interpretations below find them loaded.
  const auto loaded = load_kernels(spec, Target::host_cpu(), ids, toolchain);
  in_float.emplace(spec, toolchain);
  in_double.emplace(spec, toolchain);
  if (wants_checked) checked.emplace(spec, toolchain);
}

ScaleValues Interpretations::scales(const Spec& spec) const {
  if (!spec.has_other_snippets()) return {};
  return scale_values(*in_float, *in_double);
}

RowSnippets<float> float_snippets(const Interpretations& interpretations, const Problem& problem,
                                  const Parts::Piece& piece) {
  if (!interpretations.in_float) return unchanged<float>(piece.columns());
  const FloatInterpretation& in_float = *interpretations.in_float;
  return [&in_float, &problem, &piece](std::int64_t b, std::int64_t h, std::int64_t row,
                                       const float* scores, float* modified, unsigned char* keep) {
    in_float.row(piece.arguments, piece.b + b, h, row, scores, modified, keep);
    apply_positions(problem, piece, h, row, keep);
  };
}

RowSnippets<double> double_snippets(const Spec& spec, const Interpretations& interpretations,
                                    const Problem& problem, const Parts::Piece& piece,
                                    std::atomic<std::int64_t>& disagreements) {
  if (!interpretations.in_double) return unchanged<double>(piece.columns());
  return [&spec, &interpretations, &problem, &piece, &disagreements](
             std::int64_t b, std::int64_t h, std::int64_t row, const double* scores,
             double* modified, unsigned char* keep) {
    interpretations.in_double->row(piece.arguments, piece.b + b, h, row, scores, modified, keep);
    if (spec.mask_mod.empty()) return;
    const auto count = static_cast<std::size_t>(piece.columns());
    const std::vector<float> float_scores(scores, scores + count);
    std::vector<float> unused(count);
    std::vector<unsigned char> float_keep(count);
    interpretations.in_float->row(piece.arguments, piece.b + b, h, row, float_scores.data(),
                                  unused.data(), float_keep.data());
    std::int64_t different = 0;
    for (std::size_t i = 0; i < count; ++i) different += (keep[i] != 0) != (float_keep[i] != 0);
    std::copy(float_keep.begin(), float_keep.end(), keep);
    apply_positions(problem, piece, h, row, keep);
    if (different != 0) disagreements += different;
  };
}

}  // namespace tilewright::verify
