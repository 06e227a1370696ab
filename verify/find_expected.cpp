#include "verify/find_expected.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "verify/find_unjudged.hpp"
#include "verify/naive.hpp"
#include "verify/odd_scales.hpp"
#include "verify/parts.hpp"
#include "verify/timed.hpp"

namespace tilewright::verify {
namespace {

// How much of the work the reference is; the rest is the naive implementation.
constexpr double kShareOfReference = 0.7;

// How much of the work is done.
struct Progress {
  explicit Progress(const Parts& parts) {
    for (const Parts::Piece& piece : parts.pieces()) {
      work += static_cast<double>(piece.score_rows()) * static_cast<double>(piece.columns());
    }
  }
  double work = 0;  // elements of all score matrices
  std::atomic<std::int64_t> of_reference = 0, of_naive = 0;

  double share() const {
    if (work == 0) return 1;
    return (kShareOfReference * static_cast<double>(of_reference) +
            (1 - kShareOfReference) * static_cast<double>(of_naive)) /
           work;
  }
};

// Rows of a packed call that belong to no sequence stay NaN, which judge() leaves out.
Expected empty_expected(const Spec& spec, const Problem& problem, bool has_naive_lse) {
  if (!problem.sequences) return {};
  const auto empty = [&](std::int64_t width) {
    Values values = Values::zeros(1, problem.shape.num_q_heads, problem.shape.q_len, width);
    std::fill(values.data.begin(), values.data.end(), std::numeric_limits<double>::quiet_NaN());
    return values;
  };
  Expected expected;
  expected.reference.values = {
      .out = empty(spec.value_head_dim()), .lse = empty(1), .max_scores = empty(1)};
  BoundSizes& sizes = expected.reference.sizes;
  sizes.scores = sizes.products = sizes.values = empty(1);
  sizes.lost = empty(spec.value_head_dim());
  expected.naive.out = empty(spec.value_head_dim());
  if (has_naive_lse) expected.naive.lse = expected.naive.max_scores = empty(1);
  return expected;
}

void take_odd_scales(const DenseProblem& dense, Expected& expected) {
  for (const auto& [kind, scales] : {std::pair(SnippetKind::q_scale, &dense.q_scales),
                                     std::pair(SnippetKind::k_scale, &dense.k_scales),
                                     std::pair(SnippetKind::v_scale, &dense.v_scales)}) {
    if (scales->odd) expected.odd_scales.emplace(kind, *scales->odd);
  }
  for (const double scale : dense.out_scales) {
    if (is_odd_out_scale(scale)) expected.odd_scales.emplace(SnippetKind::out_scale, scale);
  }
}

// Of a part. Weights are of a dense call, which has one part.
void put_results(Reference reference, AttentionValues naive, const Parts::Piece& piece,
                 Expected& whole) {
  AttentionValues& values = whole.reference.values;
  put_rows(std::move(reference.values.out), piece, values.out);
  put_rows(std::move(reference.values.lse), piece, values.lse);
  put_rows(std::move(reference.values.max_scores), piece, values.max_scores);
  put_rows(std::move(reference.sizes), piece, whole.reference.sizes);
  put_rows(std::move(naive.out), piece, whole.naive.out);
  if (!naive.lse.data.empty()) {
    put_rows(std::move(naive.lse), piece, whole.naive.lse);
    put_rows(std::move(naive.max_scores), piece, whole.naive.max_scores);
  }
  if (reference.values.weights.data.empty()) return;
  values.weights = std::move(reference.values.weights);
  whole.naive.weights = std::move(naive.weights);
}

// A call's parts.
class ExpectedParts {
 public:
  ExpectedParts(const Spec& spec, const Interpretations& interpretations, const Problem& problem,
                const NaiveArithmetic& arithmetic, Executor& threads, const ReportProgress& report)
      : spec_(spec),
        interpretations_(interpretations),
        problem_(problem),
        arithmetic_(arithmetic),
        threads_(threads),
        report_(report),
        parts_(spec, problem, SnippetValues::Extents::physical, interpretations.scales(spec)),
        progress_(parts_),
        expected_(empty_expected(spec, problem, !is_float8(arithmetic.dtype))) {}

  Expected all() {
    for (const Parts::Piece& piece : parts_.pieces()) {
      if (piece.score_rows() > 0) add(piece);
    }
    leave_out(expected_.unjudged, expected_.reference);
    expected_.mask_disagreements = disagreements_;
    return std::move(expected_);
  }

 private:
  void add(const Parts::Piece& piece) {
    const DenseProblem dense = parts_.read(piece);
    if (dense.dropout) expected_.dropout = dense.dropout->p;
    take_odd_scales(dense, expected_);
    const RowSnippets<float> in_float = float_snippets(interpretations_, problem_, piece);
    Reference reference = timed(expected_.reference_ms, [&] {
      return reference_attention(
          dense,
          counted("reference in double precision", &Progress::of_reference, piece,
                  double_snippets(spec_, interpretations_, problem_, piece, disagreements_)),
          threads_);
    });
    AttentionValues naive = timed(expected_.naive_ms, [&] {
      return naive_attention(
          arithmetic_.products == F32Products::ieee ? dense
                                                    : parts_.read(piece, arithmetic_.products),
          counted("naive implementation", &Progress::of_naive, piece, in_float), arithmetic_.dtype,
          spec_.output_dtype(), threads_, arithmetic_.products);
    });
    std::atomic<std::int64_t> unused = 0;
    const RowSnippets<double> in_double =
        double_snippets(spec_, interpretations_, problem_, piece, unused);
    find_unjudged({spec_, problem_, piece, dense, in_float, in_double}, reference.values, naive,
                  expected_.unjudged);
    put_results(std::move(reference), std::move(naive), piece, expected_);
  }

  // Snippets that tell how many elements they were asked for.
  template <typename Score>
  RowSnippets<Score> counted(std::string_view step, std::atomic<std::int64_t> Progress::*done,
                             const Parts::Piece& piece, RowSnippets<Score> snippets) {
    if (!report_) return snippets;
    return [this, step, done, &piece, snippets = std::move(snippets)](
               std::int64_t b, std::int64_t h, std::int64_t row, const Score* scores,
               Score* modified, unsigned char* keep) {
      snippets(b, h, row, scores, modified, keep);
      progress_.*done += piece.columns();
      report_(step, progress_.share());
    };
  }

  const Spec& spec_;
  const Interpretations& interpretations_;
  const Problem& problem_;
  const NaiveArithmetic& arithmetic_;
  Executor& threads_;
  const ReportProgress& report_;
  Parts parts_;
  Progress progress_;
  std::atomic<std::int64_t> disagreements_ = 0;
  Expected expected_;
};

}  // namespace

Expected find_expected(const Spec& spec, const Interpretations& interpretations,
                       const Problem& problem, const NaiveArithmetic& arithmetic, Executor& threads,
                       const ReportProgress& report) {
  return ExpectedParts(spec, interpretations, problem, arithmetic, threads, report).all();
}

}  // namespace tilewright::verify
