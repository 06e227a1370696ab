#include "verify/gradient_row.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "verify/scores.hpp"

namespace tilewright::verify {
namespace {

template <typename Score>
Score dot(const double* a, const double* b, std::int64_t width) {
  Score sum = 0;
  for (std::int64_t d = 0; d < width; ++d) {
    sum += static_cast<Score>(a[d]) * static_cast<Score>(b[d]);
  }
  return sum;
}

template <typename Score>
void add_times(double* to, const double* from, std::int64_t width, Score factor) {
  for (std::int64_t d = 0; d < width; ++d) {
    to[d] = static_cast<Score>(to[d]) + factor * static_cast<Score>(from[d]);
  }
}

}  // namespace

template <typename Score>
GradientRow<Score>::GradientRow(const DenseProblem& of, const GradientInputs& from,
                                const RowSnippets<Score>& snippets, const RowSlopes<Score>& slopes,
                                const GradientRounding<Score>& rounding)
    : problem(of),
      inputs(from),
      keep(static_cast<std::size_t>(of.k.rows)),
      snippets_(snippets),
      slopes_(slopes),
      round_(rounding.tile),
      round_out_(rounding.out) {
  for (std::vector<Score>* one : {&scores, &modified, &p, &factor, &met, &slope, &dy}) {
    one->resize(keep.size());
  }
}

template <typename Score>
bool GradientRow<Score>::has_weight(std::size_t c) const {
  return keep[c] != 0 && modified[c] != -std::numeric_limits<Score>::infinity();
}

template <typename Score>
bool GradientRow<Score>::weigh(std::int64_t batch, std::int64_t head, std::int64_t row_of_q) {
  b = batch;
  h = head;
  row = row_of_q;
  k_b = problem.k.batch == 1 ? 0 : b;
  v_b = problem.v.batch == 1 ? 0 : b;
  h_kv = h / (problem.q.heads / problem.k.heads);
  for (std::size_t c = 0; c < columns(); ++c) {
    const Score product = dot<Score>(q(), k(c), problem.q.width);
    scores[c] = round_(product * static_cast<Score>(problem.scale));
  }
  snippets_(b, h, row, scores.data(), modified.data(), keep.data());
  if constexpr (sizeof(Score) > sizeof(float)) bound_scores(modified);
  maximum = 0;
  bool keeps_some = false;
  for (std::size_t c = 0; c < columns(); ++c) keeps_some = keeps_some || has_weight(c);
  if (!keeps_some) return false;
  compute_weights();
  compute_out();
  return true;
}

template <typename Score>
void GradientRow<Score>::compute_weights() {
  Score greatest = -std::numeric_limits<Score>::infinity();
  for (std::size_t c = 0; c < columns(); ++c) {
    if (has_weight(c) && modified[c] > greatest) greatest = modified[c];
  }
  Score sum = 0;
  if (problem.sink) {
    const auto sink = static_cast<Score>(problem.sink->at(b, h, row, 0));
    greatest = std::max(greatest, sink);
    sum = sink == greatest ? Score(1) : std::exp(sink - greatest);
  }
  for (std::size_t c = 0; c < columns(); ++c) {
    if (has_weight(c)) sum += std::exp(modified[c] - greatest);
  }
  maximum = std::isfinite(greatest) ? std::fabs(greatest) : 0;
  lse = greatest + std::log(sum);
  for (std::size_t c = 0; c < columns(); ++c) {
    p[c] = has_weight(c) ? round_(std::exp(modified[c] - lse)) : Score(0);
    if (p[c] == 0) continue;
    factor[c] =
        problem.dropout
            ? static_cast<Score>(problem.dropout->factor(b, h, row, static_cast<std::int64_t>(c)))
            : Score(1);
    met[c] = factor[c] == 1 ? p[c] : factor[c] == 0 ? Score(0) : round_(p[c] * factor[c]);
  }
}

template <typename Score>
void GradientRow<Score>::compute_out() {
  out.assign(static_cast<std::size_t>(problem.v.width), 0);
  if (inputs.out) {
    const double* const stored = inputs.out->row(b, h, row);
    for (std::size_t d = 0; d < out.size(); ++d) out[d] = static_cast<Score>(stored[d]);
    return;
  }
  for (std::size_t c = 0; c < columns(); ++c) {
    if (p[c] == 0 || met[c] == 0) continue;
    const double* const value = v(c);
    for (std::size_t d = 0; d < out.size(); ++d) out[d] += met[c] * static_cast<Score>(value[d]);
  }
  for (Score& element : out) element = round_out_(element);
}

template <typename Score>
Score GradientRow<Score>::delta() const {
  Score sum = 0;
  for (std::size_t d = 0; d < out.size(); ++d) sum += static_cast<Score>(dout()[d]) * out[d];
  return inputs.dlse ? sum - static_cast<Score>(inputs.dlse->at(b, h, row, 0)) : sum;
}

template <typename Score>
void GradientRow<Score>::differentiate() {
  const Score subtracted = delta();
  slopes_.slopes(b, h, row, scores.data(), slope.data());
  for (std::size_t c = 0; c < columns(); ++c) {
    dy[c] = 0;
    if (p[c] == 0) continue;
    const Score product = dot<Score>(dout(), v(c), problem.v.width);
    const Score dp = factor[c] == 0 ? Score(0) : round_(product * factor[c]);
    dy[c] = p[c] * (dp - subtracted);
  }
}

template <typename Score>
void GradientRow<Score>::add_to(GradientValues& values, std::vector<double>& cells) const {
  const auto scale = static_cast<Score>(problem.scale);
  for (std::size_t c = 0; c < columns(); ++c) {
    if (p[c] == 0) continue;
    const Score dx = round_(dy[c] * slope[c]) * scale;
    add_times(dq(values), k(c), problem.q.width, dx);
    add_times(dk(values, c), q(), problem.q.width, dx);
    add_times(dv(values, c), dout(), problem.v.width, met[c]);
  }
  if (!cells.empty()) slopes_.add(b, h, row, scores.data(), dy.data(), cells.data());
}

template struct GradientRow<float>;
template struct GradientRow<double>;

}  // namespace tilewright::verify
