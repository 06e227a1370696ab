#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "cli/arguments.hpp"
#include "cli/buffer_extents.hpp"
#include "cli/files.hpp"
#include "cli/fuzz_machine.hpp"
#include "cli/fuzz_progress.hpp"
#include "cli/inputs.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "fuzz/campaign.hpp"
#include "fuzz/failure_files.hpp"
#include "fuzz/failure_groups.hpp"
#include "fuzz/gradient_choice.hpp"
#include "fuzz/shrink.hpp"
#include "fuzz/workers.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "verify/random_inputs.hpp"

namespace tilewright::cli {
namespace {

namespace fuzz = verify::fuzz;

// Of groups of failures, and seconds for each.
constexpr std::size_t kMostShrunk = 5;
constexpr double kShrinkSeconds = 30;

// What a reader of JSON can hold exactly.
std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) >> 11;
}

Json failure_json(const fuzz::FailureGroup& group, const fuzz::FailureFiles& files) {
  return {{"failure", fuzz::to_string(group.failure())},
          {"group", group.name},
          {"count", group.count},
          {"message", group.outcome.message},
          {"case", files.fuzz_case.string()},
          {"replay", files.replay}};
}

// Each line as part of a list's item.
std::string as_item(std::string text) {
  for (std::size_t i = text.find('\n'); i != std::string::npos; i = text.find('\n', i + 1)) {
    text.insert(i + 1, "        ");
  }
  return "        " + text;
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return fmt::format(
      "{:.1f} %",
      whole == 0 ? 100.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

// "12 calls of kernels from 1 snippet ran on cpu in 3 s". Calls that were refused did not run.
std::string calls_text(const fuzz::CampaignState& state, const std::string& device) {
  std::string text = fmt::format(
      "Seed {}: {} of kernels from {} ran on {} in {:.0f} s{}", state.seed,
      counted(state.cases - state.refused, "call"),
      state.snippets == 1 ? "1 snippet" : fmt::format("{} distinct snippets", state.snippets),
      device, state.seconds, state.stopped ? " until they were stopped" : "");
  if (state.refused > 0) {
    text +=
        fmt::format("; {} more of {} {} refused before {} kernel ran", state.refused, state.cases,
                    was_or_were(state.refused), state.refused == 1 ? "its" : "their");
  }
  text +=
      fmt::format("; {} {} compiled", counted(state.kernels, "kernel"), was_or_were(state.kernels));
  if (state.compiles > 0) {
    text += fmt::format(", {} to run and {} for GPUs only", state.kernels - state.gpu_kernels,
                        state.gpu_kernels);
  }
  if (state.compiles > state.gpu_kernels) {
    text += fmt::format(" (of {} that were asked for, the others were there or did not compile)",
                        state.compiles);
  }
  return text;
}

std::string verdict_line(const fuzz::CampaignState& state) {
  if (state.says_nothing()) {
    return "nothing was judged: no call ended in time, so this says nothing; give it more time by "
           "--seconds\n";
  }
  if (state.ok()) return state.cases > 0 ? "ok: nothing failed\n" : "ok: nothing was judged\n";
  const std::size_t ways = state.failures.groups().size();
  return fmt::format("FAILED: {} of {}, {}\n", state.failed,
                     counted(state.cases + state.compiles, "case"),
                     ways > 1           ? fmt::format("in {} different ways", ways)
                     : state.failed > 1 ? "all alike"
                                        : "in one way");
}

std::string verdict_text(const fuzz::CampaignState& state, const std::string& device) {
  std::string text = verdict_line(state) + calls_text(state, device);
  text += fmt::format(". {} of {} pairs of features were shown",
                      percent(state.pairs_covered, state.pairs_possible), state.pairs_possible);
  if (state.compile_pairs_possible > 0) {
    text += fmt::format(" (compiled only: {} of {})",
                        percent(state.compile_pairs_covered, state.compile_pairs_possible),
                        state.compile_pairs_possible);
  }
  if (state.says_nothing()) return text + ".\n";
  std::int64_t relations = 0;
  for (const auto& [name, count] : state.relations) relations += count;
  text += fmt::format("; relations between calls were checked {}", counted(relations, "time"));
  if (state.cases == state.refused) return text + "; no result was judged.\n";
  return text + fmt::format("; the result that came nearest to its bound reached {:.2f} of it.\n",
                            state.worst_share);
}

bool is_self_attention(const fuzz::FuzzCase& c) {
  if (!c.spec.is_packed()) return c.shape.q_len == c.shape.kv_len;
  const auto& sequences = c.packing.sequences;
  return std::all_of(sequences.begin(), sequences.end(), [](const fuzz::FuzzSequence& sequence) {
    return sequence.q_len == sequence.kv_len;
  });
}

class FuzzVerb : public Verb {
 public:
  FuzzVerb()
      : Verb("fuzz", "generate cases, run them, and judge each result by the reference",
             "tilewright fuzz --spec my.json --seconds 60") {}

  void declare(CLI::App& app) override {
    auto* spec = app.add_option(
        "--spec", spec_,
        "keep this spec's snippets and vary all the rest; without it snippets are made");
    add_buffer_option(app, buffers_)->needs(spec);
    auto* seconds = add_whole(app, "--seconds", seconds_, {1, 1'000'000}, "how long (default 60)");
    add_whole(app, "--cases", cases_, {1, 100'000'000}, "how many calls instead")
        ->excludes(seconds);
    add_whole(app, "--compiles", compiles_, {0, 10'000},
              "kernels for GPUs to compile, without a GPU, for each 100 calls (default 25 "
              "where NVRTC is found)");
    add_whole(app, "--seed", seed_, kAnySeed, "makes the same cases again (default: a new one)");
    app.add_option("--device", device_, "auto, cpu or cuda (default auto)");
    app.add_flag("--no-offsets", no_offsets_,
                 "q_idx and kv_idx start at 0: for snippets that index buffers by them");
    app.add_flag("--self-attention", self_attention_,
                 "as many keys as queries, and --no-offsets: for snippets that index buffers of "
                 "kv_len elements by q_idx");
    app.add_flag("--gradients", gradients_,
                 "every case runs backward too, and its gradients are judged (default: one in "
                 "five, and with --spec those that the spec names)");
    auto* bounded = app.add_flag("--bounded-waits", bounded_waits_,
                                 "Hopper's kernels report a wait without end in place of hanging, "
                                 "and are slower");
    add_whole(app, "--workers", workers_, {1, 1024}, "processes (default: one for each core)");
    app.add_option("--out", out_, "folder for cases that fail (default fuzz-failures)");
    auto* replay = app.add_option("--replay", replay_, "run this case, which an earlier run wrote");
    for (CLI::Option* option : app.get_options()) {
      if (option != replay && option != bounded && option != app.get_help_ptr())
        replay->excludes(option);
    }
    add_json_flag(app, json_);
  }

  ExitStatus execute() override { return replay_.empty() ? run_campaign() : replay(); }

 private:
  ExitStatus run_campaign() {
    require_folder(out_, "--out");
    fuzz::CampaignOptions options;
    if (!spec_.empty()) options.source.user_spec = spec_from_file(spec_);
    if (options.source.user_spec) require_gradients_of(*options.source.user_spec);
    const FuzzMachine machine = fuzz_machine(device_);
    require_nvrtc(machine);
    if (options.source.user_spec) {
      options.source.null_extents = parse_buffer_extents(*options.source.user_spec, buffers_);
    }
    options.source.device = machine.device;
    options.source.gpu_target = machine.gpu_target;
    options.source.offsets = !no_offsets_ && !self_attention_;
    options.source.self_attention = self_attention_;
    options.source.gradients = gradients_;
    options.seed = seed_ ? *seed_ : random_seed();
    if (cases_ > 0) options.cases = cases_;
    if (cases_ == 0) options.time = std::chrono::seconds(seconds_);
    options.time_limit = case_limit();
    require_waits(machine.gpu_target);
    options.run.bounded_waits = bounded_target(machine);
    options.workers = workers_ > 0 ? workers_ : ThreadPool::default_size();
    options.compiles_per_case =
        static_cast<double>(compiles_.value_or(machine.has_nvrtc ? 25 : 0)) / 100;

    fuzz::FailureFolder folder(out_);
    FuzzProgress progress(json_);
    progress.line(fmt::format("seed {}, on {}, {}", options.seed, machine.device,
                              counted(options.workers, "process", "processes")));
    if (const auto dropped = fuzz::dropped_for_gradients(options.source); !dropped.empty()) {
      progress.line(
          fmt::format("each case has gradients, so none has {}", fmt::join(dropped, ", ")));
    }
    options.found = [&](const fuzz::FailureGroup& group) {
      progress.line(fmt::format("FAILED {}: {}\n  {}", fuzz::to_string(group.failure()),
                                fuzz::describe(group.fuzz_case), group.outcome.message));
      try {
        progress.line("  " + folder.write(group.fuzz_case).replay);
      } catch (const Error& error) {
        progress.line(error.what());  // the end tries again
      }
    };
    options.progress = [&](const fuzz::CampaignState& state) { progress.update(state); };
    options.late = [&](const std::string& report) { progress.line(report); };
    options.stop = interrupted;
    stop_on_interrupt();
    fuzz::CampaignState state = fuzz::run_campaign(options);
    progress.end();
    state.failures = shrunk_failures(state.failures, progress);
    std::optional<Error> unwritten;
    print_result(state, write_failures(state.failures, folder, unwritten), machine.device);
    advise(state);
    if (unwritten) throw Error(*unwritten);
    return state.ok() && !state.says_nothing() ? kDone : kNegativeVerdict;
  }

  // Without it each kernel that is compiled only would be a failure of the spec.
  void require_nvrtc(const FuzzMachine& machine) const {
    if (machine.has_nvrtc || compiles_.value_or(0) == 0) return;
    try {
      cuda::Nvrtc::get();
    } catch (const Error& error) {
      Error::Details details = fuzz::details_of(error);
      details.hint += "; or leave --compiles out, and no kernel for GPUs is compiled";
      throw Error(std::move(details));
    }
  }

  // gpu_target: empty on a CPU
  void require_waits(const std::string& gpu_target) const {
    if (!bounded_waits_ || gpu_target == "sm_90a") return;
    throw Error(ErrorCode::usage,
                fmt::format("--bounded-waits is of Hopper's kernels, and cases run on {}",
                            gpu_target.empty() ? "the CPU" : gpu_target),
                "leave --bounded-waits out");
  }

  std::optional<Target> bounded_target(const FuzzMachine& machine) const {
    if (!bounded_waits_ || machine.gpu_target.empty()) return std::nullopt;
    return Target::parse(machine.gpu_target);
  }

  // What never ends must show in the time that there is.
  std::chrono::seconds case_limit() const {
    constexpr std::int64_t kLeast = 30, kMost = 120;
    return std::chrono::seconds(cases_ > 0 ? kMost : std::clamp(seconds_ / 4, kLeast, kMost));
  }

  // An index that leaves its buffer only because of how the call was made is a mistake of the call.
  void advise(const fuzz::CampaignState& state) const {
    const auto& groups = state.failures.groups();
    const auto some_group_is = [&](std::string_view words) {
      return std::any_of(groups.begin(), groups.end(), [&](const fuzz::FailureGroup& group) {
        return group.failure() == fuzz::Failure::undefined &&
               group.outcome.message.find(words) != std::string::npos;
      });
    };
    if (json_ || spec_.empty()) return;
    if (some_group_is("divided by")) {
      print("A divisor that may be 0, or -1, needs a guard in the snippet: d == 0 ? 0 : x / d.\n");
    }
    if (some_group_is("index ")) advise_on_null_extents(state);
    if (self_attention_ || !some_group_is("index ")) return;
    print(fmt::format(
        "If the variant is never called like that: {}--self-attention keeps kv_len at q_len "
        "and positions from 0.\n",
        no_offsets_ ? "" : "--no-offsets keeps positions from 0, "));
    const bool has_free_scalar =
        std::any_of(groups.begin(), groups.end(), [](const fuzz::FailureGroup& group) {
          const auto& scalars = group.fuzz_case.spec.scalars;
          return std::any_of(scalars.begin(), scalars.end(), [](const auto& scalar) {
            return scalar.second.dtype == DType::i32 && !scalar.second.default_value;
          });
        });
    if (!has_free_scalar) return;
    print(
        "A whole scalar without a default may be 0 or less: give one a default to keep its value "
        "at it.\n");
  }

  // Of buffers that --buffer does not name: they are as long in every call.
  void advise_on_null_extents(const fuzz::CampaignState& state) const {
    std::set<std::string> names;
    bool is_packed = false;
    for (const fuzz::FailureGroup& group : state.failures.groups()) {
      const fuzz::FuzzCase& one = group.fuzz_case;
      is_packed = is_packed || one.spec.is_packed();
      for (const auto& [name, buffer] : one.spec.buffers) {
        const bool is_read_outside = group.outcome.message.find(fmt::format(
                                         "of buffer \"{}\" is outside", name)) != std::string::npos;
        if (is_read_outside && verify::count_nulls(buffer) > 0 &&
            !one.null_extents.contains(name)) {
          names.insert(name);
        }
      }
    }
    for (const std::string& name : names) {
      print(
          fmt::format("Null dimensions of buffer \"{}\" have 64 elements in every call: --buffer "
                      "{}=N gives them N, and a name in place of null, such as \"{}\", follows "
                      "each call.\n",
                      name, name, is_packed ? "total_kv" : "kv_len"));
    }
  }

  // What is the same when it is minimal is one group.
  fuzz::FailureGroups shrunk_failures(const fuzz::FailureGroups& found,
                                      FuzzProgress& progress) const {
    fuzz::FailureGroups minimal(fuzz::FailureGroups::Of::minimal_cases);
    const std::size_t count = std::min<std::size_t>(found.groups().size(), kMostShrunk);
    for (std::size_t i = 0; i < found.groups().size(); ++i) {
      const fuzz::FailureGroup& group = found.groups()[i];
      // Each try of what takes too long would take as long.
      const bool is_shrunk =
          i < count && !interrupted() && group.failure() != fuzz::Failure::time_out;
      if (!is_shrunk) {
        minimal.add(group.fuzz_case, group.outcome, group.count);
        continue;
      }
      progress.line(fmt::format("making case {} of {} smaller", i + 1, count));
      fuzz::Shrunk shrunk = shrunk_failure(group);
      minimal.add(std::move(shrunk.smallest), std::move(shrunk.outcome), group.count);
    }
    return minimal;
  }

  fuzz::Shrunk shrunk_failure(const fuzz::FailureGroup& group) const {
    const bool checks = group.failure() == fuzz::Failure::undefined;
    fuzz::Workers worker({.run = {.check_undefined_every = checks ? 1 : 0},
                          .count = 1,
                          .time_limit = std::chrono::seconds(60)});
    const auto run = [this, &worker](const fuzz::FuzzCase& fuzz_case) -> fuzz::Outcome {
      if (self_attention_ && !is_self_attention(fuzz_case)) return {};  // not what was asked about
      worker.submit({fuzz_case});
      std::optional<fuzz::Workers::Finished> finished;
      while (!finished && !interrupted()) finished = worker.wait(std::chrono::milliseconds(250));
      return finished ? finished->outcome : fuzz::Outcome{};
    };
    return fuzz::shrink(group.fuzz_case, group.outcome, run,
                        {.max_seconds = kShrinkSeconds, .stop = interrupted});
  }

  // Of the cases that are left, in place of what was written when they were found.
  static std::vector<fuzz::FailureFiles> write_failures(const fuzz::FailureGroups& failures,
                                                        fuzz::FailureFolder& folder,
                                                        std::optional<Error>& unwritten) {
    std::vector<fuzz::FailureFiles> files(failures.groups().size());
    folder.start_over();
    try {
      for (std::size_t i = 0; i < files.size(); ++i) {
        files[i] = folder.write(failures.groups()[i].fuzz_case);
      }
      folder.remove_replaced();
    } catch (const Error& error) {
      unwritten = error;
    }
    return files;
  }

  // files: one for each group of failures
  void print_result(const fuzz::CampaignState& state, const std::vector<fuzz::FailureFiles>& files,
                    const std::string& device) const {
    const std::vector<fuzz::FailureGroup>& groups = state.failures.groups();
    if (!json_) {
      std::string text = verdict_text(state, device);
      for (std::size_t i = 0; i < groups.size(); ++i) {
        text +=
            fmt::format("{:>5} x {}: {}\n{}\n        {}\n", groups[i].count,
                        fuzz::to_string(groups[i].failure()), fuzz::describe(groups[i].fuzz_case),
                        as_item(groups[i].outcome.message), files[i].replay);
      }
      return print(text);
    }
    Json failures = Json::array();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      failures.push_back(failure_json(groups[i], files[i]));
    }
    Json spilling = Json::array();
    for (const fuzz::FuzzCase& fuzz_case : state.spilling) {
      spilling.push_back(Json::parse(fuzz::to_json(fuzz_case)));
    }
    print_json(
        {{"seed", state.seed},
         {"cases", state.cases},
         {"kernels", state.kernels},
         {"failures", failures},
         {"device", device},
         {"compiled_only", state.compiles},
         {"spilling",
          {{"chosen", state.spills_chosen}, {"forced", state.spills_forced}, {"cases", spilling}}},
         {"snippets", state.snippets},
         {"failed", state.failed},
         {"relations", state.relations},
         {"sanitized", state.sanitized},
         {"pairs", {{"covered", state.pairs_covered}, {"possible", state.pairs_possible}}},
         {"compile_pairs",
          {{"covered", state.compile_pairs_covered}, {"possible", state.compile_pairs_possible}}},
         {"pairs_missing", state.pairs_missing},
         {"worst_share_of_bound", state.worst_share},
         {"seconds", state.seconds},
         {"stopped", state.stopped}});
  }

  // Before anything runs: no case could have them.
  void require_gradients_of(const Spec& spec) const {
    if (!gradients_ && spec.gradients.empty()) return;
    try {
      fuzz::require_possible_gradients(spec);
    } catch (const Error& error) {
      const char* const without = spec.gradients.empty() ? "fuzz it without --gradients"
                                                         : "fuzz a copy without \"gradients\"";
      Error::Details details = fuzz::details_of(error);
      details.hint += (details.hint.empty() ? "" : "; or ") + std::string(without);
      throw Error(std::move(details));
    }
  }

  ExitStatus replay() const {
    const fuzz::FuzzCase fuzz_case = fuzz::case_from_file(replay_);
    fuzz::RunOptions options{.check_undefined_every = 1};
    if (bounded_waits_) {
      const FuzzMachine machine = fuzz_machine(fuzz_case.target == "cuda" ? "cuda" : "cpu");
      require_waits(machine.gpu_target);
      options.bounded_waits = bounded_target(machine);
    }
    const fuzz::Outcome outcome = fuzz::run_isolated(fuzz_case, options);
    require_machine(outcome, fuzz_case.target);
    const std::vector<fuzz::Outcome> parts = fuzz::taken_apart(outcome);
    if (json_) {
      Json failures = Json::array();
      for (const fuzz::Outcome& part : parts) {
        if (part.ok()) continue;
        failures.push_back({{"failure", fuzz::to_string(part.failure)},
                            {"message", part.message},
                            {"case", replay_}});
      }
      print_json({{"seed", fuzz_case.run_seed},
                  {"cases", 1},
                  {"kernels", outcome.kernels_compiled},
                  {"failures", failures},
                  {"share_of_bound", outcome.share_of_bound}});
    } else if (outcome.ok()) {
      print(fmt::format("ok: {}; {:.2f} of its bound, {}\n", fuzz::describe(fuzz_case),
                        outcome.share_of_bound, format_ms(outcome.ms)));
    } else {
      std::string text = fmt::format("FAILED {}: {}\n", fuzz::to_string(outcome.failure),
                                     fuzz::describe(fuzz_case));
      for (const fuzz::Outcome& part : parts) text += "  " + part.message + '\n';
      print(text);
    }
    return outcome.ok() ? kDone : kNegativeVerdict;
  }

  // A kernel that does not compile is the case's failure only where another one does.
  static void require_machine(const fuzz::Outcome& outcome, const std::string& target) {
    if (!outcome.error) return;
    if (fuzz::is_lack_of_machine(outcome.error)) throw Error(*outcome.error);
    if (outcome.error->code != ErrorCode::compiler || target == "cuda") return;
    const fuzz::Outcome plain =
        fuzz::run_isolated({.spec = {.head_dim = 64}, .target = target, .kernel = KernelVariant{}});
    if (plain.error) throw Error(*plain.error);
  }

  std::string spec_;
  std::vector<std::string> buffers_;
  std::int64_t seconds_ = 60;
  std::int64_t cases_ = 0;
  std::optional<std::int64_t> compiles_;
  std::optional<std::uint64_t> seed_;
  std::string device_ = "auto";
  int workers_ = 0;
  std::string out_ = "fuzz-failures";
  std::string replay_;
  bool no_offsets_ = false;
  bool bounded_waits_ = false;
  bool self_attention_ = false;
  bool gradients_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_fuzz_verb() {
  return std::make_unique<FuzzVerb>();
}

}  // namespace tilewright::cli
