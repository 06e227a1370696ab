#include "verify/check.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/float_environment.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/call/promised_order.hpp"
#include "verify/fast_math.hpp"
#include "verify/find_expected.hpp"
#include "verify/freed_pages.hpp"
#include "verify/interpretations.hpp"
#include "verify/outputs.hpp"
#include "verify/packed_rows.hpp"
#include "verify/parts.hpp"
#include "verify/rule.hpp"
#include "verify/timed.hpp"

namespace tilewright::verify {

class Checker::Implementation {
 public:
  Implementation(Spec spec, const CheckOptions& options)
      : options_(options),
        threads_(options.attention.threads ? *options.attention.threads
                                           : static_cast<Executor&>(ThreadPool::shared())),
        attention_(
            timed(ms_.kernels, [&] { return Attention(std::move(spec), options.attention); })),
        interpretations_(timed(ms_.interpretations, [&] {
          return Interpretations(
              attention_.spec(),
              options.interpretations ? *options.interpretations : options.attention.kernels,
              options.check_undefined);
        })) {
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
    const Judged ours = timed(report.ms.judge, [&] {
      Judged judged = judged_of(outputs.values(spec()), problem, wanted);
      judge_all(problem, outputs, facts, judged, wanted, report);
      return judged;
    });
    if (other_) compare_with_other(problem, out, ours, wanted, report);
    return report;
  }

  Expected expected(const Problem& problem) const {
    const DefaultFloatEnvironment floats;
    Expected expected = find_expected(spec(), interpretations_, problem,
                                      {naive_dtype(), products()}, threads_, options_.progress);
    expected.rule = rule_of(attention_, expected.reference.sizes);
    expected.rule.large = large_elements(expected.unjudged);
    return expected;
  }

 private:
  const Spec& spec() const { return attention_.spec(); }

  void say(std::string_view step, double share) const {
    if (options_.progress) options_.progress(step, share);
  }

  // A result, and the reference, where the result is judged.
  Judged judged_of(AttentionValues got, const Problem& problem, const Expected& wanted) const {
    return leave_out(wanted.unjudged, wanted.reference.values, wanted.naive, spec().output_dtype(),
                     rows_of_sequences(std::move(got), problem));
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
    if (auto error = fatal_operation_error(spec(), report.undefined)) throw *std::move(error);
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

  Rule rule_of(const Attention& attention, BoundSizes sizes) const {
    Rule rule = rule_for(attention, std::move(sizes));
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

  void compare_with_other(const Problem& problem, const Placement& placement, const Judged& ours,
                          const Expected& wanted, Report& report) const {
    const Outputs there(spec(), problem.shape, placement);
    run_call(*other_, problem, there);
    Rule rule = rule_of(*other_, wanted.reference.sizes);
    rule.large = wanted.rule.large;
    const Judged theirs = judged_of(there.values(spec()), problem, wanted);
    report.other_unjudged = theirs.counts;
    report.other_verdict =
        judge(theirs.got, theirs.reference, wanted.naive, rule, place_of_rows(problem));
    report.agreement = compare({ours.got, ours.reference, report.verdict, wanted.rule},
                               {theirs.got, theirs.reference, *report.other_verdict, rule});
    report.ok = report.ok && report.other_verdict->ok && report.agreement->ok;
  }

  void judge_all(const Problem& problem, const Outputs& outputs, const CallFacts& facts,
                 const Judged& ours, const Expected& wanted, Report& report) const {
    report.elements = elements_of_out(problem);
    report.unjudged = ours.counts;
    report.nan = nan_of_out(problem, ours.reference) - ours.counts.all();
    report.verdict =
        judge(ours.got, ours.reference, wanted.naive, wanted.rule, place_of_rows(problem));
    if (problem.sequences) judge_sequences(problem, ours, wanted, report);
    if (!report.damage) report.damage = outputs.damage(problem);
    if (options_.check_mask) report.mask_verdict = judge_tiles(problem, facts, report);
    report.ok = report.verdict.ok && report.broken_promises.empty() &&
                report.sequence_reasons.empty() && !report.damage &&
                (!report.mask_verdict || report.mask_verdict->ok);
    if (options_.theirs) {
      judge_theirs(problem, ours, judged_of(*options_.theirs, problem, wanted), wanted, report);
    }
  }

  std::int64_t elements_of_out(const Problem& problem) const {
    std::int64_t rows = 0;
    const Parts parts(spec(), problem);
    for (const Parts::Piece& piece : parts.pieces()) rows += piece.score_rows();
    return rows * spec().value_head_dim();
  }

  // Of the rows that belong to the call, elements that were left out among them.
  std::int64_t nan_of_out(const Problem& problem, const AttentionValues& reference) const {
    std::int64_t count = 0;
    const Parts parts(spec(), problem);
    for (const Parts::Piece& piece : parts.pieces()) {
      const Values rows = problem.sequences ? take_rows(reference.out, piece) : reference.out;
      count += std::count_if(rows.data.begin(), rows.data.end(),
                             [](double element) { return std::isnan(element); });
    }
    return count;
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
    report.their_unjudged = theirs.counts;
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
      Rule rule = wanted.rule;
      rule.sizes = take_rows(wanted.rule.sizes, piece);
      if (!wanted.rule.large.data.empty()) rule.large = take_rows(wanted.rule.large, piece);
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

  CheckOptions options_;
  Executor& threads_;
  StepTimes ms_;  // of making the kernels
  Attention attention_;
  Interpretations interpretations_;
  std::optional<Attention> other_;  // on the device to compare with
};

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
