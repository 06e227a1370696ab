#include "verify/gradient_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "verify/kinks.hpp"
#include "verify/scores.hpp"

namespace tilewright::verify {
namespace {

// The rows of the heads that share one head of k, in one batch or in all of them where a gradient
// is summed over the batch.
template <typename Score>
class HeadSweep {
  static constexpr Score kInfiniteScore = std::numeric_limits<Score>::infinity();

 public:
  HeadSweep(const DenseProblem& problem, const GradientInputs& inputs,
            const RowSnippets<Score>& snippets, const RowSlopes<Score>& slopes,
            const GradientRounding<Score>& rounding, const FloatSearch& search,
            GradientValues& values, GradientSizes* sizes)
      : problem_(problem),
        inputs_(inputs),
        snippets_(snippets),
        slopes_(slopes),
        round_(rounding.tile),
        round_out_(rounding.out),
        values_(values),
        sizes_(sizes),
        search_(search),
        named(static_cast<std::size_t>(inputs.cells)),
        named_terms(sizes == nullptr ? 0 : static_cast<std::size_t>(inputs.cells)),
        named_of_weights(named_terms.size()),
        named_magnitudes(named_terms.size()),
        named_ambiguous(named_terms.size()),
        named_undefined(named_terms.size()),
        named_infinite(named_terms.size()),
        named_unknown(named_terms.size()),
        scores_may_overflow_(
            is_too_large(problem.q.greatest_magnitude() * problem.k.greatest_magnitude() *
                         static_cast<double>(problem.q.width))),
        products_may_overflow_(inputs.dout.greatest_magnitude() * problem.v.greatest_magnitude() *
                                   static_cast<double>(problem.v.width) >=
                               std::numeric_limits<float>::max()) {
    const auto columns = static_cast<std::size_t>(problem.k.rows);
    for (std::vector<Score>* one : {&scores_, &modified_, &p_, &d_, &slope_, &dy_, &weight_,
                                    &of_weight_, &overflow_, &factor_, &met_}) {
      one->resize(columns);
    }
    float_scores_.resize(columns);
    float_values_.resize(columns);
    keep_.resize(columns);
    if constexpr (sizeof(Score) > sizeof(float)) {
      if (search.slopes != nullptr) kinks_.emplace(slopes, *search.slopes, columns);
      errors_.resize(columns);
    }
  }

  void row(std::int64_t b, std::int64_t h, std::int64_t row) {
    b_ = problem_.k.batch == 1 ? 0 : b;
    v_b_ = problem_.v.batch == 1 ? 0 : b;
    h_kv_ = h / (problem_.q.heads / problem_.k.heads);
    const bool has_weights = weigh(b, h, row);
    if (sizes_ != nullptr && score_overflows(b, h, row)) return mark_unknown(b, h, row);
    if (!has_weights) return;
    if (sizes_ != nullptr) take_greatest_score();
    if (sizes_ != nullptr && std::isnan(lse_)) mark_undefined(b, h, row);
    const double* const dout = inputs_.dout.row(b, h, row);
    const Score delta = delta_of(b, h, row, dout);
    const double delta_size = sizes_ == nullptr ? 0 : size_of_delta(b, h, row, dout);
    slopes_.slopes(b, h, row, scores_.data(), slope_.data());
    const bool has_kinks = look_for_kinks(b, h, row);
    find_float_slopes(b, h, row);
    for (std::size_t c = 0; c < p_.size(); ++c) {
      dy_[c] = weight_[c] = of_weight_[c] = overflow_[c] = 0;
      if (p_[c] == 0) {
        if (sizes_ != nullptr && dropped_overflows(c, dout, delta_size))
          mark_infinite(b, h, row, c);
        continue;
      }
      const Score product = dot(dout, problem_.v.row(v_b_, h_kv_, index(c)), problem_.v.width);
      const Score dp = factor_[c] == 0 ? Score(0) : round_(product * factor_[c]);
      dy_[c] = p_[c] * (dp - delta);
      if (sizes_ != nullptr) {
        const double* const v = problem_.v.row(v_b_, h_kv_, index(c));
        const double size = size_of_dot(dout, v) * static_cast<double>(factor_[c]) + delta_size;
        weight_[c] = p_[c] * static_cast<Score>(size);
        of_weight_[c] = std::fabs(dy_[c]) * row_maximum_;
        if (overflows(c, size)) mark_infinite(b, h, row, c);
      }
      add_element(b, h, row, c, dout);
      if (has_kinks) add_ambiguity(b, h, row, c);
    }
    if (inputs_.cells == 0) return;
    slopes_.add(b, h, row, scores_.data(), dy_.data(), named.data());
    if (sizes_ != nullptr) {
      slopes_.add(b, h, row, scores_.data(), weight_.data(), named_terms.data());
      slopes_.add_magnitudes(b, h, row, scores_.data(), of_weight_.data(), named_of_weights.data());
      slopes_.add_magnitudes(b, h, row, scores_.data(), dy_.data(), named_magnitudes.data());
      slopes_.add(b, h, row, scores_.data(), overflow_.data(), named_infinite.data());
    }
    if constexpr (sizeof(Score) > sizeof(float)) {
      if (!has_kinks) return;
      kinks_->add(scores_, dy_, named_ambiguous);
      kinks_->add(scores_, weight_, named_terms);  // what is ambiguous is rounded too
      kinks_->add(scores_, of_weight_, named_of_weights);
    }
  }

 private:
  static std::int64_t index(std::size_t c) { return static_cast<std::int64_t>(c); }

  static Score dot(const double* a, const double* b, std::int64_t width) {
    Score sum = 0;
    for (std::int64_t d = 0; d < width; ++d) {
      sum += static_cast<Score>(a[d]) * static_cast<Score>(b[d]);
    }
    return sum;
  }

  // Whether the row has elements whose derivative depends on rounding.
  bool look_for_kinks(std::int64_t b, std::int64_t h, std::int64_t row) {
    if constexpr (sizeof(Score) > sizeof(float)) {
      if (!kinks_) return false;
      const double* const q = problem_.q.row(b, h, row);
      const std::int64_t width = problem_.q.width;
      for (std::size_t c = 0; c < errors_.size(); ++c) {
        const double* const k = problem_.k.row(b_, h_kv_, index(c));
        double size = 0;
        for (std::int64_t d = 0; d < width; ++d) size += std::fabs(q[d] * k[d]);
        errors_[c] = static_cast<double>(width) * 0x1p-24 * size * std::fabs(problem_.scale) +
                     search_.share_of_score * std::fabs(scores_[c]);
        if (p_[c] == 0 || std::isnan(p_[c]) || !std::isfinite(errors_[c])) errors_[c] = 0;
      }
      return kinks_->look(b, h, row, scores_, errors_);
    }
    return false;
  }

  void add_ambiguity(std::int64_t b, std::int64_t h, std::int64_t row, std::size_t c) {
    if constexpr (sizeof(Score) > sizeof(float)) {
      const double size = std::fabs(dy_[c] * problem_.scale) * kinks_->jumps()[c];
      if (size == 0) return;
      const std::int64_t width = problem_.q.width;
      add_sizes(sizes_->ambiguous.dq.row(b, h, row), problem_.k.row(b_, h_kv_, index(c)), width,
                size);
      add_sizes(sizes_->ambiguous.dk.row(b_, h_kv_, index(c)), problem_.q.row(b, h, row), width,
                size);
      const double jump = std::fabs(problem_.scale) * kinks_->jumps()[c];
      const auto add = [&](GradientValues& to, double of_dx) {
        add_sizes(to.dq.row(b, h, row), problem_.k.row(b_, h_kv_, index(c)), width, of_dx);
        add_sizes(to.dk.row(b_, h_kv_, index(c)), problem_.q.row(b, h, row), width, of_dx);
      };
      add(sizes_->terms, weight_[c] * jump);
      add(sizes_->of_weights, of_weight_[c] * jump);
    }
  }

  // An element that is kept with a score of -inf has none, as in forward, whatever lse is.
  bool has_weight(std::size_t c) const { return keep_[c] != 0 && modified_[c] != -kInfiniteScore; }

  void take_greatest_score() {
    for (std::size_t c = 0; c < p_.size(); ++c) {
      if (keep_[c] == 0 || !std::isfinite(modified_[c])) continue;
      greatest_score = std::max(greatest_score, std::fabs(static_cast<double>(modified_[c])));
    }
  }

  // Where kernels take e^(-inf - lse) for the weight of such an element.
  void mark_undefined(std::int64_t b, std::int64_t h, std::int64_t row) {
    for (std::size_t c = 0; c < p_.size(); ++c) {
      const bool is_undefined = keep_[c] != 0 && !has_weight(c);
      dy_[c] = is_undefined ? std::numeric_limits<Score>::quiet_NaN() : Score(0);
      if (!is_undefined) continue;
      std::fill_n(sizes_->undefined.dk.row(b_, h_kv_, index(c)), problem_.k.width, 1.0);
      std::fill_n(sizes_->undefined.dv.row(v_b_, h_kv_, index(c)), problem_.v.width, 1.0);
    }
    if (inputs_.cells > 0)
      slopes_.add(b, h, row, scores_.data(), dy_.data(), named_undefined.data());
  }

  // Whether float32 overflows in a kept score's products, or in what score_mod makes of it, or
  // rounds the greatest score by more than a weight can bear (kShareOfWeights).
  bool score_overflows(std::int64_t b, std::int64_t h, std::int64_t row) {
    constexpr double kGreatestScore = 0x1p22;
    if (row_maximum_ >= kGreatestScore) return true;
    if (scores_may_overflow_) {
      const double* const q = problem_.q.row(b, h, row);
      for (std::size_t c = 0; c < p_.size(); ++c) {
        const double* const k = problem_.k.row(b_, h_kv_, index(c));
        double size = 0;
        for (std::int64_t d = 0; d < problem_.q.width; ++d) size += std::fabs(q[d] * k[d]);
        if (keep_[c] != 0 && is_too_large(size)) return true;
      }
    }
    if (search_.snippets == nullptr) return false;
    std::vector<unsigned char> unused(p_.size());
    for (std::size_t c = 0; c < p_.size(); ++c) float_scores_[c] = static_cast<float>(scores_[c]);
    (*search_.snippets)(b, h, row, float_scores_.data(), float_values_.data(), unused.data());
    for (std::size_t c = 0; c < p_.size(); ++c) {
      if (keep_[c] != 0 && std::isfinite(modified_[c]) && !std::isfinite(float_values_[c]))
        return true;
    }
    return false;
  }

  bool is_too_large(double size) const {
    return std::isfinite(size) &&
           std::max(size, size * std::fabs(problem_.scale)) >= std::numeric_limits<float>::max();
  }

  static void mark_row(double* row, std::int64_t width, double mark) {
    for (std::int64_t i = 0; i < width; ++i) row[i] = std::max(row[i], mark);
  }

  void mark_unknown(std::int64_t b, std::int64_t h, std::int64_t row) {
    constexpr double kMark = GradientSizes::kUnknown;
    mark_row(sizes_->overflow.dq.row(b, h, row), problem_.q.width, kMark);
    for (std::size_t c = 0; c < p_.size(); ++c) {
      overflow_[c] = keep_[c] != 0 ? std::numeric_limits<Score>::quiet_NaN() : Score(0);
      if (keep_[c] == 0) continue;
      mark_row(sizes_->overflow.dk.row(b_, h_kv_, index(c)), problem_.k.width, kMark);
      mark_row(sizes_->overflow.dv.row(v_b_, h_kv_, index(c)), problem_.v.width, kMark);
    }
    if (inputs_.cells > 0)
      slopes_.add(b, h, row, scores_.data(), overflow_.data(), named_unknown.data());
  }

  void find_float_slopes(std::int64_t b, std::int64_t h, std::int64_t row) {
    if (sizes_ == nullptr || search_.slopes == nullptr) return;
    search_.slopes->slopes(b, h, row, float_scores_.data(), float_values_.data());
  }

  // Whether float32 overflows in the element's dX or on the way there. size: of the terms of dP and
  // delta.
  bool overflows(std::size_t c, double size) const {
    constexpr double kGreatest = std::numeric_limits<float>::max();
    const double slope = std::fabs(static_cast<double>(slope_[c]));
    if (!std::isfinite(size) || !std::isfinite(slope)) return false;
    if (search_.slopes != nullptr && !std::isfinite(float_values_[c])) return true;
    const double dx = static_cast<double>(weight_[c]) * slope;
    return size >= kGreatest || slope >= kGreatest ||
           dx * std::max(1.0, std::fabs(problem_.scale)) >= search_.greatest_dx;
  }

  // Of an element without a weight, of which kernels compute dP - delta too: 0 times infinity is
  // NaN.
  bool dropped_overflows(std::size_t c, const double* dout, double delta_size) const {
    double size = delta_size;
    if (products_may_overflow_) {
      size += size_of_dot(dout, problem_.v.row(v_b_, h_kv_, index(c)));
    }
    return std::isfinite(size) && size >= std::numeric_limits<float>::max();
  }

  void mark_infinite(std::int64_t b, std::int64_t h, std::int64_t row, std::size_t c) {
    constexpr double kMark = GradientSizes::kMayBeInfinite;
    mark_row(sizes_->overflow.dq.row(b, h, row), problem_.q.width, kMark);
    mark_row(sizes_->overflow.dk.row(b_, h_kv_, index(c)), problem_.k.width, kMark);
    overflow_[c] = std::numeric_limits<Score>::quiet_NaN();
  }

  // P of a row, its lse, the weights that meet V, and out; false where nothing is kept.
  bool weigh(std::int64_t b, std::int64_t h, std::int64_t row) {
    const double* const q = problem_.q.row(b, h, row);
    for (std::size_t c = 0; c < scores_.size(); ++c) {
      const Score product = dot(q, problem_.k.row(b_, h_kv_, index(c)), problem_.q.width);
      scores_[c] = round_(product * static_cast<Score>(problem_.scale));
    }
    snippets_(b, h, row, scores_.data(), modified_.data(), keep_.data());
    if constexpr (sizeof(Score) > sizeof(float)) bound_scores(modified_);
    Score greatest = -kInfiniteScore;
    bool keeps_some = false;
    for (std::size_t c = 0; c < p_.size(); ++c) {
      if (!has_weight(c)) continue;
      keeps_some = true;
      if (modified_[c] > greatest) greatest = modified_[c];
    }
    row_maximum_ = 0;
    if (!keeps_some) return false;
    Score sum = 0;
    if (problem_.sink) {
      const auto sink = static_cast<Score>(problem_.sink->at(b, h, row, 0));
      greatest = std::max(greatest, sink);
      sum = sink == greatest ? Score(1) : std::exp(sink - greatest);
    }
    for (std::size_t c = 0; c < p_.size(); ++c) {
      if (has_weight(c)) sum += std::exp(modified_[c] - greatest);
    }
    row_maximum_ = std::isfinite(greatest) ? std::fabs(greatest) : 0;
    lse_ = greatest + std::log(sum);
    out_.assign(static_cast<std::size_t>(problem_.v.width), 0);
    for (std::size_t c = 0; c < p_.size(); ++c) {
      p_[c] = has_weight(c) ? round_(std::exp(modified_[c] - lse_)) : Score(0);
      if (p_[c] == 0) continue;
      factor_[c] = problem_.dropout
                       ? static_cast<Score>(problem_.dropout->factor(b, h, row, index(c)))
                       : Score(1);
      met_[c] = factor_[c] == 1 ? p_[c] : factor_[c] == 0 ? Score(0) : round_(p_[c] * factor_[c]);
      if (inputs_.out || met_[c] == 0) continue;
      const double* const v = problem_.v.row(v_b_, h_kv_, index(c));
      for (std::size_t d = 0; d < out_.size(); ++d) out_[d] += met_[c] * static_cast<Score>(v[d]);
    }
    const double* const stored = inputs_.out ? inputs_.out->row(b, h, row) : nullptr;
    for (std::size_t d = 0; d < out_.size(); ++d) {
      out_[d] = stored != nullptr ? static_cast<Score>(stored[d]) : round_out_(out_[d]);
    }
    return true;
  }

  Score delta_of(std::int64_t b, std::int64_t h, std::int64_t row, const double* dout) const {
    Score delta = 0;
    for (std::size_t d = 0; d < out_.size(); ++d) delta += static_cast<Score>(dout[d]) * out_[d];
    return inputs_.dlse ? delta - static_cast<Score>(inputs_.dlse->at(b, h, row, 0)) : delta;
  }

  // Sums of absolute products: what float32 loses of a dot product is a share of these, also where
  // the product itself cancels.
  double size_of_dot(const double* dout, const double* v) const {
    double sum = 0;
    for (std::int64_t d = 0; d < problem_.v.width; ++d) sum += std::fabs(dout[d] * v[d]);
    return sum;
  }

  double size_of_delta(std::int64_t b, std::int64_t h, std::int64_t row, const double* dout) const {
    double sum = inputs_.dlse ? std::fabs(inputs_.dlse->at(b, h, row, 0)) : 0;
    for (std::size_t d = 0; d < out_.size(); ++d) {
      sum += std::fabs(dout[d] * static_cast<double>(out_[d]));
    }
    return sum;
  }

  static void add_row(double* to, const double* from, std::int64_t width, Score factor) {
    for (std::int64_t d = 0; d < width; ++d) {
      to[d] = static_cast<Score>(to[d]) + factor * static_cast<Score>(from[d]);
    }
  }

  static void add_sizes(double* to, const double* from, std::int64_t width, double factor) {
    for (std::int64_t d = 0; d < width; ++d) to[d] += std::fabs(factor * from[d]);
  }

  void add_element(std::int64_t b, std::int64_t h, std::int64_t row, std::size_t c,
                   const double* dout) {
    const auto scale = static_cast<Score>(problem_.scale);
    const Score dx = round_(dy_[c] * slope_[c]) * scale;
    const double* const q = problem_.q.row(b, h, row);
    const double* const k = problem_.k.row(b_, h_kv_, index(c));
    const std::int64_t width = problem_.q.width;
    add_row(values_.dq.row(b, h, row), k, width, dx);
    add_row(values_.dk.row(b_, h_kv_, index(c)), q, width, dx);
    add_row(values_.dv.row(v_b_, h_kv_, index(c)), dout, problem_.v.width, met_[c]);
    if (sizes_ == nullptr) return;
    const double of_score = std::fabs(static_cast<double>(slope_[c])) * std::fabs(problem_.scale);
    const auto add = [&](GradientValues& to, double of_dx, double of_p) {
      add_sizes(to.dq.row(b, h, row), k, width, of_dx);
      add_sizes(to.dk.row(b_, h_kv_, index(c)), q, width, of_dx);
      add_sizes(to.dv.row(v_b_, h_kv_, index(c)), dout, problem_.v.width, of_p);
    };
    const auto met = static_cast<double>(met_[c]);
    add(sizes_->terms, static_cast<double>(weight_[c]) * of_score, met);
    add(sizes_->of_weights, static_cast<double>(of_weight_[c]) * of_score,
        met * static_cast<double>(row_maximum_));
  }

  const DenseProblem& problem_;
  const GradientInputs& inputs_;
  const RowSnippets<Score>& snippets_;
  const RowSlopes<Score>& slopes_;
  const std::function<Score(Score)>& round_;
  const std::function<Score(Score)>& round_out_;
  GradientValues& values_;
  GradientSizes* sizes_;
  const FloatSearch& search_;
  std::int64_t b_ = 0, v_b_ = 0, h_kv_ = 0;
  std::vector<Score> scores_, modified_, p_, d_, slope_, dy_, weight_, of_weight_, out_;
  std::vector<Score> overflow_;  // NaN where an element overflows
  std::vector<float> float_scores_, float_values_;
  Score lse_ = 0;
  Score row_maximum_ = 0;            // the magnitude of the row's greatest score
  std::vector<Score> factor_, met_;  // dropout's factors of P, and the weights that met V
  std::vector<unsigned char> keep_;
  std::vector<double> errors_;
  std::optional<Kinks> kinks_;

 public:
  std::vector<double> named, named_terms, named_of_weights, named_magnitudes, named_ambiguous,
      named_undefined, named_infinite, named_unknown;
  double greatest_score = 0;

 private:
  bool scores_may_overflow_, products_may_overflow_;
};

void add_to(std::vector<double>& sums, const std::vector<double>& more) {
  for (std::size_t i = 0; i < more.size(); ++i) sums[i] += more[i];
}

// Marks the cells that are NaN.
void mark_nan(const std::vector<double>& cells, double mark, std::vector<double>& marks) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (std::isnan(cells[i])) marks[i] = std::max(marks[i], mark);
  }
}

template <typename Score>
GradientValues sweep(const DenseProblem& problem, const GradientInputs& inputs,
                     const RowSnippets<Score>& snippets, const RowSlopes<Score>& slopes,
                     const GradientRounding<Score>& rounding, const FloatSearch& search,
                     GradientSizes* sizes, Executor& threads) {
  GradientValues values = zeros_for(problem, inputs);
  if (sizes != nullptr) {
    sizes->terms = zeros_for(problem, inputs);
    sizes->of_weights = zeros_for(problem, inputs);
    sizes->named_magnitudes.assign(static_cast<std::size_t>(inputs.cells), 0);
    sizes->ambiguous = zeros_for(problem, inputs);
    sizes->undefined = zeros_for(problem, inputs);
    sizes->overflow = zeros_for(problem, inputs);
  }
  const std::int64_t group = problem.q.heads / problem.k.heads;
  const auto heads = static_cast<std::size_t>(problem.k.heads);
  std::vector<double> greatest_scores(heads);
  std::vector<std::vector<double>> named(heads), terms(heads), of_weights(heads), magnitudes(heads),
      ambiguous(heads), undefined(heads), infinite(heads), unknown(heads);
  threads.parallel_for(problem.k.heads, [&](std::int64_t h_kv, int) {
    HeadSweep<Score> head(problem, inputs, snippets, slopes, rounding, search, values, sizes);
    for (std::int64_t b = 0; b < problem.q.batch; ++b) {
      for (std::int64_t h = h_kv * group; h < (h_kv + 1) * group; ++h) {
        for (std::int64_t row = 0; row < problem.q.rows; ++row) head.row(b, h, row);
      }
    }
    const auto place = static_cast<std::size_t>(h_kv);
    named[place] = std::move(head.named);
    terms[place] = std::move(head.named_terms);
    of_weights[place] = std::move(head.named_of_weights);
    magnitudes[place] = std::move(head.named_magnitudes);
    ambiguous[place] = std::move(head.named_ambiguous);
    undefined[place] = std::move(head.named_undefined);
    infinite[place] = std::move(head.named_infinite);
    unknown[place] = std::move(head.named_unknown);
    greatest_scores[place] = head.greatest_score;
  });
  for (std::size_t head = 0; head < heads; ++head) {
    add_to(values.named, named[head]);
    if (sizes == nullptr) continue;
    add_to(sizes->terms.named, terms[head]);
    add_to(sizes->of_weights.named, of_weights[head]);
    add_to(sizes->named_magnitudes, magnitudes[head]);
    add_to(sizes->ambiguous.named, ambiguous[head]);
    add_to(sizes->undefined.named, undefined[head]);
    mark_nan(infinite[head], GradientSizes::kMayBeInfinite, sizes->overflow.named);
    mark_nan(unknown[head], GradientSizes::kUnknown, sizes->overflow.named);
    sizes->greatest_score = std::max(sizes->greatest_score, greatest_scores[head]);
  }
  return values;
}

}  // namespace

GradientValues zeros_for(const DenseProblem& problem, const GradientInputs& inputs) {
  const auto like = [](const Values& x) {
    return Values::zeros(x.batch, x.heads, x.rows, x.width);
  };
  return {.dq = like(problem.q),
          .dk = like(problem.k),
          .dv = like(problem.v),
          .named = std::vector<double>(static_cast<std::size_t>(inputs.cells))};
}

template <typename Score>
GradientValues sweep_gradients(const DenseProblem& problem, const GradientInputs& inputs,
                               const RowSnippets<Score>& snippets, const RowSlopes<Score>& slopes,
                               const GradientRounding<Score>& rounding, Executor& threads) {
  return sweep<Score>(problem, inputs, snippets, slopes, rounding, {}, nullptr, threads);
}

GradientValues sweep_reference(const DenseProblem& problem, const GradientInputs& inputs,
                               const RowSnippets<double>& snippets, const RowSlopes<double>& slopes,
                               const GradientRounding<double>& rounding, const FloatSearch& search,
                               GradientSizes& sizes, Executor& threads) {
  return sweep<double>(problem, inputs, snippets, slopes, rounding, search, &sizes, threads);
}

template GradientValues sweep_gradients(const DenseProblem&, const GradientInputs&,
                                        const RowSnippets<float>&, const RowSlopes<float>&,
                                        const GradientRounding<float>&, Executor&);

}  // namespace tilewright::verify
