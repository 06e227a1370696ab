#include <utility>

#include <fmt/format.h>

#include "cli/arguments.hpp"
#include "cli/call.hpp"
#include "cli/kernels.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/api/device_kind.hpp"
#include "runtime/api/explain.hpp"
#include "runtime/library/tuned_tactic.hpp"

namespace tilewright::cli {
namespace {

std::string place_text(const Explanation::SnippetLocation& place) {
  return fmt::format("{}:{}:{}", place.snippet, place.line, place.column);
}

class ExplainVerb : public Verb {
 public:
  ExplainVerb()
      : Verb("explain", "which fast paths a spec takes, and why not the others",
             "tilewright explain examples/alibi_documents.json --target sm_90a") {}

  void declare(CLI::App& app) override {
    add_spec_argument(app, spec_);
    app.add_option("--target", target_, "what it is compiled for (default: this machine)");
    add_json_flag(app, json_);
  }

  ExitStatus execute() override {
    const Spec spec = as_attention_takes_it(spec_from_file(spec_));
    const Explanation found = tilewright::explain(spec, target_or_default(target_));
    if (json_) {
      print(found.to_json() + "\n");
    } else {
      print(fmt::format("{} for {}: {}\n", found.kernel, found.target, found.tactic));
      if (found.backward) print(line(*found.backward, found.target));
      for (const Explanation::Path& path : found.fast_paths) print(line(path));
    }
    return kDone;
  }

 private:
  // For this machine's CPU with the tactic that tune remembered.
  Spec as_attention_takes_it(Spec spec) const {
    if (!target_.empty()) return spec;
    const Device device = Device::cpu();
    return with_tuned_tactic(std::move(spec), [&] { return device_kind(device); },
                             {.device = device, .kernels = command_line_toolchain()});
  }

  static std::string line(const Explanation::Backward& backward, const std::string& target) {
    if (!backward.tactic.empty()) {
      return fmt::format("{} for {}: {}\n", backward.kernel, target, backward.tactic);
    }
    const std::string place = backward.place ? " (" + place_text(*backward.place) + ")" : "";
    return fmt::format("{} for {}: none: {}{}\n", backward.kernel, target, backward.why_not, place);
  }

  static std::string line(const Explanation::Path& path) {
    if (path.used) return fmt::format("  {:<16} yes\n", path.name);
    const std::string place = path.place ? " (" + place_text(*path.place) + ")" : "";
    return fmt::format("  {:<16} no: {}{}\n", path.name, path.why_not, place);
  }

  std::string spec_;
  std::string target_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_explain_verb() {
  return std::make_unique<ExplainVerb>();
}

}  // namespace tilewright::cli
