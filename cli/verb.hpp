#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace tilewright::cli {

/// What the process ends with (docs/cli.md).
enum ExitStatus : int {
  kDone = 0,
  kNegativeVerdict = 1,  ///< check, fuzz and cache verify found something wrong
  kWrongInput = 2,       ///< usage, spec, snippet or input file
  kMachineRefuses = 3,   ///< device, compiler, memory or disk
};

/// One word after `tilewright`: what it is called, which arguments it takes, and what it does.
class Verb {
 public:
  Verb(std::string name, std::string summary, std::string example)
      : name_(std::move(name)), summary_(std::move(summary)), example_(std::move(example)) {}
  virtual ~Verb() = default;
  Verb(const Verb&) = delete;
  Verb& operator=(const Verb&) = delete;

  const std::string& name() const { return name_; }
  const std::string& summary() const { return summary_; }
  const std::string& example() const { return example_; }

  /// Says which arguments there are and where they go: into members of this verb.
  virtual void declare(CLI::App& app) = 0;

  /// What a shell offers for an argument of this verb, "--suite" or "ACTION". Empty where any text
  /// or file serves, and for arguments that mean the same in every verb.
  virtual std::vector<std::string> choices(std::string_view /*argument*/) const { return {}; }

  /// Does the work, once the arguments are read.
  /// @throws Error
  virtual ExitStatus execute() = 0;

 private:
  std::string name_;
  std::string summary_;
  std::string example_;
};

std::unique_ptr<Verb> make_run_verb();
std::unique_ptr<Verb> make_check_verb();
std::unique_ptr<Verb> make_render_verb();
std::unique_ptr<Verb> make_explain_verb();
std::unique_ptr<Verb> make_compile_verb();
std::unique_ptr<Verb> make_mask_verb();
std::unique_ptr<Verb> make_precompile_verb();
std::unique_ptr<Verb> make_bench_verb();
std::unique_ptr<Verb> make_cache_verb();
std::unique_ptr<Verb> make_doctor_verb();
std::unique_ptr<Verb> make_fuzz_verb();
std::unique_ptr<Verb> make_tune_verb();

}  // namespace tilewright::cli
