#include "verify/find_unjudged.hpp"

#include <cstdint>

#include "verify/float_overflow.hpp"
#include "verify/odd_scales.hpp"
#include "verify/value_spread.hpp"

namespace tilewright::verify {
namespace {

// Where `marks` are `where`.
void mark(const PartOfCall& part, const Values& marks, double where, NotJudged reason,
          Values& whole) {
  if (whole.data.empty()) {
    const bool is_packed = part.problem.sequences.has_value();
    whole = Values::zeros(is_packed ? 1 : marks.batch, marks.heads,
                          is_packed ? part.problem.shape.q_len : marks.rows, marks.width);
  }
  const std::int64_t count = marks.rows * marks.width;
  for (std::int64_t b = 0; b < marks.batch; ++b) {
    for (std::int64_t h = 0; h < marks.heads && count > 0; ++h) {
      double* const to = whole.row(b, h, part.piece.row);
      for (std::int64_t i = 0; i < count; ++i) {
        if (marks.row(b, h, 0)[i] == where) to[i] = static_cast<double>(reason);
      }
    }
  }
}

}  // namespace

void find_unjudged(const PartOfCall& part, const AttentionValues& reference,
                   const AttentionValues& naive, Unjudged& whole) {
  if (const auto spread = value_spread(part.dense, part.in_float, part.spec.block)) {
    mark(part, *spread, kThroughDropped, NotJudged::spread, whole.infinite);
    mark(part, *spread, kThroughKept, NotJudged::weight, whole.infinite);
  }
  if (const auto overflow =
          float_overflow(part.dense, part.in_float, part.in_double, reference, naive)) {
    mark(part, overflow->out, 1, NotJudged::overflow, whole.infinite);
    mark(part, overflow->rows, 1, NotJudged::overflow, whole.out_rows);
    mark(part, overflow->rows, 1, NotJudged::overflow, whole.score_rows);
  }
  if (const auto reach = reach_of_odd_scales(part.dense, part.in_float, part.spec.block)) {
    mark(part, reach->out, 1, NotJudged::scale, whole.out_rows);
    mark(part, reach->scores, 1, NotJudged::scale, whole.score_rows);
  }
}

}  // namespace tilewright::verify
