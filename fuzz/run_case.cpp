#include "fuzz/run_case.hpp"

#include <algorithm>
#include <array>
#include <cfenv>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/activity.hpp"
#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/float_environment.hpp"
#include "fuzz/case_gradients.hpp"
#include "fuzz/case_inputs.hpp"
#include "fuzz/case_parts.hpp"
#include "fuzz/interpretations.hpp"
#include "fuzz/judge_by_samples.hpp"
#include "fuzz/kernel_call.hpp"
#include "fuzz/random_tactic.hpp"
#include "fuzz/relations.hpp"
#include "fuzz/written.hpp"
#include "generator/spec/target.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/call/staged_call.hpp"
#include "runtime/compile/host_compiler.hpp"
#include "verify/agreement.hpp"
#include "verify/attention_values.hpp"
#include "verify/fast_math.hpp"
#include "verify/gradients.hpp"
#include "verify/mask_check.hpp"
#include "verify/rule.hpp"
#include "verify/undefined_behaviour.hpp"

namespace tilewright::verify::fuzz {
namespace {

// Ends a case with what is wrong.
struct Failed {
  Failure failure;
  std::vector<Finding> findings;  // at least one
};

[[noreturn]] void fail(Failure failure, std::string message, std::string key = {}) {
  throw Failed{failure, {{.message = std::move(message), .key = std::move(key)}}};
}

Outcome outcome_of(Failed failed) {
  Outcome outcome{.failure = failed.failure,
                  .message = std::move(failed.findings.front().message),
                  .key = std::move(failed.findings.front().key)};
  failed.findings.erase(failed.findings.begin());
  outcome.others = std::move(failed.findings);
  return outcome;
}

std::string joined(const std::vector<std::string>& lines) {
  return fmt::format("{}", fmt::join(lines, "; "));
}

void check_red_zones(const std::string& damage, const std::string& device) {
  if (damage.empty()) return;
  fail(Failure::red_zone, fmt::format("on {}, memory around {}", device, damage));
}

double share(double error, double bound) {
  return bound > 0 ? error / bound : 0;
}

double share_of(const Verdict& verdict) {
  return std::max({share(verdict.error_max, verdict.bound_max),
                   share(verdict.error_rms, verdict.bound_rms),
                   share(verdict.lse_error, verdict.lse_bound)});
}

bool is_compile_error(ErrorCode code) {
  return code == ErrorCode::snippet || code == ErrorCode::kernel_template ||
         code == ErrorCode::compiler;
}

// The kernels of one spec on one device.
struct Kernels {
  Kernels(const FuzzCase& c, const RunOptions& options, ThreadPool& threads)
      : target(c.target),
        spec(c.spec),
        sanitized(c.sanitized),
        decode(c.decode),
        attention(spec_under_test(c, options), {.device = Device::parse(c.target),
                                                .kernels = under_test(c, options.kernels),
                                                .threads = &threads,
                                                .decode = c.decode}) {
    const bool needs_interpretations = !has_all_trees(c);
    if (needs_interpretations) user.emplace(c.spec, options.kernels);
    const bool on_gpu = attention.device().kind() == Device::Kind::cuda;
    if (on_gpu && options.beside_cpu) {
      Spec there = c.spec;
      there.tactic.reset();  // of the GPU
      beside.emplace(there,
                     AttentionOptions{
                         .device = Device::cpu(), .kernels = options.kernels, .threads = &threads});
    }
    const std::int64_t every = options.check_undefined_every;
    const bool has_snippet =
        !c.spec.score_mod.empty() || !c.spec.mask_mod.empty() || c.spec.has_other_snippets();
    const bool is_sample = every > 0 && c.number / 4 % every == 0;
    if (has_snippet && (needs_interpretations || is_sample))
      checked.emplace(c.spec, options.kernels);
  }

  static Spec spec_under_test(const FuzzCase& c, const RunOptions& options) {
    const bool is_on_gpu = Device::parse(c.target).kind() == Device::Kind::cuda;
    if (!options.bounded_waits || !is_on_gpu) return c.spec;
    return with_bounded_waits(c.spec, *options.bounded_waits);
  }

  static Toolchain under_test(const FuzzCase& c, Toolchain toolchain) {
    if (c.sanitized && c.target == "cpu") {
      toolchain.instrumentation = HostCompiler::trap_on_undefined();
    }
    return toolchain;
  }

  bool serves(const FuzzCase& c) const {
    return c.target == target && c.spec == spec && c.sanitized == sanitized && c.decode == decode;
  }

  std::int64_t compiled() const {
    const std::vector<KernelBuild> builds = attention.builds();
    return std::count_if(builds.begin(), builds.end(),
                         [](const KernelBuild& build) { return build.source == "built"; });
  }

  std::string target;
  Spec spec;
  bool sanitized;
  bool decode;
  Attention attention;
  std::optional<Attention> beside;
  std::optional<UserInterpretations> user;
  std::optional<CheckedInterpretation> checked;
};

}  // namespace

class CaseRunner::Implementation {
 public:
  explicit Implementation(RunOptions options)
      : options_(std::move(options)),
        threads_(options_.threads ? *options_.threads : ThreadPool::shared()) {}

  Outcome run(const FuzzCase& c) {
    const DefaultFloatEnvironment floats;
    const auto start = std::chrono::steady_clock::now();
    Outcome outcome;
    compiled_ = 0;
    try {
      outcome = is_run(c) ? run_call(c) : compile(c);
    } catch (const Failed& failed) {
      outcome = outcome_of(failed);
    } catch (const Error& error) {
      outcome = {
          .failure = is_compile_error(error.code()) ? Failure::compile_error : Failure::error,
          .message = error.what(),
          .error = details_of(error)};
    } catch (const std::exception& error) {
      outcome = {.failure = Failure::error, .message = error.what()};
    }
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    outcome.ms = took.count();
    outcome.kernels_compiled = compiled_;  // of a case that failed afterwards too
    return outcome;
  }

 private:
  Outcome compile(const FuzzCase& c) {
    const KernelBinary binary =
        build_kernel(c.spec, Target::parse(c.target), *c.kernel, options_.kernels);
    const bool spills = binary.build.gpu && binary.build.gpu->spill_bytes > 0;
    compiled_ = binary.build.source == "built" ? 1 : 0;
    return {.spills = spills};
  }

  Outcome run_call(const FuzzCase& c) {
    const bool is_new = !kernels_ || !kernels_->serves(c);
    if (is_new) {
      const Activity activity("makes the kernels of a case");
      kernels_.reset();
      kernels_.emplace(c, options_, threads_);
    }
    compiled_ = is_new ? kernels_->compiled() : 0;
    Outcome outcome;
    CaseInputs inputs(c);
    find_undefined(c, inputs.problem());
    const CaseParts parts(c, inputs.problem(), kernels_->user ? &*kernels_->user : nullptr);
    if (c.nan_in_dropped) inputs.plant_nan_in_dropped(parts);
    outcome.share_of_bound = judge_call(c, inputs, parts);
    outcome.relation_ran = check_relation_of(c);
    return outcome;
  }

  // Whether there was one that applies. Its calls are dense and without NaN.
  bool check_relation_of(const FuzzCase& c) const {
    if (c.relation.empty()) return false;
    Spec spec = c.spec;
    if (c.scale) spec.scale = c.scale;
    spec.outputs.weights = false;  // relations are between outs and lses
    const Relation relation = relation_from_string(c.relation);
    if (!is_of_gradients(relation)) spec.gradients.clear();
    const Device device = Device::parse(c.target);
    const std::unique_ptr<RelationRunner> runner =
        options_.relations ? options_.relations(device, options_.kernels)
                           : std::make_unique<KernelRelationRunner>(device, options_.kernels);
    const RelationResult result =
        check_relation(relation, spec, dense_inputs(c), *runner, c.packing);
    if (!result.holds()) fail(Failure::relation_broken, result.message, c.relation);
    return result.applies;
  }

  void find_undefined(const FuzzCase& c, const Problem& problem) const {
    if (!kernels_->checked) return;
    const UndefinedOperations found = find_undefined_operations(c.spec, problem, *kernels_->checked,
                                                                options_.max_checked_elements);
    std::vector<Finding> findings;
    for (const UndefinedOperation& operation : found.operations) {
      if (!operation.fatal && !operation.kept) continue;
      // Random snippets read buffers anywhere.
      if (operation.clamped && has_all_trees(c)) continue;
      const std::string place =
          fmt::format("{}\n   | {}", to_string(operation.place), operation.place.excerpt);
      const bool is_known = std::any_of(findings.begin(), findings.end(),
                                        [&](const Finding& known) { return known.key == place; });
      if (is_known) continue;
      findings.push_back(
          {.message = fmt::format("{}\n  --> {}", operation.message, place), .key = place});
    }
    if (!findings.empty()) throw Failed{Failure::undefined, std::move(findings)};
  }

  // How near to its bound the result is.
  double judge_call(const FuzzCase& c, const CaseInputs& inputs, const CaseParts& parts) {
    const Problem& problem = inputs.problem();
    const std::uint64_t before = inputs.fingerprint();
    const Written first(c);
    const std::optional<CaseGradients> gradients = gradients_of(c, problem);
    const KernelCall call = run_on(kernels_->attention, c, problem, first, gradients);
    check_tiles(c, problem, call, parts);

    const Activity activity("judges a result");
    Reference reference;
    if (problem.sequences) {
      const Shape& shape = problem.shape;
      reference.sizes =
          BoundSizes::zeros(1, shape.num_q_heads, shape.q_len, c.spec.value_head_dim());
    }
    reference.values = parts.whole([&](const CaseParts::Part& part, const DenseProblem& dense) {
      Reference of_part = reference_attention(dense, part.interpretations.in_double(), threads_);
      put_rows(std::move(of_part.sizes), part.piece, reference.sizes);
      return std::move(of_part.values);
    });
    const AttentionValues values = first.values();
    const Rule rule = rule_for(kernels_->attention, reference.sizes);
    const Verdict verdict = judge_by_samples(values, reference, parts, rule, threads_);
    if (!verdict.ok) fail(Failure::wrong_result, joined(verdict.reasons));
    if (problem.sequences) {
      const std::string wrong = judge_sequences_alone(values, reference, parts, rule, threads_);
      if (!wrong.empty()) fail(Failure::wrong_result, wrong);
    }
    double nearest = share_of(verdict);
    if (gradients) {
      nearest =
          std::max(nearest, judge_backward(kernels_->attention, problem, first, *gradients, ""));
    }
    check_repeatable(c, problem, values, gradients, parts);
    if (inputs.fingerprint() != before) {
      fail(Failure::input_changed, "an input, a buffer or the memory around one was written to");
    }
    if (kernels_->beside) {
      compare_with_cpu(c, problem, reference, parts, {values, reference.values, verdict, rule});
    }
    return nearest;
  }

  // None where the spec has none.
  static std::optional<CaseGradients> gradients_of(const FuzzCase& c, const Problem& problem) {
    std::optional<CaseGradients> gradients;
    if (!c.spec.gradients.empty()) gradients.emplace(c, problem);
    return gradients;
  }

  // How near to its bound the nearest gradient is.
  double judge_backward(const Attention& attention, const Problem& problem, const Written& written,
                        const CaseGradients& gradients, const std::string& where) const {
    GradientResults results = gradients.results();
    results.out = written.out_view();
    results.fast_math = uses_fast_math(attention.spec(), attention.device());
    std::vector<std::string> reasons;
    double nearest = 0;
    for (const auto& [name, verdict] :
         judge_gradients(attention.spec(), problem, results, options_.kernels, threads_)) {
      reasons.insert(reasons.end(), verdict.reasons.begin(), verdict.reasons.end());
      nearest = std::max({nearest, share(verdict.error_max, verdict.bound_max),
                          share(verdict.error_rms, verdict.bound_rms)});
    }
    if (!reasons.empty()) fail(Failure::wrong_gradient, where + joined(reasons));
    return nearest;
  }

  static KernelCall run_on(const Attention& attention, const FuzzCase& c, const Problem& problem,
                           const Written& written, const std::optional<CaseGradients>& gradients) {
    KernelCall call = run_kernels(
        attention, problem, written, c.packing.is_bounded, c.split,
        {.gradients = gradients ? &*gradients : nullptr, .deterministic = c.deterministic});
    if (call.changed) fail(Failure::input_changed, *call.changed);
    const char* const device = attention.device().kind() == Device::Kind::cpu ? "cpu" : "cuda";
    check_red_zones(written.damage(), device);
    if (gradients) check_red_zones(gradients->damage(), device);
    if (!problem.sequences) return call;
    std::string touched = written.touched_row(problem);
    if (touched.empty() && gradients) touched = gradients->touched_row(problem);
    if (!touched.empty()) fail(Failure::red_zone, touched);
    return call;
  }

  void check_tiles(const FuzzCase& c, const Problem& problem, const KernelCall& call,
                   const CaseParts& parts) const {
    const auto kept_row = [&](std::int64_t b, std::int64_t h, std::int64_t row,
                              unsigned char* keep) {
      const CaseParts::Part& part =
          parts.parts()[problem.sequences ? static_cast<std::size_t>(b) : 0];
      const unsigned char* kept = part.interpretations.kept_row(problem.sequences ? 0 : b, h, row);
      std::copy(kept, kept + part.piece.columns(), keep);
    };
    MaskVerdict verdict;
    if (call.map) verdict = check_tile_map(c.spec, problem, *call.map, kept_row, threads_);
    if (call.mask)
      verdict = check_block_mask(c.spec.block, c.shape, *call.mask, kept_row, threads_);
    if (verdict.ok) return;
    fail(Failure::mask_differs,
         fmt::format("the {} is wrong in {} of {}: {}", call.map ? "plan" : "block mask",
                     verdict.wrong_tiles, counted(verdict.tiles, "tile"), verdict.first_wrong));
  }

  // The second run has another rounding direction, which the library must neither follow nor
  // change.
  void check_repeatable(const FuzzCase& c, const Problem& problem, const AttentionValues& values,
                        const std::optional<CaseGradients>& gradients,
                        const CaseParts& parts) const {
    constexpr std::array kDirections = {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    const int direction = kDirections[c.seed % kDirections.size()];
    const Written second(c, Written::Order::other);
    const std::optional<CaseGradients> second_gradients = gradients_of(c, problem);
    std::fesetround(direction);
    KernelCall call;
    try {
      call = run_on(kernels_->attention, c, problem, second, second_gradients);
    } catch (...) {
      std::fesetround(FE_TONEAREST);
      throw;
    }
    const int left = std::fegetround();
    std::fesetround(FE_TONEAREST);
    if (left != direction) {
      fail(Failure::not_repeatable, "a call changed the rounding direction of its thread");
    }
    check_tiles(c, problem, call, parts);
    check_refuses_overlap(c, problem, second, call);
    const AttentionValues again = second.values();
    if (!same_bits(values.out, again.out) || !same_bits(values.lse, again.lse) ||
        !same_bits(values.max_scores, again.max_scores) ||
        !same_bits(values.weights, again.weights)) {
      fail(
          Failure::not_repeatable,
          "a second run of the same call, under another rounding direction and with out in another "
          "order of memory, gave other bits");
    }
    if (gradients) compare_gradients(c, *gradients, *second_gradients);
  }

  // On a GPU sums of dq and of buffers' gradients are promised the same bits where it is asked.
  void compare_gradients(const FuzzCase& c, const CaseGradients& first,
                         const CaseGradients& second) const {
    const bool all = c.deterministic || kernels_->attention.device().kind() == Device::Kind::cpu;
    for (const auto& [name, tensor] : first.written()) {
      if (!all && name != "dk" && name != "dv") continue;
      if (same_bits(tensor.view(), second.written().at(name).view())) continue;
      fail(Failure::not_repeatable,
           fmt::format("a second run of the same call gave other bits of {}", name));
    }
  }

  // Outputs that share bytes with each other or with an input are refused before anything runs.
  void check_refuses_overlap(const FuzzCase& c, const Problem& problem, const Written& written,
                             const KernelCall& call) const {
    ForwardTensors tensors{
        .q = problem.q, .k = problem.k, .v = problem.v, .out = written.out_view(), .lse = {}};
    if (written.lse) tensors.lse = written.lse->view();
    if (written.max_scores) tensors.max_scores = written.max_scores->view();
    if (written.weights) tensors.weights = written.weights->view();
    const int outer = tensors.out.rank - 1;
    const auto rows = std::find_if(tensors.out.shape.begin(), tensors.out.shape.begin() + outer,
                                   [](std::int64_t extent) { return extent > 1; });
    const auto dimension = static_cast<std::size_t>(rows - tensors.out.shape.begin());
    std::string what;
    if (c.number % 3 == 0 && dimension < static_cast<std::size_t>(outer)) {
      what = fmt::format("rows that overlap in dimension {}", dimension);
      tensors.out.strides[dimension] = c.spec.value_head_dim() - 1;
    } else if (c.number % 3 == 1 && tensors.lse) {
      what = "the memory of lse";
      tensors.lse->data = tensors.out.data;
    } else {
      what = "the memory of v";
      tensors.out.data = tensors.v.data;
    }
    try {
      forward_again(kernels_->attention, problem, tensors, call);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::tensor) return;
      throw;
    }
    fail(Failure::error, "a call was accepted whose out has " + what);
  }

  void compare_with_cpu(const FuzzCase& c, const Problem& problem, const Reference& reference,
                        const CaseParts& parts, const DeviceResult& there) const {
    const Written written(c);
    const std::optional<CaseGradients> gradients = gradients_of(c, problem);
    run_on(*kernels_->beside, c, problem, written, gradients);
    const AttentionValues values = written.values();
    const Rule rule = rule_for(*kernels_->beside, reference.sizes);
    const Verdict verdict = judge_by_samples(values, reference, parts, rule, threads_);
    if (!verdict.ok) fail(Failure::wrong_result, "on the CPU: " + joined(verdict.reasons));
    if (gradients) judge_backward(*kernels_->beside, problem, written, *gradients, "on the CPU: ");
    const Agreement agreement = compare(there, {values, reference.values, verdict, rule});
    if (!agreement.ok) fail(Failure::devices_disagree, joined(agreement.reasons));
  }

  std::int64_t compiled_ = 0;  // kernels, by the case at hand
  RunOptions options_;
  ThreadPool& threads_;
  std::optional<Kernels> kernels_;
};

CaseRunner::CaseRunner(RunOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(options))) {}
CaseRunner::CaseRunner(CaseRunner&&) noexcept = default;
CaseRunner::~CaseRunner() = default;

Outcome CaseRunner::run(const FuzzCase& fuzz_case) {
  return implementation_->run(fuzz_case);
}

}  // namespace tilewright::verify::fuzz
