#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/counted.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "cache/bundles.hpp"
#include "cache/store.hpp"
#include "cli/arguments.hpp"
#include "cli/machine.hpp"
#include "cli/output.hpp"
#include "cli/remote.hpp"
#include "cli/verb.hpp"
#include "cli/wrong_variables.hpp"
#include "runtime/api/device.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/compile/host_compiler.hpp"
#include "runtime/compile/worker_pool.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "runtime/library/kernel_library.hpp"

namespace tilewright::cli {
namespace {

namespace fs = std::filesystem;

struct Problem {
  std::string what;
  std::string advice;
  bool fatal = false;          ///< nothing can run before it is mended
  bool of_compiling = false;   ///< it matters only where kernels may be compiled
  bool of_some_calls = false;  ///< calls that `what` names fail, and others run
};

/// What doctor collects: lines for people, facts for programs, and what to do.
// The JSON that moves throws nothing, which clang-tidy does not see.
struct Diagnosis {  // NOLINT(bugprone-exception-escape)
  std::string text;
  Json facts;
  std::vector<Problem> problems;

  void line(std::string_view what, const std::string& found) {
    text += fmt::format("{:<12} {}\n", what, found);
  }
  bool ready() const {
    for (const Problem& problem : problems) {
      if (problem.fatal) return false;
    }
    return true;
  }
  bool all_calls_run() const {
    for (const Problem& problem : problems) {
      if (problem.fatal || problem.of_some_calls) return false;
    }
    return true;
  }
};

// Nothing if TILEWRIGHT_THREADS is not understood, which examine_values says.
std::optional<int> threads_of_calls() {
  try {
    return ThreadPool::default_size();
  } catch (const Error&) {
    return std::nullopt;
  }
}

void examine_cpu(Diagnosis& diagnosis) {
  const CpuFacts cpu = cpu_facts();
  const std::optional<int> threads = threads_of_calls();
  diagnosis.line("CPU", fmt::format("{}, {}, {}", cpu.model, cpu.isa,
                                    threads ? counted(*threads, "thread") : "unknown threads"));
  diagnosis.facts["cpu"] = {
      {"model", cpu.model}, {"isa", cpu.isa}, {"threads", threads ? Json(*threads) : Json()}};
}

void examine_compiler(Diagnosis& diagnosis) {
  Json& facts = diagnosis.facts["compiler"];
  try {
    const HostCompiler compiler = HostCompiler::find();
    const std::string version = compiler.version();
    diagnosis.line("compiler", fmt::format("{} ({})", compiler.path().string(), version));
    facts = {{"found", true},
             {"command", compiler.command()},
             {"path", compiler.path().string()},
             {"version", version}};
  } catch (const Error& error) {
    diagnosis.line("compiler", "none: " + error.message());
    facts = {{"found", false}, {"problem", error.message()}};
    diagnosis.problems.push_back({"kernels for the CPU cannot be compiled: " + error.message(),
                                  error.hint().empty() ? "apt-get install g++" : error.hint(), true,
                                  true});
  }
}

// A machine with a GPU, or a named library, wants NVRTC. Elsewhere that it is missing is a fact,
// not a problem.
void examine_nvrtc(Diagnosis& diagnosis) {
  Json& facts = diagnosis.facts["nvrtc"];
  try {
    const cuda::Nvrtc& nvrtc = cuda::Nvrtc::get();
    const std::string version = fmt::format("{}.{}", nvrtc.major(), nvrtc.minor());
    diagnosis.line("NVRTC", fmt::format("{} ({})", nvrtc.path(), version));
    facts = {{"found", true},
             {"path", nvrtc.path()},
             {"version", version},
             {"architectures", nvrtc.architectures()}};
  } catch (const Error& error) {
    diagnosis.line("NVRTC", "none: " + error.message());
    facts = {{"found", false}, {"problem", error.message()}, {"hint", error.hint()}};
    const bool is_wanted =
        diagnosis.facts["gpu"]["found"] == true || std::getenv("TILEWRIGHT_NVRTC") != nullptr;
    if (!is_wanted) return;
    diagnosis.problems.push_back(
        {"kernels for GPUs cannot be compiled: " + error.message(), error.hint(), false, true});
  }
}

Json list_gpus(const cuda::Driver& driver, Diagnosis& diagnosis) {
  Json gpus = Json::array();
  for (int ordinal = 0; ordinal < driver.device_count(); ++ordinal) {
    try {
      const cuda::DeviceFacts gpu = cuda::device_facts(driver, ordinal);
      diagnosis.line("GPU", fmt::format("cuda:{} {}, {}, {} multiprocessors", ordinal, gpu.name,
                                        gpu.target(), gpu.multiprocessors));
      gpus.push_back(
          {{"name", gpu.name}, {"target", gpu.target()}, {"multiprocessors", gpu.multiprocessors}});
    } catch (const Error& error) {
      diagnosis.line("GPU", fmt::format("cuda:{} cannot be used: {}", ordinal, error.message()));
    }
  }
  return gpus;
}

void examine_gpu(Diagnosis& diagnosis) {
  std::string reason;
  const cuda::Driver* driver = cuda::Driver::find(&reason);
  Json& facts = diagnosis.facts["gpu"];
  if (!driver) {
    diagnosis.line("GPU", "none: " + reason);
    facts = {{"found", false}, {"gpus", Json::array()}, {"driver", nullptr}, {"problem", reason}};
    return;
  }
  const std::string version =
      fmt::format("{}.{}", driver->version() / 1000, driver->version() % 1000 / 10);
  diagnosis.line("driver", "for CUDA " + version);
  const Json gpus = list_gpus(*driver, diagnosis);
  facts = {{"found", !gpus.empty()}, {"gpus", gpus}, {"driver", version}, {"problem", nullptr}};
  if (!gpus.empty()) return;
  diagnosis.problems.push_back({"there is a driver, but no GPU that can be used",
                                "see what nvidia-smi says; kernels run on the CPU meanwhile"});
}

// Why nothing can be written into the folder, or into the one where it would be made; else empty.
std::string write_problem(fs::path folder) {
  std::error_code ignored;
  while (!fs::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  if (!fs::is_directory(folder, ignored))
    return fmt::format("\"{}\" is no folder", folder.string());
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return fmt::format("\"{}\": {}", folder.string(), std::strerror(errno));
}

void examine_cache(Diagnosis& diagnosis) {
  const cache::Store store({.directory = cache::default_directory(), .diagnostics = {}});
  const std::string advice =
      "set TILEWRIGHT_CACHE to a folder of your own; without one every "
      "process compiles its kernels anew";
  if (!store.directory()) {
    diagnosis.line("cache", "none: no home is known");
    diagnosis.facts["cache"] = {{"directory", nullptr}, {"writable", false}};
    diagnosis.problems.push_back({"there is no cache directory", advice});
    return;
  }
  const std::string directory = store.directory()->string();
  const cache::Stats stats = store.stats();
  std::string problem = store.problem();
  if (problem.empty()) problem = write_problem(*store.directory());
  diagnosis.line(
      "cache",
      fmt::format("{}, {}, {}, {}", directory, problem.empty() ? "writable" : "not writable",
                  counted(stats.entries, "entry", "entries"), format_bytes(stats.bytes)));
  diagnosis.facts["cache"] = {{"directory", directory},
                              {"writable", problem.empty()},
                              {"entries", stats.entries},
                              {"bytes", stats.bytes}};
  if (!problem.empty()) {
    diagnosis.problems.push_back({"the cache cannot be written: " + problem, advice});
  }
}

// Optional, so only what is wrong with a server that was named is a problem.
void examine_remote(Diagnosis& diagnosis) {
  diagnosis.facts["remote_cache"] = nullptr;
  try {
    RemoteReport report = cli::examine_remote();
    diagnosis.line("remote cache", report.text);
    diagnosis.facts["remote_cache"] = std::move(report.facts);
    if (report.problem.empty()) return;
    diagnosis.problems.push_back(
        {"the remote cache cannot be used: " + report.problem, std::move(report.advice)});
  } catch (const Error& error) {
    diagnosis.line("remote cache", error.message());
    diagnosis.problems.push_back({error.message(), error.hint(), true});
  }
}

void examine_worker_within(const CompileLimits& all, Diagnosis& diagnosis) {
  const WorkerFacts worker = tilewright::examine_worker();
  const std::string program = worker.location.program.string();
  const std::string limits = fmt::format("{} s, {} s of processor time, {} MiB", all.wall.count(),
                                         all.cpu.count(), all.address_space);
  const std::string why = worker.problem.empty() ? worker.location.reason : worker.problem;
  if (worker.isolates) {
    diagnosis.line("worker", fmt::format("{} ({}); limits: {}", program, why, limits));
  } else {
    diagnosis.line("worker", "none, compiles run in the process itself: " + why);
  }
  diagnosis.facts["worker"] = {{"found", worker.isolates},
                               {"path", program.empty() ? Json() : Json(program)},
                               {"limits", limits},
                               {"problem", worker.isolates ? Json() : Json(why)}};
  if (worker.isolates || (worker.location.is_given && worker.problem.empty())) return;
  diagnosis.problems.push_back({"a crash of a compiler would end the process that uses it: " + why,
                                "name the installed executable tilewright in TILEWRIGHT_WORKER",
                                false, true});
}

void examine_worker(Diagnosis& diagnosis) {
  try {
    examine_worker_within(compile_limits(), diagnosis);
  } catch (const Error& error) {
    diagnosis.line("worker", error.message());
    diagnosis.facts["worker"] = {
        {"found", false}, {"path", nullptr}, {"limits", nullptr}, {"problem", error.message()}};
    const bool compiles = diagnosis.facts["jit"] != false;
    diagnosis.problems.push_back({error.message(), error.hint(), compiles});
  }
}

void examine_cache_limit(Diagnosis& diagnosis) {
  try {
    static_cast<void>(cache::default_max_bytes());
  } catch (const Error& error) {
    diagnosis.problems.push_back({error.message(), error.hint(), true});
  }
}

// The targets that a bundle has kernels for.
std::set<std::string> targets_of(const cache::Bundle& bundle) {
  std::set<std::string> targets;
  for (std::size_t entry = 0; entry < bundle.size(); ++entry) {
    const std::optional<cache::BundleFacts> facts = bundle.facts(entry);
    if (!facts) continue;
    for (const cache::Ingredient& ingredient : facts->ingredients) {
      if (ingredient.tag == "target") targets.insert(ingredient.value);
    }
  }
  return targets;
}

// What is wrong with entries: each is read and its digest compared.
std::vector<std::string> damage_of(const cache::Bundle& bundle) {
  std::vector<std::string> damage;
  for (std::size_t entry = 0; entry < bundle.size(); ++entry) {
    const cache::Bundle::Loaded loaded = bundle.load(entry);
    if (!loaded.entry) damage.push_back(loaded.problem);
  }
  return damage;
}

// The names of what `bundle` holds and who signed it.
void examine_bundle(const cache::Bundles::Opened& opened, std::string_view what,
                    Diagnosis& diagnosis) {
  const std::string path = opened.path.string();
  if (!opened.bundle) {
    diagnosis.line(what, fmt::format("{} must not be used", path));
    diagnosis.facts["bundles"].push_back({{"path", path}, {"problem", opened.problem}});
    diagnosis.problems.push_back({opened.problem, "mend it, or take it out of TILEWRIGHT_BUNDLES"});
    return;
  }
  const cache::Bundle& bundle = *opened.bundle;
  const std::vector<std::string> damage = damage_of(bundle);
  if (!damage.empty()) {
    diagnosis.problems.push_back(
        {fmt::format("{} of {} of \"{}\" {} damaged and never loaded: {}", damage.size(),
                     counted(bundle.size(), "kernel"), path, is_or_are(damage.size()),
                     damage.front()),
         "write the bundle anew, or copy it again; tilewright cache verify FILE names each"});
  }
  const std::set<std::string> targets = targets_of(bundle);
  const std::string signer = bundle.signer() ? bundle.signer()->hex() : "";
  diagnosis.line(what,
                 fmt::format("{}, {} for {}, {}, {}{}", path, counted(bundle.size(), "kernel"),
                             fmt::join(targets, ", "), format_bytes(bundle.bytes()),
                             signer.empty() ? "not signed" : "signed by " + signer,
                             damage.empty() ? ", every one read and right"
                                            : fmt::format(", {} DAMAGED", damage.size())));
  diagnosis.facts["bundles"].push_back(
      {{"path", path},
       {"kernels", bundle.size()},
       {"targets", targets},
       {"bytes", bundle.bytes()},
       {"signer", signer.empty() ? Json() : Json(signer)},
       {"damaged", damage.size()},
       {"problem", damage.empty() ? Json() : Json(damage.front())}});
}

// Without leave to compile, a missing compiler is no problem, and missing bundles are.
void examine_bundles(Diagnosis& diagnosis) {
  diagnosis.facts["bundles"] = Json::array();
  diagnosis.facts["jit"] = nullptr;
  try {
    const bool jit = jit_is_allowed();
    diagnosis.facts["jit"] = jit;
    const std::shared_ptr<const cache::Bundles> bundles = cache::Bundles::from_environment();
    std::string_view what = "bundles";
    bool serves = false;
    for (const cache::Bundles::Opened& opened : bundles->opened()) {
      examine_bundle(opened, std::exchange(what, ""), diagnosis);
      serves = serves || opened.bundle;
    }
    if (bundles->empty()) diagnosis.line(what, "none: TILEWRIGHT_BUNDLES names none");
    diagnosis.line("JIT", jit ? "on: what no cache has is compiled" : "off: nothing is compiled");
    if (jit) return;
    const bool has_stored = diagnosis.facts["cache"].value("entries", 0) > 0;
    if (serves || has_stored) {
      for (Problem& problem : diagnosis.problems) problem.fatal = false;
    }
    if (serves) return;
    diagnosis.problems.push_back(
        {fmt::format("TILEWRIGHT_JIT=off forbids compiling, and there is no bundle{}",
                     has_stored ? ": only kernels of the cache run" : ""),
         "name one in TILEWRIGHT_BUNDLES (tilewright precompile makes it)", !has_stored});
  } catch (const Error& error) {
    diagnosis.line("bundles", error.message());
    diagnosis.problems.push_back({error.message(), error.hint(), true});
  }
}

void examine_environment(Diagnosis& diagnosis) {
  Json variables = Json::object();
  std::string what = "variables";
  for (const std::string& variable : tilewright_variables()) {
    const std::size_t equals = variable.find('=');
    variables[variable.substr(0, equals)] = variable.substr(equals + 1);
    diagnosis.line(std::exchange(what, ""), variable);
  }
  if (variables.empty()) diagnosis.line(what, "no TILEWRIGHT_* is set");
  for (const UnknownVariable& unknown : unknown_variables()) {
    diagnosis.problems.push_back(
        {describe(unknown), unknown.nearest.empty()
                                ? "unset it; docs/cli.md lists the variables that are read"
                                : "set " + unknown.nearest + ", and unset " + unknown.name});
  }
  diagnosis.facts["environment"] = variables;
}

void examine_values(Diagnosis& diagnosis) {
  for (WrongVariable& wrong : wrong_variables(diagnosis.facts["gpu"]["found"] == true)) {
    diagnosis.problems.push_back({.what = std::move(wrong.what),
                                  .advice = std::move(wrong.advice),
                                  .fatal = wrong.stops_all,
                                  .of_some_calls = !wrong.stops_all});
  }
}

Diagnosis examine() {
  Diagnosis diagnosis;
  diagnosis.line("tilewright", version());
  diagnosis.facts["version"] = version();
  examine_cpu(diagnosis);
  examine_compiler(diagnosis);
  examine_gpu(diagnosis);
  examine_nvrtc(diagnosis);
  examine_cache(diagnosis);
  examine_remote(diagnosis);
  examine_bundles(diagnosis);
  examine_cache_limit(diagnosis);
  examine_worker(diagnosis);
  examine_environment(diagnosis);
  examine_values(diagnosis);
  if (diagnosis.facts["jit"] == false) {
    std::erase_if(diagnosis.problems, [](const Problem& problem) { return problem.of_compiling; });
  }
  return diagnosis;
}

class DoctorVerb : public Verb {
 public:
  DoctorVerb()
      : Verb("doctor", "say what was found on this machine and what to do about the rest",
             "tilewright doctor") {}

  void declare(CLI::App& app) override { add_json_flag(app, json_); }

  ExitStatus execute() override {
    const Diagnosis diagnosis = examine();
    json_ ? print_facts(diagnosis) : print_text(diagnosis);
    return diagnosis.ready() ? kDone : kMachineRefuses;
  }

 private:
  static void print_facts(const Diagnosis& diagnosis) {
    Json problems = Json::array();
    for (const Problem& problem : diagnosis.problems) {
      problems.push_back(
          {{"what", problem.what}, {"advice", problem.advice}, {"fatal", problem.fatal}});
    }
    Json facts = diagnosis.facts;
    facts["problems"] = problems;
    facts["ready"] = diagnosis.ready();
    print_json(facts);
  }

  static void print_text(const Diagnosis& diagnosis) {
    std::string text = diagnosis.text + '\n';
    for (const Problem& problem : diagnosis.problems) {
      text += fmt::format("problem: {}\n  what to do: {}\n", problem.what, problem.advice);
    }
    const auto fatal_problems = std::ranges::count_if(diagnosis.problems, &Problem::fatal);
    text += diagnosis.ready()
                ? fmt::format("ready{}: kernels run on {}\n",
                              diagnosis.all_calls_run() ? "" : ", but for the calls named above",
                              device_of_calls())
                : fmt::format("not ready: nothing can run before the {} above {} mended\n",
                              fatal_problems == 1 ? "problem" : "problems",
                              fatal_problems == 1 ? "is" : "are");
    print(text);
  }

  static std::string_view device_of_calls() {
    try {
      return Device::automatic().kind() == Device::Kind::cuda ? "the GPU" : "the CPU";
    } catch (const Error&) {
      return "the device that a call names";
    }
  }

  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_doctor_verb() {
  return std::make_unique<DoctorVerb>();
}

}  // namespace tilewright::cli
