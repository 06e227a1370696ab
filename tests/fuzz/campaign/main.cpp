// The fuzzing campaign of CI. Exit status 1 where a case fails, or where the campaign shows less
// than it must.
//
//     fuzz_campaign [--full] [--seed N] [--cases N] [--workers N]
//
// TILEWRIGHT_TEST_SEED is a seed, too; else it is a new one each time.
// Without --full (or TILEWRIGHT_TEST_FULL=1) it takes some seconds and shows what it can. What
// fails is written to fuzz-failures/ of the current folder, with the line that replays it. The
// cases of tests/fuzz/corpus/ run first.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "fuzz/campaign.hpp"
#include "fuzz/expression.hpp"
#include "fuzz/failure_files.hpp"
#include "fuzz/workers.hpp"
#include "runtime/api/thread_pool.hpp"
#include "tests/support/cpu_seconds.hpp"
#include "tests/support/full_run.hpp"
#include "tests/support/nvrtc.hpp"
#include "tests/support/test_seed.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify::fuzz;

// What the campaign of CI must show.
constexpr std::int64_t kLeastCases = 1000;
constexpr std::int64_t kLeastSnippets = 250;
constexpr std::int64_t kLeastCompiles = 300;
constexpr double kMostCpuSeconds =
    1200;  // of all workers: other work on the machine does not count

struct Settings {
  bool full = is_full_run();
  std::uint64_t seed = 0;
  std::int64_t cases = 0;
  int workers = ThreadPool::default_size();
  bool has_nvrtc = true;
};

Settings read_settings(int argc, char** argv) {
  Settings settings;
  settings.seed = test_seed();
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto number = [&] {
      if (i + 1 >= argc) throw Error(ErrorCode::usage, word + " needs a number");
      return std::stoull(argv[++i]);
    };
    if (word == "--full") {
      settings.full = true;
    } else if (word == "--seed") {
      settings.seed = number();
    } else if (word == "--cases") {
      settings.cases = static_cast<std::int64_t>(number());
    } else if (word == "--workers") {
      settings.workers = static_cast<int>(number());
    } else {
      throw Error(ErrorCode::usage, "there is no option " + word);
    }
  }
  if (settings.cases == 0) settings.cases = settings.full ? 1040 : 30;
  return settings;
}

// A kernel that does not end is given up, and the next case runs. Here and not among the unit
// tests: workers are forked, so nothing else may have run in this process.
bool endless_kernels_are_given_up() {
  FuzzCase fuzz_case;
  fuzz_case.spec = {.dtype = f32, .head_dim = 16};
  fuzz_case.shape = {.q_len = 5, .kv_len = 7};
  FuzzCase endless = fuzz_case;
  endless.spec.score_mod =
      "int i = 0; while (int one = i < 1) i = (i + one * q_len) % q_len; return score + i;";
  Workers workers({.run = {}, .count = 1, .time_limit = std::chrono::seconds(10)});
  workers.submit({endless, fuzz_case});
  std::vector<Failure> failures;
  while (workers.pending() > 0) {
    const auto finished = workers.wait(std::chrono::seconds(1));
    if (finished) failures.push_back(finished->outcome.failure);
  }
  if (failures == std::vector{Failure::time_out, Failure::none}) return true;
  fmt::print("FAILED an endless kernel was not given up, or the next case did not run\n");
  return false;
}

// A product that overflows, in a kernel that was compiled to trap it: the process ends before
// anything else could find it. Not so in another kernel, where the reference's interpreter refuses
// the tree.
bool undefined_behaviour_is_trapped() {
  FuzzCase fuzz_case;
  fuzz_case.spec = {.dtype = f32, .head_dim = 16};
  fuzz_case.shape = {.q_len = 5, .kv_len = 7};
  const Expression product =
      apply(Op::multiply, {integer(std::numeric_limits<std::int32_t>::max()), variable("q_idx")});
  Statement result;
  result.value = apply(Op::add, {variable("score", Type::floating), product});
  fuzz_case.score_mod = SnippetTree{.kind = SnippetKind::score_mod, .statements = {result}};
  print_snippets(fuzz_case);
  FuzzCase trapping = fuzz_case;
  trapping.sanitized = true;
  const RunOptions unchecked{.check_undefined_every = 0};
  const Failure trapped = run_isolated(trapping, unchecked).failure;
  const Failure usual = run_isolated(fuzz_case, unchecked).failure;
  if (trapped == Failure::crash && usual == Failure::error) return true;
  fmt::print("FAILED undefined behaviour of a kernel was not trapped: {}, without a trap {}\n",
             to_string(trapped), to_string(usual));
  return false;
}

void print_progress(const CampaignState& state) {
  static auto next = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  if (std::chrono::steady_clock::now() < next) return;
  next += std::chrono::seconds(15);
  fmt::print(
      "{:.0f} s: {} cases, {} compiled only, {} kernels, {} snippets, pairs {}/{} and {}/{}, "
      "{} failed\n",
      state.seconds, state.cases, state.compiles, state.kernels, state.snippets,
      state.pairs_covered, state.pairs_possible, state.compile_pairs_covered,
      state.compile_pairs_possible, state.failed);
  std::fflush(stdout);
}

void print_failure(const FailureGroup& group) {
  const FailureFiles files = write_failure("fuzz-failures", group.fuzz_case);
  fmt::print("FAILED {}: {}\n  {}\n  {}\n", to_string(group.failure()), describe(group.fuzz_case),
             group.outcome.message, files.replay);
  std::fflush(stdout);
}

// Shortfalls of the full campaign.
std::vector<std::string> shortfalls(const CampaignState& state, bool has_nvrtc) {
  std::vector<std::string> found;
  const auto require = [&](bool holds, std::string text) {
    if (!holds) found.push_back(std::move(text));
  };
  require(state.cases >= kLeastCases, fmt::format("only {} cases", state.cases));
  require(state.snippets >= kLeastSnippets, fmt::format("only {} snippets", state.snippets));
  if (has_nvrtc) {
    require(state.compiles >= kLeastCompiles, fmt::format("only {} compiles", state.compiles));
  }
  require(cpu_seconds() <= kMostCpuSeconds, fmt::format("it took {:.0f} s of CPU", cpu_seconds()));
  for (const auto& [relation, count] : state.relations) {
    require(count > 0, "no case checked the relation " + relation);
  }
  require(state.sanitized > 0, "no kernel was compiled to trap undefined behaviour");
  for (const std::string& pair : state.pairs_missing) found.push_back("no case shows " + pair);
  return found;
}

int run(const Settings& settings) {
  fmt::print("seed {}: {} cases, {} processes\n", settings.seed, settings.cases, settings.workers);
  std::fflush(stdout);
  const int wrong_before =
      (endless_kernels_are_given_up() ? 0 : 1) + (undefined_behaviour_is_trapped() ? 0 : 1);
  CampaignOptions options;
  options.seed = settings.seed;
  options.cases = settings.cases;
  options.workers = settings.workers;
  options.compiles_per_case = settings.has_nvrtc ? 0.3 : 0;
  options.progress = print_progress;
  options.found = print_failure;
  const CampaignState state = run_campaign(options);
  fmt::print(
      "seed {}: {} cases from {} distinct snippets, {} kernels for GPUs compiled only, {} kernels "
      "in all; pairs of features {}/{} and {}/{}; nearest to its bound {:.2f}; longest case {:.1f} "
      "s; {} failed; {:.0f} s, {:.0f} s of CPU\n",
      state.seed, state.cases, state.snippets, state.compiles, state.kernels, state.pairs_covered,
      state.pairs_possible, state.compile_pairs_covered, state.compile_pairs_possible,
      state.worst_share, state.longest_ms / 1000, state.failed, state.seconds, cpu_seconds());
  fmt::print("relations:");
  for (const auto& [relation, count] : state.relations) fmt::print(" {} {}", relation, count);
  fmt::print("; kernels for GPUs that spill: {} with chosen tactics, {} with forced ones",
             state.spills_chosen, state.spills_forced);
  fmt::print("; {} cases with kernels that trap undefined behaviour\n", state.sanitized);
  for (const FuzzCase& spilling : state.spilling) {
    fmt::print("spills: {}\n{}\n", describe(spilling), to_json(spilling));
  }
  fmt::print("replay: fuzz_campaign --seed {} --cases {}{}\n", settings.seed, settings.cases,
             settings.full ? " --full" : "");
  int wrong = wrong_before + static_cast<int>(state.failed);
  if (!settings.full) return wrong == 0 && state.cases == settings.cases ? 0 : 1;
  for (const std::string& text : shortfalls(state, settings.has_nvrtc)) {
    fmt::print("SHORT {}\n", text);
    ++wrong;
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Settings settings = read_settings(argc, argv);
    settings.has_nvrtc = !test::nvrtc_is_missing();
    return run(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
