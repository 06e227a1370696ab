#include "fuzz/campaign.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "fuzz/failure_files.hpp"
#include "fuzz/features.hpp"
#include "fuzz/relation.hpp"
#include "fuzz/workers.hpp"
#include "generator/snippet/snippet.hpp"

namespace tilewright::verify::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

bool ended_before_its_kernel(const Outcome& outcome) {
  return outcome.failure == Failure::undefined || outcome.failure == Failure::compile_error ||
         outcome.failure == Failure::error;
}

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options)
      : options_(options),
        maker_(options.source, options.seed),
        shown_(maker_.coverage().allowed()),
        shown_by_compiles_(maker_.compile_coverage().allowed()),
        workers_({.run = options.run,
                  .count = options.workers,
                  .time_limit = options.time_limit,
                  .late = options.late}) {
    state_.seed = options.seed;
    for (const Relation relation : all_relations()) {
      state_.relations[std::string(to_string(relation))] = 0;
    }
  }

  CampaignState run() {
    compile_first();
    start_ = Clock::now();
    while (true) {
      while (workers_.idle() > 0 && !is_enough()) submit_next();
      // What runs may never end, which its time limit will tell.
      if (is_over()) workers_.drop_waiting();
      if (is_stopped() || (workers_.pending() == 0 && is_enough())) break;
      const auto finished = workers_.wait(std::chrono::milliseconds(250));
      if (finished) add(*finished);
      report();
    }
    finish();
    return std::move(state_);
  }

 private:
  // What no case could be judged without: a compiler, and snippets that compile.
  void compile_first() {
    FuzzCase first{.spec = options_.source.user_spec.value_or(Spec{.head_dim = 64}),
                   .target = compile_target()};
    first.kernel = forward_kernel(first.spec, Target::parse(first.target));
    workers_.submit({first});
    std::optional<Workers::Finished> finished;
    while (!finished && !is_stopped()) finished = workers_.wait(std::chrono::milliseconds(250));
    if (finished && finished->outcome.error) throw Error(*finished->outcome.error);
  }

  std::string compile_target() const {
    const CaseSource& source = options_.source;
    if (source.device == "cpu") return "cpu";
    return source.gpu_target.empty() ? "sm_80" : source.gpu_target;
  }

  bool is_stopped() {
    if (options_.stop && options_.stop()) state_.stopped = true;
    return state_.stopped;
  }

  bool is_over() {
    return is_stopped() || (options_.time && Clock::now() - start_ >= *options_.time);
  }

  bool is_enough() { return is_over() || (options_.cases && submitted_ >= *options_.cases); }

  // By numbers of what was submitted, so that the cases do not depend on who is quick.
  void submit_next() {
    const double wanted = options_.compiles_per_case * static_cast<double>(submitted_);
    if (static_cast<double>(compiles_submitted_ + 1) <= wanted) {
      ++compiles_submitted_;
      return workers_.submit({maker_.next_compile()});
    }
    std::int64_t calls = options_.calls_of_spec;
    if (options_.cases) calls = std::min(calls, *options_.cases - submitted_);
    submitted_ += calls;
    workers_.submit(maker_.next_group(static_cast<int>(calls)));
  }

  void add(const Workers::Finished& finished) {
    const FuzzCase& fuzz_case = finished.fuzz_case;
    const Outcome& outcome = finished.outcome;
    if (is_lack_of_machine(outcome.error)) throw Error(*outcome.error);
    ++(is_run(fuzz_case) ? state_.cases : state_.compiles);
    (is_run(fuzz_case) ? shown_ : shown_by_compiles_).add(features_of(fuzz_case));
    state_.refused += is_run(fuzz_case) && ended_before_its_kernel(outcome) ? 1 : 0;
    state_.kernels += outcome.kernels_compiled;
    state_.gpu_kernels += is_run(fuzz_case) ? 0 : outcome.kernels_compiled;
    state_.longest_ms = std::max(state_.longest_ms, outcome.ms);
    if (is_run(fuzz_case)) add_snippets(fuzz_case.spec);
    if (outcome.share_of_bound > state_.worst_share) {
      state_.worst_share = outcome.share_of_bound;
      state_.worst_case = fuzz_case;
    }
    if (outcome.spills) add_spilling(fuzz_case);
    if (outcome.relation_ran) ++state_.relations[fuzz_case.relation];
    if (fuzz_case.sanitized) ++state_.sanitized;
    if (!outcome.ok()) add_failure(finished);
  }

  void add_snippets(const Spec& spec) {
    for (const SnippetKind kind : snippet_kinds()) {
      const std::string& text = snippet_text(spec, kind);
      if (!text.empty()) snippets_.insert(text);
    }
  }

  void add_spilling(const FuzzCase& fuzz_case) {
    constexpr std::size_t kShown = 8;
    ++(fuzz_case.spec.tactic ? state_.spills_forced : state_.spills_chosen);
    if (!fuzz_case.spec.tactic && state_.spilling.size() < kShown) {
      state_.spilling.push_back(fuzz_case);
    }
  }

  void add_failure(const Workers::Finished& finished) {
    ++state_.failed;
    for (Outcome& outcome : taken_apart(finished.outcome)) {
      const bool is_new = state_.failures.add(finished.fuzz_case, std::move(outcome));
      if (is_new && options_.found) options_.found(state_.failures.groups().back());
    }
  }

  void report() {
    state_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    state_.snippets = static_cast<std::int64_t>(snippets_.size());
    state_.pairs_covered = shown_.covered();
    state_.pairs_possible = shown_.possible();
    if (options_.compiles_per_case > 0) {
      state_.compile_pairs_covered = shown_by_compiles_.covered();
      state_.compile_pairs_possible = shown_by_compiles_.possible();
    }
    if (options_.progress) options_.progress(state_);
  }

  void finish() {
    report();
    std::vector<FeaturePair> missing = shown_.all_missing();
    if (options_.compiles_per_case > 0) {
      for (const FeaturePair& pair : shown_by_compiles_.all_missing()) {
        missing.push_back(pair);
      }
    }
    for (const FeaturePair& pair : missing) state_.pairs_missing.push_back(pair.describe());
  }

  const CampaignOptions& options_;
  CaseMaker maker_;
  // Of cases that are finished; the maker's own count those that were made.
  PairCoverage shown_;
  PairCoverage shown_by_compiles_;
  Workers workers_;
  Clock::time_point start_ = Clock::now();
  CampaignState state_;
  std::set<std::string> snippets_;
  std::int64_t submitted_ = 0;
  std::int64_t compiles_submitted_ = 0;
};

}  // namespace

CampaignState run_campaign(const CampaignOptions& options) {
  return Campaign(options).run();
}

}  // namespace tilewright::verify::fuzz
