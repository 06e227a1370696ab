#include "verify/check.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/float_environment.hpp"
#include "runtime/call/promised_order.hpp"
#include "runtime/library/kernel_library.hpp"
#include "verify/fast_math.hpp"
#include "verify/float_overflow.hpp"
#include "verify/freed_pages.hpp"
#include "verify/naive.hpp"
#include "verify/odd_scales.hpp"
#include "verify/outputs.hpp"
#include "verify/parts.hpp"
#include "verify/positions.hpp"
#include "verify/reference.hpp"
#include "verify/rule.hpp"
#include "verify/sequences.hpp"
#include "verify/snippet_evaluator.hpp"
#include "verify/value_spread.hpp"

namespace tilewright::verify {
namespace {

// Runs `body` and adds the milliseconds that it took.
template <typename Body>
auto timed(double& ms, Body body) {
  struct Stopwatch {
    double& ms;
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    ~Stopwatch() {
      ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                .count();
    }
  } stopwatch{ms};
  return body();
}

// How much of a check's long work the reference is; the rest is the naive implementation.
constexpr double kShareOfReference = 0.7;

// The snippets' interpretations; none where the spec has no snippets.
struct Interpretations {
  Interpretations(const Spec& spec, const CheckOptions& options) {
    if (spec.score_mod.empty() && spec.mask_mod.empty() && !spec.has_other_snippets()) return;
    const Toolchain& toolchain =
        options.interpretations ? *options.interpretations : options.attention.kernels;
    std::vector<KernelVariant> ids = {{.role = KernelRole::evaluate_float},
                                      {.role = KernelRole::evaluate_double}};
    if (options.check_undefined) ids.push_back({.role = KernelRole::evaluate_checked});
    // Compiled side by side; the interpretations below find them loaded.
    const auto loaded = load_kernels(spec, Target::host_cpu(), ids, toolchain);
    in_float.emplace(spec, toolchain);
    in_double.emplace(spec, toolchain);
    if (options.check_undefined) checked.emplace(spec, toolchain);
  }

  // None where the spec has neither scales nor a sink. Valid as long as this is.
  ScaleValues scales(const Spec& spec) const {
    if (!spec.has_other_snippets()) return {};
    return scale_values(*in_float, *in_double);
  }

  std::optional<FloatInterpretation> in_float;
  std::optional<DoubleInterpretation> in_double;
  std::optional<CheckedInterpretation> checked;
};

template <typename Score>
RowSnippets<Score> unchanged(std::int64_t kv_len) {
  return [kv_len](std::int64_t, std::int64_t, std::int64_t, const Score* scores, Score* modified,
                  unsigned char* keep) {
    std::copy(scores, scores + kv_len, modified);
    std::fill(keep, keep + kv_len, static_cast<unsigned char>(1));
  };
}

}  // namespace

class Checker::Implementation {
 public:
  Implementation(Spec spec, const CheckOptions& options)
      : options_(options),
        threads_(options.attention.threads ? *options.attention.threads
                                           : static_cast<Executor&>(ThreadPool::shared())),
        attention_(
            timed(ms_.kernels, [&] { return Attention(std::move(spec), options.attention); })),
        interpretations_(timed(ms_.interpretations,
                               [&] { return Interpretations(attention_.spec(), options); })) {
    if (!options.compared_with) return;
    AttentionOptions there = options.attention;
    there.device = *options.compared_with;
    other_.emplace(attention_.spec(), there);
  }

  const Attention& attention() const { return attention_; }

  // known: null where expected() was not called for the problem.
  Report check(const Problem& problem, const Placement& out, const Expected* known) const {
    const DefaultFloatEnvironment floats;
    Report report;
    report.builds = attention_.builds();
    report.ms.kernels = ms_.kernels;
    report.ms.interpretations = ms_.interpretations;
    say("looking for undefined behaviour", 0);
    find_undefined(problem, report);
    report.broken_promises = find_broken_promises(problem);
    say("running the kernel", 0);
    const Outputs outputs(spec(), problem.shape, out);
    CallFacts facts;
    run([&] { report.mask = run_call(attention_, problem, outputs, &facts); });
    report.ms.mask = facts.mask_ms;
    report.ms.forward = facts.forward_ms;
    report.damage = std::move(facts.changed_input);
    std::optional<Expected> found;
    const Expected& wanted = known ? *known : found.emplace(expected(problem));
    report.mask_disagreements = wanted.mask_disagreements;
    report.dropout = wanted.dropout;
    report.odd_scales = wanted.odd_scales;
    report.ms.reference = wanted.reference_ms;
    report.ms.naive = wanted.naive_ms;
    say("comparing", 1);
    timed(report.ms.judge, [&] { judge_all(problem, outputs, facts, wanted, report); });
    if (other_) compare_with_other(problem, out, outputs, wanted, report);
    return report;
  }

  // A packed call's sequences one after another.
  Expected expected(const Problem& problem) const {
    const DefaultFloatEnvironment floats;
    const Parts parts(spec(), problem, SnippetValues::Extents::physical,
                      interpretations_.scales(spec()));
    std::atomic<std::int64_t> disagreements = 0;
    Expected expected = empty_expected(problem);
    Progress progress(parts);
    for (const Parts::Piece& piece : parts.pieces()) {
      if (piece.score_rows() == 0) continue;
      const DenseProblem dense = parts.read(piece);
      if (dense.dropout) expected.dropout = dense.dropout->p;
      take_odd_scales(dense, expected);
      Reference reference = timed(expected.reference_ms, [&] {
        return reference_attention(
            dense,
            counted("reference in double precision", &Progress::of_reference, piece.columns(),
                    double_snippets(problem, piece, disagreements), progress),
            threads_);
      });
      AttentionValues naive = timed(expected.naive_ms, [&] {
        return naive_attention(
            products() == F32Products::ieee ? dense : parts.read(piece, products()),
            counted("naive implementation", &Progress::of_naive, piece.columns(),
                    float_snippets(problem, piece), progress),
            naive_dtype(), spec().output_dtype(), threads_, products());
      });
      find_unjudged(problem, piece, dense, reference.values, naive, expected);
      put_rows(std::move(reference.values.out), piece, expected.reference.values.out);
      put_rows(std::move(reference.values.lse), piece, expected.reference.values.lse);
      put_rows(std::move(reference.values.max_scores), piece, expected.reference.values.max_scores);
      put_rows(std::move(reference.max_abs_scores), piece, expected.reference.max_abs_scores);
      if (spec().outputs.weights) {  // of a dense call, which has one part
        expected.reference.values.weights = std::move(reference.values.weights);
        expected.naive.weights = std::move(naive.weights);
      }
      put_rows(std::move(naive.out), piece, expected.naive.out);
      if (!naive.lse.data.empty()) {
        put_rows(std::move(naive.lse), piece, expected.naive.lse);
        put_rows(std::move(naive.max_scores), piece, expected.naive.max_scores);
      }
    }
    leave_out(expected.unjudged, expected.reference);
    expected.mask_disagreements = disagreements;
    expected.rule = rule_of(attention_, expected.reference.max_abs_score());
    return expected;
  }

 private:
  const Spec& spec() const { return attention_.spec(); }

  void say(std::string_view step, double share) const {
    if (options_.progress) options_.progress(step, share);
  }

  static void take_odd_scales(const DenseProblem& dense, Expected& expected) {
    for (const auto& [kind, scales] : {std::pair(SnippetKind::q_scale, &dense.q_scales),
                                       std::pair(SnippetKind::k_scale, &dense.k_scales),
                                       std::pair(SnippetKind::v_scale, &dense.v_scales)}) {
      if (scales->odd) expected.odd_scales.emplace(kind, *scales->odd);
    }
    for (const double scale : dense.out_scales) {
      if (is_odd_out_scale(scale)) expected.odd_scales.emplace(SnippetKind::out_scale, scale);
    }
  }

  // Of a part. reference and naive: the part's.
  void find_unjudged(const Problem& problem, const Parts::Piece& piece, const DenseProblem& dense,
                     const AttentionValues& reference, const AttentionValues& naive,
                     Expected& expected) const {
    const RowSnippets<float> in_float = float_snippets(problem, piece);
    const auto mark = [&](const Values& part, NotJudged reason, Values& whole, double where = 1) {
      mark_unjudged(part, where, piece, reason, problem, whole);
    };
    Unjudged& unjudged = expected.unjudged;
    if (const auto spread = value_spread(dense, in_float, spec().block)) {
      mark(*spread, NotJudged::spread, unjudged.infinite, kThroughDropped);
      mark(*spread, NotJudged::weight, unjudged.infinite, kThroughKept);
    }
    std::atomic<std::int64_t> unused = 0;
    if (const auto overflow = float_overflow(
            dense, in_float, double_snippets(problem, piece, unused), reference, naive)) {
      mark(overflow->out, NotJudged::overflow, unjudged.infinite);
      mark(overflow->rows, NotJudged::overflow, unjudged.out_rows);
      mark(overflow->rows, NotJudged::overflow, unjudged.score_rows);
    }
    if (const auto reach = reach_of_odd_scales(dense, in_float, spec().block)) {
      mark(reach->out, NotJudged::scale, unjudged.out_rows);
      mark(reach->scores, NotJudged::scale, unjudged.score_rows);
    }
  }

  // Where the part is `where`.
  static void mark_unjudged(const Values& part, double where, const Parts::Piece& piece,
                            NotJudged reason, const Problem& problem, Values& whole) {
    if (whole.data.empty()) {
      const bool is_packed = problem.sequences.has_value();
      whole = Values::zeros(is_packed ? 1 : part.batch, part.heads,
                            is_packed ? problem.shape.q_len : part.rows, part.width);
    }
    const std::int64_t count = part.rows * part.width;
    for (std::int64_t b = 0; b < part.batch; ++b) {
      for (std::int64_t h = 0; h < part.heads && count > 0; ++h) {
        double* const to = whole.row(b, h, piece.row);
        for (std::int64_t i = 0; i < count; ++i) {
          if (part.row(b, h, 0)[i] == where) to[i] = static_cast<double>(reason);
        }
      }
    }
  }

  // A result, and the reference, where the result is judged.
  Judged judged(AttentionValues got, const Problem& problem, const Expected& wanted) const {
    return leave_out(wanted.unjudged, wanted.reference.values, wanted.naive, spec().output_dtype(),
                     values_of(std::move(got), problem));
  }

  // Rows of a packed call that belong to no sequence stay NaN, which judge() leaves out.
  Expected empty_expected(const Problem& problem) const {
    if (!problem.sequences) return {};
    const auto empty = [&](std::int64_t width) {
      Values values = Values::zeros(1, problem.shape.num_q_heads, problem.shape.q_len, width);
      std::fill(values.data.begin(), values.data.end(), std::numeric_limits<double>::quiet_NaN());
      return values;
    };
    Expected expected;
    expected.reference.values = {
        .out = empty(spec().value_head_dim()), .lse = empty(1), .max_scores = empty(1)};
    expected.reference.max_abs_scores = empty(1);
    expected.naive.out = empty(spec().value_head_dim());
    if (!is_float8(naive_dtype())) {
      expected.naive.lse = expected.naive.max_scores = empty(1);
    }
    return expected;
  }

  // How much of a check's long work is done.
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

  // Snippets that tell how many elements they were asked for.
  template <typename Score>
  RowSnippets<Score> counted(std::string_view step, std::atomic<std::int64_t> Progress::*done,
                             std::int64_t columns, RowSnippets<Score> snippets,
                             Progress& progress) const {
    if (!options_.progress) return snippets;
    return [this, step, done, columns, &progress, snippets = std::move(snippets)](
               std::int64_t b, std::int64_t h, std::int64_t row, const Score* scores,
               Score* modified, unsigned char* keep) {
      snippets(b, h, row, scores, modified, keep);
      progress.*done += columns;
      say(step, progress.share());
    };
  }

  void run(const std::function<void()>& call) const {
    if (options_.run_by) return options_.run_by(call);
    call();
  }

  // Before everything else: what traps must not run in any interpretation.
  void find_undefined(const Problem& problem, Report& report) const {
    if (!interpretations_.checked) return;
    report.undefined = timed(report.ms.undefined, [&] {
      return find_undefined_operations(spec(), problem, *interpretations_.checked,
                                       options_.max_checked_elements);
    });
    for (const UndefinedOperation& operation : report.undefined.operations) {
      if (operation.fatal) throw fatal_operation_error(operation);
    }
  }

  std::vector<std::string> find_broken_promises(const Problem& problem) const {
    std::vector<std::string> broken;
    for (const auto& [name, buffer] : spec().buffers) {
      const auto tensor = problem.snippet.buffers.find(name);
      if (!buffer.sorted.is_promised() || tensor == problem.snippet.buffers.end()) continue;
      if (const auto found = describe_unsorted(name, tensor->second)) {
        broken.push_back(*found + ", but the spec promises that it is sorted");
      }
    }
    const FloatInterpretation* const interpretation =
        interpretations_.in_float ? &*interpretations_.in_float : nullptr;
    for (std::string& kept : find_kept_freed_pages(spec(), problem, interpretation, threads_)) {
      broken.push_back(std::move(kept));
    }
    return broken;
  }

  Rule rule_of(const Attention& attention, double max_abs_score) const {
    Rule rule = rule_for(attention, max_abs_score);
    rule.products = products();
    return rule;
  }

  // One naive judges both devices: in TF32 where one of them multiplies so.
  F32Products products() const {
    const bool is_tf32 = multiplies_tf32(spec(), attention_.device()) ||
                         (other_ && multiplies_tf32(spec(), other_->device()));
    return is_tf32 ? F32Products::tf32 : F32Products::ieee;
  }

  // One naive judges both devices, and a result from elsewhere, which may have 8-bit weights.
  DType naive_dtype() const {
    const bool is_wide = options_.theirs || (other_ && product_dtype(*other_) == spec().dtype);
    return is_wide ? spec().dtype : product_dtype(attention_);
  }

  void compare_with_other(const Problem& problem, const Placement& placement,
                          const Outputs& outputs, const Expected& wanted, Report& report) const {
    const Outputs there(spec(), problem.shape, placement);
    run_call(*other_, problem, there);
    const Rule rule = rule_of(*other_, wanted.reference.max_abs_score());
    const Judged ours = judged(outputs.values(spec()), problem, wanted);
    const Judged theirs = judged(there.values(spec()), problem, wanted);
    report.other_verdict =
        judge(theirs.got, theirs.reference, wanted.naive, rule, place_of_rows(problem));
    report.agreement = compare({ours.got, ours.reference, report.verdict, wanted.rule},
                               {theirs.got, theirs.reference, *report.other_verdict, rule});
    report.ok = report.ok && report.other_verdict->ok && report.agreement->ok;
  }

  void judge_all(const Problem& problem, const Outputs& outputs, const CallFacts& facts,
                 const Expected& wanted, Report& report) const {
    const Judged ours = judged(outputs.values(spec()), problem, wanted);
    report.unjudged = ours.counts;
    report.verdict =
        judge(ours.got, ours.reference, wanted.naive, wanted.rule, place_of_rows(problem));
    if (problem.sequences) judge_sequences(problem, ours, wanted, report);
    if (!report.damage) report.damage = outputs.damage(problem);
    if (options_.check_mask) report.mask_verdict = judge_tiles(problem, facts, report);
    report.ok = report.verdict.ok && report.broken_promises.empty() &&
                report.sequence_reasons.empty() && !report.damage &&
                (!report.mask_verdict || report.mask_verdict->ok);
    if (options_.theirs) {
      judge_theirs(problem, ours, judged(*options_.theirs, problem, wanted), wanted, report);
    }
  }

  std::optional<MaskVerdict> judge_tiles(const Problem& problem, const CallFacts& facts,
                                         const Report& report) const {
    const FloatInterpretation* const interpretation =
        interpretations_.in_float ? &*interpretations_.in_float : nullptr;
    if (facts.plan_map) {
      MaskVerdict verdict =
          check_tile_map(spec(), problem, *facts.plan_map, interpretation, threads_);
      // Without a mask_mod there is something to say where the plan is wrong alone.
      if (spec().mask_mod.empty() && verdict.ok) return std::nullopt;
      return verdict;
    }
    if (!report.mask) return std::nullopt;
    return check_block_mask(spec(), problem, *report.mask, *interpretation, threads_);
  }

  void judge_theirs(const Problem& problem, const Judged& ours, const Judged& theirs,
                    const Expected& wanted, Report& report) const {
    Rule rule = wanted.rule;
    rule.dtype = spec().dtype;
    report.their_verdict =
        judge(theirs.got, theirs.reference, wanted.naive, rule, place_of_rows(problem));
    report.their_agreement = compare({ours.got, ours.reference, report.verdict, wanted.rule},
                                     {theirs.got, theirs.reference, *report.their_verdict, rule});
    report.ok = report.ok && report.their_verdict->ok && report.their_agreement->ok;
  }

  // Each sequence alone, by the same rule with wider bounds.
  void judge_sequences(const Problem& problem, const Judged& ours, const Expected& wanted,
                       Report& report) const {
    constexpr std::size_t kFew = 3;
    const Parts parts(spec(), problem);
    for (const Parts::Piece& piece : parts.pieces()) {
      if (piece.score_rows() == 0 || report.sequence_reasons.size() >= kFew) continue;
      const auto part_of = [&](const AttentionValues& whole) {
        AttentionValues part{.out = take_rows(whole.out, piece)};
        if (!whole.lse.data.empty()) part.lse = take_rows(whole.lse, piece);
        if (!whole.max_scores.data.empty()) part.max_scores = take_rows(whole.max_scores, piece);
        return part;
      };
      const Values max_abs_scores = take_rows(wanted.reference.max_abs_scores, piece);
      Rule rule = rule_of(attention_, max_abs_scores.greatest_magnitude());
      rule.bound_factor = kBoundFactorOfSequence;
      const Verdict verdict =
          judge(part_of(ours.got), part_of(ours.reference), part_of(wanted.naive), rule,
                [&](std::int64_t, std::int64_t row) {
                  return RowPlace{piece.b, row};
                });
      for (const std::string& reason : verdict.reasons) {
        report.sequence_reasons.push_back(fmt::format("sequence {} alone: {}", piece.b, reason));
      }
    }
  }

  // What was written; NaN, as the reference is, in rows of a packed call that no sequence has.
  AttentionValues values_of(AttentionValues values, const Problem& problem) const {
    if (!problem.sequences) return values;
    std::vector<bool> is_planned(static_cast<std::size_t>(problem.shape.q_len));
    for (const SequenceRows& rows : read_sequences(problem)) {
      std::fill_n(is_planned.begin() + rows.q_begin, rows.q_len, true);
    }
    for (Values* const one : {&values.out, &values.lse, &values.max_scores}) {
      for (std::int64_t item = 0; item < one->heads * one->rows; ++item) {
        const std::int64_t row = item % one->rows;
        if (is_planned[static_cast<std::size_t>(row)]) continue;
        std::fill_n(one->row(0, item / one->rows, row), one->width,
                    std::numeric_limits<double>::quiet_NaN());
      }
    }
    return values;
  }

  // Rows of a packed call by the number of their sequence and their row in it.
  static PlaceOfRow place_of_rows(const Problem& problem) {
    if (!problem.sequences) return {};
    return [sequences = read_sequences(problem)](std::int64_t, std::int64_t row) {
      for (std::size_t b = 0; b < sequences.size(); ++b) {
        const std::int64_t inside = row - sequences[b].q_begin;
        if (inside >= 0 && inside < sequences[b].q_len) {
          return RowPlace{static_cast<std::int64_t>(b), inside};
        }
      }
      return RowPlace{-1, row};
    };
  }

  static void apply_positions(const Problem& problem, const Parts::Piece& piece, std::int64_t h,
                              std::int64_t row, unsigned char* keep) {
    if (problem.positions) PositionTiles(*problem.positions, piece).apply(h, row, keep);
  }

  RowSnippets<float> float_snippets(const Problem& problem, const Parts::Piece& piece) const {
    if (!interpretations_.in_float) return unchanged<float>(piece.columns());
    return [this, &problem, &piece](std::int64_t b, std::int64_t h, std::int64_t row,
                                    const float* scores, float* modified, unsigned char* keep) {
      interpretations_.in_float->row(piece.arguments, piece.b + b, h, row, scores, modified, keep);
      apply_positions(problem, piece, h, row, keep);
    };
  }

  // Scores in double, but what is kept is decided in float: a truth has no rounding error to allow
  // for, so the reference must take the kernel's side of every `<`.
  RowSnippets<double> double_snippets(const Problem& problem, const Parts::Piece& piece,
                                      std::atomic<std::int64_t>& disagreements) const {
    if (!interpretations_.in_double) return unchanged<double>(piece.columns());
    return [this, &problem, &piece, &disagreements](std::int64_t b, std::int64_t h,
                                                    std::int64_t row, const double* scores,
                                                    double* modified, unsigned char* keep) {
      interpretations_.in_double->row(piece.arguments, piece.b + b, h, row, scores, modified, keep);
      if (spec().mask_mod.empty()) return;
      const auto count = static_cast<std::size_t>(piece.columns());
      const std::vector<float> float_scores(scores, scores + count);
      std::vector<float> unused(count);
      std::vector<unsigned char> float_keep(count);
      interpretations_.in_float->row(piece.arguments, piece.b + b, h, row, float_scores.data(),
                                     unused.data(), float_keep.data());
      std::int64_t different = 0;
      for (std::size_t i = 0; i < count; ++i) different += (keep[i] != 0) != (float_keep[i] != 0);
      std::copy(float_keep.begin(), float_keep.end(), keep);
      apply_positions(problem, piece, h, row, keep);
      if (different != 0) disagreements += different;
    };
  }

  CheckOptions options_;
  Executor& threads_;
  StepTimes ms_;  // of making the kernels
  Attention attention_;
  Interpretations interpretations_;
  std::optional<Attention> other_;  // on the device to compare with
};

std::vector<std::string> Report::reasons() const {
  std::vector<std::string> reasons = broken_promises;
  reasons.insert(reasons.end(), verdict.reasons.begin(), verdict.reasons.end());
  reasons.insert(reasons.end(), sequence_reasons.begin(), sequence_reasons.end());
  if (other_verdict) {
    for (const std::string& reason : other_verdict->reasons) {
      reasons.push_back("on the device that it was compared with: " + reason);
    }
  }
  if (their_verdict) {
    for (const std::string& reason : their_verdict->reasons) {
      reasons.push_back("the result from elsewhere: " + reason);
    }
  }
  if (their_agreement) {
    for (const std::string& reason : their_agreement->reasons) {
      reasons.push_back("the result from elsewhere and the kernel's: " + reason);
    }
  }
  if (agreement) {
    reasons.insert(reasons.end(), agreement->reasons.begin(), agreement->reasons.end());
  }
  if (damage) reasons.push_back(*damage);
  if (mask_verdict && !mask_verdict->ok) {
    reasons.push_back(fmt::format(
        "the {} is wrong in {} of {} tiles: {}", mask ? "block mask" : "plan's tile map",
        mask_verdict->wrong_tiles, mask_verdict->tiles, mask_verdict->first_wrong));
  }
  return reasons;
}

Checker::Checker(Spec spec, const CheckOptions& options)
    : implementation_(std::make_unique<Implementation>(std::move(spec), options)) {}
Checker::Checker(Checker&&) noexcept = default;
Checker::~Checker() = default;

const Attention& Checker::attention() const {
  return implementation_->attention();
}

Report Checker::check(const Problem& problem, const Placement& out) const {
  return implementation_->check(problem, out, nullptr);
}

Report Checker::check(const Problem& problem, const Placement& out, const Expected& wanted) const {
  return implementation_->check(problem, out, &wanted);
}

Checker::Expected Checker::expected(const Problem& problem) const {
  return implementation_->expected(problem);
}

Report check(const Spec& spec, const Problem& problem, const CheckOptions& options) {
  return Checker(spec, options).check(problem);
}

}  // namespace tilewright::verify
