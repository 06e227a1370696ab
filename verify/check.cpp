#include "verify/check.hpp"

#include <atomic>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/float_environment.hpp"
#include "runtime/library/kernel_library.hpp"
#include "verify/fast_math.hpp"
#include "verify/naive.hpp"
#include "verify/outputs.hpp"
#include "verify/reference.hpp"
#include "verify/snippet_evaluator.hpp"

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

// How much of a check's long work the reference is; the rest is the naive implementation. Both are
// asked row by row.
constexpr double kShareOfReference = 0.7;

// The snippets' readings; none where the spec has no snippets.
struct Readings {
  Readings(const Spec& spec, const CheckOptions& options) {
    if (spec.score_mod.empty() && spec.mask_mod.empty()) return;
    const Toolchain& context = options.readings ? *options.readings : options.attention.kernels;
    std::vector<KernelVariant> ids = {{.role = KernelRole::evaluate_float},
                                      {.role = KernelRole::evaluate_double}};
    if (options.check_undefined) ids.push_back({.role = KernelRole::evaluate_checked});
    // Compiled side by side; the readings below find them loaded.
    const auto loaded = load_kernels(spec, Target::host_cpu(), ids, context);
    in_float.emplace(spec, context);
    in_double.emplace(spec, context);
    if (options.check_undefined) checked.emplace(spec, context);
  }

  std::optional<FloatReading> in_float;
  std::optional<DoubleReading> in_double;
  std::optional<CheckedReading> checked;
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
        threads_(options.attention.threads ? *options.attention.threads : ThreadPool::shared()),
        attention_(
            timed(ms_.kernels, [&] { return Attention(std::move(spec), options.attention); })),
        readings_(timed(ms_.readings, [&] { return Readings(attention_.spec(), options); })) {
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
    report.ms.readings = ms_.readings;
    say("looking for undefined behaviour", 0);
    find_undefined(problem, report);
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
    report.ms.reference = wanted.reference_ms;
    report.ms.naive = wanted.naive_ms;
    say("comparing", 1);
    timed(report.ms.judge, [&] { judge_all(problem, outputs, wanted, report); });
    if (other_) compare_with_other(problem, out, outputs, wanted, report);
    return report;
  }

  Expected expected(const Problem& problem) const {
    const DefaultFloatEnvironment floats;
    const DenseProblem dense{.q = read_values(problem.q, spec().layout),
                             .k = read_values(problem.k, spec().key_value_layout()),
                             .v = read_values(problem.v, spec().key_value_layout()),
                             .scale = scale_of(spec(), problem)};
    const SnippetValues values(spec(), problem.snippet, problem.shape);
    std::atomic<std::int64_t> disagreements = 0;
    Expected expected;
    expected.reference = timed(expected.reference_ms, [&] {
      return reference_attention(
          dense,
          counted("reference in double precision", 0,
                  double_snippets(values.arguments(), disagreements), problem.shape),
          threads_);
    });
    expected.naive = timed(expected.naive_ms, [&] {
      return naive_attention(dense,
                             counted("naive implementation", kShareOfReference,
                                     float_snippets(values.arguments()), problem.shape),
                             spec().dtype, spec().output_dtype(), threads_);
    });
    expected.mask_disagreements = disagreements;
    expected.rule = rule_on(attention_.device(), expected.reference);
    return expected;
  }

 private:
  const Spec& spec() const { return attention_.spec(); }

  void say(std::string_view step, double share) const {
    if (options_.progress) options_.progress(step, share);
  }

  // Snippets that tell how many rows they were asked for.
  template <typename Score>
  RowSnippets<Score> counted(std::string_view step, double before, RowSnippets<Score> snippets,
                             const Shape& shape) const {
    if (!options_.progress) return snippets;
    const double rows = static_cast<double>(shape.batch) * static_cast<double>(shape.num_q_heads) *
                        static_cast<double>(shape.q_len);
    const double width = before > 0 ? 1 - kShareOfReference : kShareOfReference;
    auto done = std::make_shared<std::atomic<std::int64_t>>(0);
    return [this, step, before, rows, width, done, snippets = std::move(snippets)](
               std::int64_t b, std::int64_t h, std::int64_t row, const Score* scores,
               Score* modified, unsigned char* keep) {
      snippets(b, h, row, scores, modified, keep);
      say(step, before + width * static_cast<double>(++*done) / rows);
    };
  }

  void run(const std::function<void()>& call) const {
    if (options_.run_by) return options_.run_by(call);
    call();
  }

  // Before everything else: what traps must not run in any reading.
  void find_undefined(const Problem& problem, Report& report) const {
    if (!readings_.checked) return;
    report.undefined = timed(report.ms.undefined, [&] {
      return find_undefined_operations(spec(), problem, *readings_.checked,
                                       options_.max_checked_elements);
    });
    for (const UndefinedOperation& operation : report.undefined.operations) {
      if (operation.fatal) throw fatal_operation_error(operation);
    }
  }

  Rule rule_on(const Device& device, const Reference& reference) const {
    Rule rule{.dtype = spec().dtype, .out_dtype = spec().output_dtype()};
    if (uses_fast_math(spec(), device)) rule.fast_math_score = reference.max_abs_score;
    return rule;
  }

  void compare_with_other(const Problem& problem, const Placement& placement,
                          const Outputs& outputs, const Expected& wanted, Report& report) const {
    const Outputs there(spec(), problem.shape, placement);
    run_call(*other_, problem, there);
    const Rule rule = rule_on(other_->device(), wanted.reference);
    const AttentionValues values = outputs.values(spec());
    const AttentionValues other_values = there.values(spec());
    report.other_verdict = judge(other_values, wanted.reference.values, wanted.naive, rule);
    report.agreement =
        compare({values, report.verdict, wanted.rule}, {other_values, *report.other_verdict, rule},
                wanted.reference.values);
    report.ok = report.ok && report.other_verdict->ok && report.agreement->ok;
  }

  void judge_all(const Problem& problem, const Outputs& outputs, const Expected& wanted,
                 Report& report) const {
    report.verdict =
        judge(outputs.values(spec()), wanted.reference.values, wanted.naive, wanted.rule);
    if (!report.damage) report.damage = outputs.damage();
    if (report.mask && options_.check_mask) {
      report.mask_verdict =
          check_block_mask(spec(), problem, *report.mask, *readings_.in_float, threads_);
    }
    report.ok =
        report.verdict.ok && !report.damage && (!report.mask_verdict || report.mask_verdict->ok);
    if (options_.theirs) judge_theirs(outputs.values(spec()), wanted, report);
  }

  void judge_theirs(const AttentionValues& ours, const Expected& wanted, Report& report) const {
    const AttentionValues& theirs = *options_.theirs;
    report.their_verdict = judge(theirs, wanted.reference.values, wanted.naive, wanted.rule);
    report.their_agreement =
        compare({ours, report.verdict, wanted.rule}, {theirs, *report.their_verdict, wanted.rule},
                wanted.reference.values);
    report.ok = report.ok && report.their_verdict->ok && report.their_agreement->ok;
  }

  RowSnippets<float> float_snippets(const abi::SnippetArguments& arguments) const {
    if (!readings_.in_float) return unchanged<float>(arguments.kv_len);
    return [this, arguments](std::int64_t b, std::int64_t h, std::int64_t row, const float* scores,
                             float* modified, unsigned char* keep) {
      readings_.in_float->row(arguments, b, h, row, scores, modified, keep);
    };
  }

  // Scores in double, but what is kept is decided in float: a truth has no rounding error to allow
  // for, so the reference must take the kernel's side of every `<`.
  RowSnippets<double> double_snippets(const abi::SnippetArguments& arguments,
                                      std::atomic<std::int64_t>& disagreements) const {
    if (!readings_.in_double) return unchanged<double>(arguments.kv_len);
    return [this, arguments, &disagreements](std::int64_t b, std::int64_t h, std::int64_t row,
                                             const double* scores, double* modified,
                                             unsigned char* keep) {
      readings_.in_double->row(arguments, b, h, row, scores, modified, keep);
      if (spec().mask_mod.empty()) return;
      const auto count = static_cast<std::size_t>(arguments.kv_len);
      const std::vector<float> float_scores(scores, scores + count);
      std::vector<float> unused(count);
      std::vector<unsigned char> float_keep(count);
      readings_.in_float->row(arguments, b, h, row, float_scores.data(), unused.data(),
                              float_keep.data());
      std::int64_t different = 0;
      for (std::size_t i = 0; i < count; ++i) different += (keep[i] != 0) != (float_keep[i] != 0);
      std::copy(float_keep.begin(), float_keep.end(), keep);
      if (different != 0) disagreements += different;
    };
  }

  CheckOptions options_;
  ThreadPool& threads_;
  StepTimes ms_;  // of making the kernels
  Attention attention_;
  Readings readings_;
  std::optional<Attention> other_;  // on the device to compare with
};

std::vector<std::string> Report::reasons() const {
  std::vector<std::string> reasons = verdict.reasons;
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
      reasons.push_back("the result from elsewhere beside the kernel's: " + reason);
    }
  }
  if (agreement) {
    reasons.insert(reasons.end(), agreement->reasons.begin(), agreement->reasons.end());
  }
  if (damage) reasons.push_back(*damage);
  if (mask_verdict && !mask_verdict->ok) {
    reasons.push_back(fmt::format("the block mask is wrong in {} of {} tiles: {}",
                                  mask_verdict->wrong_tiles, mask_verdict->tiles,
                                  mask_verdict->first_wrong));
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
