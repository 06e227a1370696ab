#include "fuzz/case_parts.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace tilewright::verify::fuzz {
namespace {

Values of_no_sequence(const Shape& shape, std::int64_t width) {
  Values values = Values::zeros(1, shape.num_q_heads, shape.q_len, width);
  std::fill(values.data.begin(), values.data.end(), std::numeric_limits<double>::quiet_NaN());
  return values;
}

void put(Values part, const CaseParts::Part& from, const Problem& problem, Values& whole) {
  if (part.data.empty()) return;
  if (problem.sequences && whole.data.empty()) whole = of_no_sequence(problem.shape, part.width);
  put_rows(std::move(part), from.piece, whole);
}

}  // namespace

CaseParts::CaseParts(const FuzzCase& fuzz_case, const Problem& problem,
                     const UserInterpretations* user)
    : spec_(fuzz_case.spec),
      out_width_(fuzz_case.spec.value_head_dim()),
      problem_(problem),
      parts_(fuzz_case.spec, problem) {
  const CallValues values(fuzz_case.spec, problem.shape, problem.snippet);
  for (const Parts::Piece& piece : parts_.pieces()) {
    const Parts::Piece* const sequence = problem.sequences ? &piece : nullptr;
    all_.push_back({piece, CaseInterpretations(fuzz_case, problem, values, user, sequence)});
  }
}

AttentionValues CaseParts::whole(
    const std::function<AttentionValues(const Part&, const DenseProblem&)>& compute,
    F32Products products) const {
  AttentionValues result;
  if (problem_.sequences) result.out = of_no_sequence(problem_.shape, out_width_);
  for (const Part& part : all_) {
    if (part.piece.score_rows() == 0) continue;
    DenseProblem dense = parts_.read(part.piece, products);
    if (const ScaleValues scales = part.interpretations.scales()) {
      const std::int64_t new_rows = problem_.k_new ? part.piece.rows() : 0;
      apply_scales(spec_, scales, part.piece.arguments, part.piece.b, new_rows, dense);
    }
    AttentionValues values = compute(part, dense);
    put(std::move(values.out), part, problem_, result.out);
    put(std::move(values.lse), part, problem_, result.lse);
    put(std::move(values.max_scores), part, problem_, result.max_scores);
    put(std::move(values.weights), part, problem_, result.weights);
  }
  return result;
}

AttentionValues CaseParts::part_of(const AttentionValues& whole, const Part& part) {
  AttentionValues values{.out = take_rows(whole.out, part.piece), .lse = {}};
  if (!whole.lse.data.empty()) values.lse = take_rows(whole.lse, part.piece);
  if (!whole.max_scores.data.empty()) {
    values.max_scores = take_rows(whole.max_scores, part.piece);
  }
  return values;
}

}  // namespace tilewright::verify::fuzz
