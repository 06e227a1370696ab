#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/version.hpp"
#include "cache/store.hpp"
#include "cli/arguments.hpp"
#include "cli/machine.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "runtime/host_compiler.hpp"

namespace tilewright::cli {
namespace {

namespace fs = std::filesystem;

struct Problem {
  std::string what;
  std::string advice;
  bool fatal = false;  ///< nothing can run before it is mended
};

/// What doctor collects: lines for people, facts for programs, and what to do.
struct Diagnosis {
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
};

void examine_cpu(Diagnosis& diagnosis) {
  const CpuFacts cpu = cpu_facts();
  diagnosis.line("CPU", fmt::format("{}, {}, {} threads", cpu.model, cpu.isa, cpu.threads));
  diagnosis.facts["cpu"] = {{"model", cpu.model}, {"isa", cpu.isa}, {"threads", cpu.threads}};
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
                                  error.hint().empty() ? "apt-get install g++" : error.hint(),
                                  true});
  }
}

void examine_nvrtc(Diagnosis& diagnosis) {
  const std::vector<std::string> paths = nvrtc_paths();
  diagnosis.line("NVRTC", paths.empty() ? "none" : paths.front());
  for (std::size_t i = 1; i < paths.size(); ++i) diagnosis.line("", paths[i]);
  const char* named = std::getenv("TILEWRIGHT_NVRTC");
  std::error_code ignored;
  if (named && !fs::exists(named, ignored)) {
    diagnosis.problems.push_back(
        {fmt::format("TILEWRIGHT_NVRTC names \"{}\", which is not there", named),
         "correct it or unset it"});
  }
  diagnosis.facts["nvrtc"] = {{"found", !paths.empty()}, {"paths", paths}};
}

void examine_gpu(Diagnosis& diagnosis) {
  const GpuFacts gpu = gpu_facts();
  Json gpus = Json::array();
  for (std::size_t i = 0; i < gpu.gpus.size(); ++i) {
    const GpuFacts::Gpu& each = gpu.gpus[i];
    diagnosis.line(i == 0 ? "GPU" : "", fmt::format("cuda:{} {}, {}, {}", i, each.name, each.target,
                                                    format_bytes(each.memory_bytes)));
    gpus.push_back(
        {{"name", each.name}, {"target", each.target}, {"memory_bytes", each.memory_bytes}});
  }
  if (gpu.gpus.empty()) diagnosis.line("GPU", "none: " + gpu.problem);
  diagnosis.line("driver", gpu.driver.empty() ? "none" : "for CUDA " + gpu.driver);
  diagnosis.facts["gpu"] = {{"found", !gpu.gpus.empty()},
                            {"gpus", gpus},
                            {"driver", gpu.driver.empty() ? Json() : Json(gpu.driver)},
                            {"problem", gpu.problem.empty() ? Json() : Json(gpu.problem)}};
  if (!gpu.driver.empty() && gpu.gpus.empty()) {
    diagnosis.problems.push_back({"there is a driver but no GPU that works: " + gpu.problem,
                                  "see what nvidia-smi says; kernels run on the CPU meanwhile"});
  }
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
  const std::string problem = write_problem(*store.directory());
  diagnosis.line("cache", fmt::format("{}, {}, {} entries, {}", directory,
                                      problem.empty() ? "writable" : "not writable", stats.entries,
                                      format_bytes(stats.bytes)));
  diagnosis.facts["cache"] = {{"directory", directory},
                              {"writable", problem.empty()},
                              {"entries", stats.entries},
                              {"bytes", stats.bytes}};
  if (!problem.empty()) {
    diagnosis.problems.push_back({"the cache cannot be written: " + problem, advice});
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
  diagnosis.facts["environment"] = variables;
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
  diagnosis.line("worker", "not yet");
  diagnosis.facts["worker"] = {{"found", false}, {"problem", "not yet"}};
  examine_environment(diagnosis);
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
    text += diagnosis.ready() ? "ready: kernels run on the CPU\n"
                              : "not ready: nothing can run before the problem above is mended\n";
    print(text);
  }

  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_doctor_verb() {
  return std::make_unique<DoctorVerb>();
}

}  // namespace tilewright::cli
