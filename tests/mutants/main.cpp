// The self-test of what finds wrong kernels: mutants of the templates, one change each, must not
// survive the calls of subjects.cpp. Each mutant is run by a child process with a time limit, as it
// may crash or never end.
//
//     mutants [--device cpu|cuda] [--compile] [--list] [--sample N] [--seed S] [--jobs N]
//             [--seconds N] [--only WORD] [--equivalents] [--racecheck PROGRAM] [--special]
//             [--subject WORD] [--sanitized]
//
// --device       which mutants are run, and where: those of CPU templates (default) or of CUDA's
// --compile      CUDA's mutants are compiled for sm_80 and sm_90a, and not run: needs no GPU
// --list         prints the mutants
// --sample N     only so many, by --seed; without one (nor TILEWRIGHT_TEST_SEED) others each run
// --seconds N    begins no mutant later than that, and runs them in another order each time
// --only WORD    only those whose description or ID contains it; may be repeated
// --equivalents  runs those in equivalent.json too: none may be killed
// --racecheck P  P is compute-sanitizer, which runs once more what survives (second_look.hpp)
// --special      the calls of special_calls.hpp alone
// --subject WORD subjects whose spec's name contains it alone, and no special calls; with --special
//                special calls whose spec's name contains it alone
// --sanitized    with --one, on a CPU: what kernels do that C++ leaves undefined ends the process
// --one ID       runs that one here; "original": the templates as they are, which must survive
// --lock FILE    with --one: its owner may run a call's kernels (gpu_alone.hpp)
// --calls N      what racecheck runs: at most N calls of a subject, each once
// --hopper-calls N  the same for Hopper's mutants
//
// TILEWRIGHT_TEST_FULL=1: three times as many as --sample says; all: ten times.
// Exit status 1 where the templates as they are do not survive, or fewer than 95 in 100 of the
// mutants that are not equivalent are killed; of a sample some more may survive (most_alive).

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/tactic/cuda_tactic.hpp"
#include "runtime/compile/process.hpp"
#include "runtime/compile/temporary_directory.hpp"
#include "runtime/cuda/targets.hpp"
#include "tests/mutants/emulated.hpp"
#include "tests/mutants/gpu_alone.hpp"
#include "tests/mutants/population.hpp"
#include "tests/mutants/second_look.hpp"
#include "tests/mutants/trial.hpp"
#include "tests/mutants/trial_report.hpp"
#include "tests/support/full_run.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/source_root.hpp"
#include "tests/support/test_seed.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::mutants;

struct Settings {
  std::string program;
  Device device = Device::cpu();
  bool compile = false;
  bool list = false;
  bool equivalents = false;
  bool special = false;
  bool sanitized = false;
  std::size_t sample = 0;  // 0: all
  unsigned seed = static_cast<unsigned>(test_seed());
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
  std::chrono::seconds begin_within{0};  // 0: no limit
  std::vector<std::string> only;
  std::string lock;
  std::string racecheck;      // compute-sanitizer
  std::string one;            // the id of the mutant that this process is to run
  std::string subject;        // a word in its spec's name; empty: all
  std::size_t calls = 0;      // of each subject; 0: all
  bool calls_hopper = false;  // with `calls`: those of Hopper's kernel in place of the others

  bool on_cpu() const { return device == Device::cpu() && !compile; }
};

struct Ended {
  Mutant mutant;
  Trial trial;
  std::string equivalent;  // the reason, where it is listed
};

struct Attempt {
  Trial trial;
  bool took_too_long = false;
};

Settings read_settings(int argc, char** argv) {
  Settings settings;
  settings.program = argv[0];
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&] {
      if (++i == argc) throw Error(ErrorCode::usage, name + " needs a value");
      return std::string(argv[i]);
    };
    if (name == "--device") {
      settings.device = Device::parse(value());
    } else if (name == "--compile") {
      settings.compile = true;
    } else if (name == "--list") {
      settings.list = true;
    } else if (name == "--equivalents") {
      settings.equivalents = true;
    } else if (name == "--special") {
      settings.special = true;
    } else if (name == "--sanitized") {
      settings.sanitized = true;
    } else if (name == "--subject") {
      settings.subject = value();
    } else if (name == "--sample") {
      settings.sample = std::stoul(value());
    } else if (name == "--seed") {
      settings.seed = static_cast<unsigned>(std::stoul(value()));
    } else if (name == "--jobs") {
      settings.jobs = static_cast<unsigned>(std::stoul(value()));
    } else if (name == "--seconds") {
      settings.begin_within = std::chrono::seconds(std::stol(value()));
    } else if (name == "--only") {
      settings.only.push_back(value());
    } else if (name == "--racecheck") {
      settings.racecheck = value();
    } else if (name == "--calls") {
      settings.calls = std::stoul(value());
    } else if (name == "--hopper-calls") {
      settings.calls = std::stoul(value());
      settings.calls_hopper = true;
    } else if (name == "--one") {
      settings.one = value();
    } else if (name == "--lock") {
      settings.lock = value();
    } else {
      throw Error(ErrorCode::usage, fmt::format("{} is not an option of mutants", name),
                  "the options stand at the top of tests/mutants/main.cpp");
    }
  }
  if (is_full_run()) settings.sample *= is_whole_run() ? 10 : 3;
  return settings;
}

bool is_wanted(const std::string& description, const std::vector<std::string>& words) {
  return words.empty() || std::any_of(words.begin(), words.end(), [&](const std::string& word) {
           return description.find(word) != std::string::npos;
         });
}

std::vector<Mutant> wanted(const Settings& settings, const Equivalents& equivalents) {
  std::vector<Mutant> mutants;
  for (Mutant& mutant : population()) {
    const bool fits = settings.list || runs_on_cpu(mutant.group) == settings.on_cpu();
    const bool listed = !equivalents.reason(mutant.mutation).empty();
    if (!fits || (listed && !settings.equivalents && !settings.list)) continue;
    if (!is_wanted(mutant.mutation.id() + " " + mutant.mutation.describe(), settings.only))
      continue;
    mutants.push_back(std::move(mutant));
  }
  const bool is_sample = settings.sample > 0 && settings.sample < mutants.size();
  if (is_sample || settings.begin_within.count() > 0) {
    std::shuffle(mutants.begin(), mutants.end(), std::mt19937(settings.seed));
  }
  if (is_sample) mutants.resize(settings.sample);
  return mutants;
}

Target target_of(Group group) {
  return Target::parse(group == Group::hopper ? "sm_90a" : "sm_80");
}

TrialOptions options_of(const Settings& settings) {
  // A call takes milliseconds, and its tensors as long to copy. Waits are not bounded (the tactic's
  // bounded_waits), as ptxas then serialises the products, and nothing races that races for users.
  constexpr unsigned kSecondsAlone = 8;
  TrialOptions options{.device = settings.device};
  if (settings.lock.empty()) return options;
  options.run_alone = [lock = settings.lock](const Trial& never_ends,
                                             const std::function<void()>& run) {
    run_with_gpu_alone(lock, kSecondsAlone, report_of(never_ends), run);
  };
  return options;
}

void keep_calls(std::size_t most, std::vector<Subject>& subjects) {
  for (Subject& subject : subjects) subject.calls.resize(std::min(subject.calls.size(), most));
}

// What racecheck runs, a hundred times as slow: some subjects. It takes what Hopper's
// kernel orders by barriers in shared memory for races, so none of them uses that.
void keep_few_without_hopper(std::vector<Subject>& subjects) {
  constexpr std::size_t kMostSubjects = 12;
  const Target hopper = Target::parse("sm_90a");
  std::erase_if(subjects, [&](const Subject& subject) {
    return choose_cuda_tactic(subject.spec, hopper, {.masked = !subject.spec.mask_mod.empty()})
               .hopper() != nullptr;
  });
  subjects.resize(std::min(subjects.size(), kMostSubjects));
}

// What racecheck runs of Hopper's kernel. Only the lists of masks and their tiles are written and
// read by threads; the rest is the copy engine's, which racecheck does not follow.
void keep_few_of_hopper(std::vector<Subject>& subjects) {
  constexpr std::array kNames = {"hopper_gaps", "hopper_holes", "late_rows"};
  std::erase_if(subjects, [&](const Subject& subject) {
    return std::find(kNames.begin(), kNames.end(), subject.spec.name) == kNames.end();
  });
}

void keep_named(const std::string& word, std::vector<Subject>& subjects) {
  std::erase_if(subjects, [&](const Subject& subject) {
    return subject.spec.name.find(word) == std::string::npos;
  });
}

// Of each subject: sanitized kernels take several times as long to compile and to run.
constexpr std::size_t kSanitizedCalls = 2;

Trial try_here(const Settings& settings, const Mutant& mutant) {
  std::vector<Subject> tried = subjects(settings.on_cpu() ? Device::Kind::cpu : Device::Kind::cuda);
  if (settings.compile) return compile_mutant(mutant.mutation, tried, target_of(mutant.group));
  TrialOptions options = options_of(settings);
  keep_named(settings.subject, tried);
  if (settings.special) tried.clear();
  options.runs_same_kernels = settings.one == "original";
  options.makes_special_calls = settings.special || settings.subject.empty();
  if (settings.special) options.special_word = settings.subject;
  if (settings.calls == 0 && !settings.sanitized) {
    return try_mutant(mutant.mutation, tried, options);
  }
  options.sanitized = settings.sanitized;
  options.repeats = 1;
  options.makes_special_calls = false;
  if (settings.sanitized) {
    keep_calls(kSanitizedCalls, tried);
  } else {
    settings.calls_hopper ? keep_few_of_hopper(tried) : keep_few_without_hopper(tried);
    keep_calls(settings.calls, tried);
  }
  return try_mutant(mutant.mutation, tried, options);
}

Mutant find_mutant(const Settings& settings) {
  if (settings.one == "original") {
    return {settings.on_cpu() ? Group::cpu : Group::portable, comment_alone(settings.on_cpu())};
  }
  for (Mutant& mutant : population()) {
    if (mutant.mutation.id() == settings.one) return std::move(mutant);
  }
  throw Error(ErrorCode::usage, settings.one + " is no mutant's id", "--list prints them");
}

int run_one(const Settings& settings) {
  fmt::print("{}", report_of(try_here(settings, find_mutant(settings))));
  return 0;
}

// In a child process. A crash and a time-out kill the mutant.
Attempt try_apart(const Settings& settings, const std::string& id) {
  std::vector<std::string> arguments = {settings.program, "--one", id, "--device",
                                        settings.device.name()};
  if (settings.compile) arguments.emplace_back("--compile");
  if (settings.special) arguments.emplace_back("--special");
  if (!settings.subject.empty()) arguments.insert(arguments.end(), {"--subject", settings.subject});
  if (!settings.lock.empty()) arguments.insert(arguments.end(), {"--lock", settings.lock});
  ProcessOptions options;
  options.timeout = std::chrono::minutes(10);
  // Reference results are computed by threads, too many of which would only wait for one another.
  const unsigned threads = std::max(1U, std::thread::hardware_concurrency() / settings.jobs);
  options.environment = {{"TILEWRIGHT_THREADS", std::to_string(threads)}};
  const ProcessResult result = run_process(arguments, options);
  if (result.timed_out || result.signal) {
    return {{Fate::killed, 0, result.describe_end()}, result.timed_out || result.signal == SIGALRM};
  }
  if (!result.succeeded()) throw Error(ErrorCode::internal, result.output + result.errors);
  return {read_trial(result.output)};
}

// Tries mutants and collects what became of them.
class Campaign {
 public:
  Campaign(const Settings& settings, const Equivalents& equivalents)
      : settings_(settings),
        equivalents_(equivalents),
        second_look_(settings.program, settings.device.name(), settings.racecheck) {}

  // On a GPU a kernel that never ends slows all others down. So a mutant that took too long with
  // others is tried once more alone, and only that counts.
  std::vector<Ended> run(const std::vector<Mutant>& mutants) {
    run_side_by_side(mutants);
    for (const Mutant& mutant : slow_) {
      if (is_late()) {
        report(mutant,
               {Fate::not_reached, 0, "took too long beside others, no time to try it alone"});
      } else {
        report(mutant, attempt(mutant).trial);
      }
    }
    return ended_;
  }

 private:
  bool is_late() const {
    return settings_.begin_within.count() > 0 &&
           std::chrono::steady_clock::now() - start_ > settings_.begin_within;
  }

  void run_side_by_side(const std::vector<Mutant>& mutants) {
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < mutants.size() && !is_late(); i = next++) {
        const Attempt attempted = attempt(mutants[i]);
        if (attempted.took_too_long && settings_.device != Device::cpu()) {
          const std::lock_guard lock(mutex_);
          slow_.push_back(mutants[i]);
        } else {
          report(mutants[i], attempted.trial);
        }
      }
    };
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < settings_.jobs; ++i) threads.emplace_back(work);
  }

  Attempt attempt(const Mutant& mutant) {
    try {
      Attempt attempted = try_apart(settings_, mutant.mutation.id());
      if (attempted.trial.fate == Fate::survived && !settings_.compile) {
        const std::string found = second_look_.at(mutant);
        if (!found.empty()) attempted.trial = {Fate::killed, attempted.trial.calls, found};
      }
      return attempted;
    } catch (const std::exception& error) {
      return {{Fate::not_reached, 0, error.what()}};
    }
  }

  void report(const Mutant& mutant, const Trial& trial) {
    const std::lock_guard lock(mutex_);
    ended_.push_back({mutant, trial, equivalents_.reason(mutant.mutation)});
    const bool compiles = settings_.compile && trial.fate == Fate::survived;
    fmt::print("{:<17} {:>3} calls  {}\n", compiles ? "compiles" : to_string(trial.fate),
               trial.calls, mutant.mutation.describe());
    if (!trial.detail.empty()) fmt::print("                             {}\n", trial.detail);
    std::fflush(stdout);
  }

  const Settings& settings_;
  const Equivalents& equivalents_;
  SecondLook second_look_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::vector<Ended> ended_;
  std::vector<Mutant> slow_;
};

// As many of a sample may be alive as one in a hundred samples would exceed if 95 of 100 mutants of
// the population were killed: the least k for which P(Binomial(sample, 0.05) > k) < 0.01.
int most_alive(int sample) {
  constexpr double kAlive = 0.05, kMissed = 0.01;
  double exactly = std::pow(1 - kAlive, sample);  // P(k)
  double at_most = exactly;
  int k = 0;
  while (1 - at_most >= kMissed) {
    exactly *= (sample - k) * kAlive / ((k + 1) * (1 - kAlive));
    at_most += exactly;
    ++k;
  }
  return k;
}

// 0 where enough were killed.
int judge_killing(const std::vector<Ended>& ended, bool is_sample) {
  std::map<Group, std::map<Fate, int>> counts;
  int killed = 0, alive = 0, wrongly_listed = 0;
  for (const Ended& one : ended) {
    const bool is_alive = one.trial.fate == Fate::survived || one.trial.fate == Fate::not_reached;
    if (!one.equivalent.empty()) {
      wrongly_listed += is_alive || one.trial.fate == Fate::same_kernels ? 0 : 1;
      continue;
    }
    ++counts[one.mutant.group][one.trial.fate];
    killed += one.trial.fate == Fate::killed ? 1 : 0;
    alive += is_alive ? 1 : 0;
  }
  fmt::print("\n{:<10}{:>9}{:>18}{:>14}{:>10}{:>13}\n", "", "killed", "does not compile",
             "same kernels", "survived", "not reached");
  for (auto& [group, of_group] : counts) {
    fmt::print("{:<10}{:>9}{:>18}{:>14}{:>10}{:>13}\n", to_string(group), of_group[Fate::killed],
               of_group[Fate::does_not_compile], of_group[Fate::same_kernels],
               of_group[Fate::survived], of_group[Fate::not_reached]);
  }
  const double rate = killed + alive == 0 ? 0 : 100.0 * killed / (killed + alive);
  fmt::print("kill rate: {} of {} that compile, {:.1f} %\n", killed, killed + alive, rate);
  if (wrongly_listed > 0) {
    fmt::print("{} are listed as equivalent, and were killed\n", wrongly_listed);
  }
  const int may_live = most_alive(killed + alive);
  const bool enough = rate >= 95 || (is_sample && killed > 0 && alive <= may_live);
  return enough && wrongly_listed == 0 ? 0 : 1;
}

// 0 where all of them change a kernel, and nearly all compile.
int judge_compiling(const std::vector<Ended>& ended) {
  std::map<Fate, int> counts;
  for (const Ended& one : ended) ++counts[one.trial.fate];
  fmt::print("\n{} compile, {} do not, {} change no kernel\n", counts[Fate::survived],
             counts[Fate::does_not_compile], counts[Fate::not_reached]);
  return counts[Fate::not_reached] == 0 && counts[Fate::survived] > 0 ? 0 : 1;
}

int run(Settings settings) {
  const Equivalents equivalents(
      source_root(TILEWRIGHT_SOURCE_DIR) / "tests/mutants/equivalent.json", all_mutants());
  const std::vector<Mutant> mutants = wanted(settings, equivalents);
  if (settings.list) {
    for (const Mutant& mutant : mutants) {
      fmt::print("{:<9}{}\n", to_string(mutant.group), mutant.mutation.describe());
    }
    fmt::print("{} mutants of {} that the operators make\n", mutants.size(), all_mutants().size());
    return 0;
  }
  if (settings.sample > 0 || settings.begin_within.count() > 0) {
    fmt::print("--seed {}\n", settings.seed);
  }
  // Each has the more threads for its references.
  const std::size_t most_jobs = std::max<std::size_t>(1, mutants.size());
  settings.jobs = static_cast<unsigned>(std::min<std::size_t>(settings.jobs, most_jobs));
  const TemporaryDirectory folder("mutants");
  const bool shares_gpu = !settings.on_cpu() && !is_emulated();
  if (shares_gpu) settings.lock = (folder.path() / "gpu.lock").string();
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  if (!settings.compile) {
    fmt::print("first the calls with the templates as they are\n");
    std::fflush(stdout);
    const Trial original = try_apart(settings, "original").trial;
    if (original.fate != Fate::survived) {
      fmt::print("the templates as they are do not survive: {}\n", original.detail);
      return 1;
    }
    fmt::print("{} calls in {:.0f} s\n", original.calls, seconds());
    std::fflush(stdout);
  }
  const std::vector<Ended> ended = Campaign(settings, equivalents).run(mutants);
  const int status =
      settings.compile ? judge_compiling(ended) : judge_killing(ended, settings.sample > 0);
  fmt::print("{} of {} mutants in {:.0f} s, {} listed as equivalent\n", ended.size(),
             mutants.size(), seconds(), equivalents.size());
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Settings settings = read_settings(argc, argv);
    if (settings.device != Device::cpu() && !cuda::why_not_available().empty()) {
      test::say_skipped("no GPU: " + cuda::why_not_available());
      return test::kSkipped;
    }
    return settings.one.empty() ? run(settings) : run_one(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
