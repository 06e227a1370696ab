#include "cli/bench/tuner.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/bench/measure.hpp"
#include "cli/call.hpp"
#include "generator/tactic/tactic_candidates.hpp"
#include "verify/check.hpp"
#include "verify/random_inputs.hpp"

namespace tilewright::cli {
namespace {

// Ratios are time of the chosen tactic / time of the other. Medians of calls in turns differ by
// about a per cent between runs of equal kernels.
constexpr double kHopeless = 0.8;    // in one call each
constexpr double kSlower = 0.97;     // in a short measurement
constexpr double kNotSlower = 0.99;  // in a long one
constexpr double kWorthRemembering = 1.01;
constexpr std::size_t kFinalists = 3;
constexpr double kShortShare = 0.1;  // of the budget, for candidates that are many

struct Candidate {
  TacticSpec tactic;
  std::vector<double> ratios = {};  // of the shapes so far
  bool is_out = false;

  double mean_ratio() const {
    double logarithms = 0;
    for (const double ratio : ratios) logarithms += std::log(ratio);
    return std::exp(logarithms / static_cast<double>(ratios.size()));
  }
};

// Lengths and heads that the double reference is through with at once; no length is a multiple of a
// tile.
Shape smaller(Shape shape) {
  constexpr std::int64_t kMostHeads = 2, kMostBatch = 2, kMostQ = 333, kMostKv = 523;
  const std::int64_t group = shape.num_q_heads / shape.num_kv_heads;
  shape.batch = std::min(shape.batch, kMostBatch);
  shape.num_kv_heads = std::min(shape.num_kv_heads, kMostHeads);
  shape.num_q_heads = shape.num_kv_heads * group;
  shape.q_len = std::min(shape.q_len, kMostQ);
  shape.kv_len = std::min(shape.kv_len, kMostKv);
  return shape;
}

class Tuner {
 public:
  Tuner(const Spec& spec, const TuningOptions& options)
      : options_(options),
        spec_(spec),
        target_(Attention(spec, attention_options()).target()),
        chosen_(choose_tactic(SpecFacts(without_tactic(spec)), target_)) {
    spec_.tactic = TacticSpec{std::string(chosen_.name()), chosen_.parameters()};
    for (TacticSpec& tactic : tactic_candidates(SpecFacts(without_tactic(spec)), target_)) {
      candidates_.push_back({.tactic = std::move(tactic)});
    }
  }

  Tuning run() {
    compile();
    Tuning tuning{.before = chosen_.describe(), .candidates = candidates_.size()};
    measure_all("trying", options_.timing.budget_ms * kShortShare, kSlower, 0.3, 0.7);
    keep_finalists();
    measure_all("comparing", options_.timing.budget_ms, kNotSlower, 0.7, 0.9);
    for (const Candidate& candidate : by_ratio()) {
      if (candidate.mean_ratio() < kWorthRemembering) break;
      if (!is_right(candidate.tactic)) {
        tuning.wrong.push_back(text_of(candidate.tactic));
        continue;
      }
      if (accept(candidate.tactic, tuning)) return tuning;
    }
    tuning.after = tuning.before;
    for (const Shape& shape : options_.shapes) {
      const double ms = time_forward(prepared(shape, options_.seed + 1), options_.timing).median_ms;
      tuning.shapes.push_back({shape, ms, ms});
    }
    return tuning;
  }

 private:
  static Spec without_tactic(Spec spec) {
    spec.tactic.reset();
    return spec;
  }

  AttentionOptions attention_options() const {
    return {.device = options_.device, .kernels = command_line_toolchain()};
  }

  void say(const std::string& what, double share) const {
    if (options_.progress) options_.progress(what, share);
  }

  std::string text_of(const TacticSpec& tactic) const {
    return choose_tactic(SpecFacts(with_tactic(spec_, tactic)), target_).describe();
  }

  PreparedCall prepared(const Shape& shape, std::uint64_t seed) const {
    return PreparedCall({spec_, shape}, {.device = options_.device, .seed = seed, .decode = false});
  }

  // All candidates, on all processors; those that do not compile are out.
  void compile() {
    std::atomic<std::size_t> next = 0, done = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < candidates_.size(); i = next++) {
        try {
          const Attention made(with_tactic(spec_, candidates_[i].tactic), attention_options());
        } catch (const Error&) {
          candidates_[i].is_out = true;
        }
        say(fmt::format("compiled {} of {} tactics", ++done, candidates_.size()),
            0.3 * static_cast<double>(done) / static_cast<double>(candidates_.size()));
      }
    };
    {
      std::vector<std::jthread> others;
      const std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
      for (std::size_t i = 1; i < std::min(threads, candidates_.size()); ++i) {
        others.emplace_back(work);
      }
      work();
    }
    std::erase_if(candidates_, [](const Candidate& one) { return one.is_out; });
  }

  // Adds a ratio for each shape; a candidate that is slower than `least` on one of them is out.
  void measure_all(const char* verb, double budget_ms, double least, double from, double to) {
    for (Candidate& candidate : candidates_) candidate.ratios.clear();
    const double of_shape = (to - from) / static_cast<double>(options_.shapes.size());
    for (std::size_t i = 0; i < options_.shapes.size() && !candidates_.empty(); ++i) {
      const PreparedCall chosen = prepared(options_.shapes[i], options_.seed);
      for (std::size_t j = 0; j < candidates_.size(); ++j) {
        const double part = static_cast<double>(j) / static_cast<double>(candidates_.size());
        say(fmt::format("{} {} tactics on {}", verb, candidates_.size(),
                        options_.shapes[i].describe()),
            from + of_shape * (static_cast<double>(i) + part));
        measure(candidates_[j], chosen, budget_ms, least);
      }
      std::erase_if(candidates_, [](const Candidate& one) { return one.is_out; });
    }
  }

  void measure(Candidate& candidate, const PreparedCall& chosen, double budget_ms,
               double least) const {
    const PreparedCall other(chosen, candidate.tactic);
    if (ratio_of_one_call(chosen, other) < kHopeless) {
      candidate.is_out = true;
      return;
    }
    const auto [before, after] = time_in_turns(chosen, other, {.budget_ms = budget_ms});
    candidate.ratios.push_back(before.median_ms / after.median_ms);
    candidate.is_out = candidate.ratios.back() < least;
  }

  static double ratio_of_one_call(const PreparedCall& chosen, const PreparedCall& other) {
    const auto ms_of = [](const PreparedCall& call) {
      call.forward();  // the first one loads code
      const Stopwatch watch;
      call.forward();
      return watch.ms();
    };
    return ms_of(chosen) / ms_of(other);
  }

  std::vector<Candidate> by_ratio() const {
    std::vector<Candidate> sorted = candidates_;
    std::ranges::sort(sorted, std::greater(), &Candidate::mean_ratio);
    return sorted;
  }

  void keep_finalists() {
    candidates_ = by_ratio();
    if (candidates_.size() > kFinalists) candidates_.resize(kFinalists);
  }

  bool is_right(const TacticSpec& tactic) const {
    say("checking " + text_of(tactic), 0.9);
    const Spec spec = with_tactic(spec_, tactic);
    const verify::Checker checker(spec, {.attention = attention_options()});
    return std::ranges::all_of(options_.shapes, [&](const Shape& shape) {
      const verify::Inputs inputs = verify::random_inputs(spec, smaller(shape), options_.seed);
      return checker.check(inputs.problem()).ok;
    });
  }

  // Measures once more, on other tensors: these are the times that are reported.
  bool accept(const TacticSpec& tactic, Tuning& tuning) const {
    Candidate again{.tactic = tactic};
    std::vector<TunedShape> shapes;
    for (const Shape& shape : options_.shapes) {
      say("measuring " + text_of(tactic), 0.95);
      const PreparedCall chosen = prepared(shape, options_.seed + 1);
      const PreparedCall other(chosen, tactic);
      const auto [before, after] = time_in_turns(chosen, other, options_.timing);
      shapes.push_back({shape, before.median_ms, after.median_ms});
      again.ratios.push_back(before.median_ms / after.median_ms);
      if (again.ratios.back() < kNotSlower) return false;
    }
    if (again.mean_ratio() < kWorthRemembering) return false;
    tuning.tactic = tactic;
    tuning.after = text_of(tactic);
    tuning.gain = again.mean_ratio();
    tuning.shapes = std::move(shapes);
    return true;
  }

  TuningOptions options_;
  Spec spec_;  // with the chosen tactic in full
  Target target_;
  Tactic chosen_;
  std::vector<Candidate> candidates_;
};

}  // namespace

Tuning tune(const Spec& spec, const TuningOptions& options) {
  return Tuner(spec, options).run();
}

}  // namespace tilewright::cli
