#include <fmt/format.h>

#include "cli/arguments.hpp"
#include "cli/kernels.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "generator/spec/spec_json.hpp"
#include "generator/tactic/fast_paths.hpp"
#include "generator/tactic/tactic.hpp"

namespace tilewright::cli {
namespace {

std::string place_text(const FastPath::SourceLocation& place) {
  return fmt::format("{}:{}:{}", to_string(place.snippet), place.line, place.column);
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
    const Spec spec = spec_from_file(spec_);
    const SpecFacts facts(spec);
    const Target target = target_or_default(target_);
    const std::vector<FastPath> paths = fast_paths(facts, target);
    const std::string kernel = kernel_or_default(spec, target, "").name();
    const std::string tactic = choose_tactic(facts, target).describe();
    if (json_) {
      print_report(paths, kernel, tactic);
    } else {
      print(fmt::format("{} for {}: {}\n", kernel, target.name(), tactic));
      for (const FastPath& path : paths) print(line(path));
    }
    return kDone;
  }

 private:
  static std::string line(const FastPath& path) {
    if (path.used) return fmt::format("  {:<16} yes\n", path.name);
    const std::string place = path.place ? " (" + place_text(*path.place) + ")" : "";
    return fmt::format("  {:<16} no: {}{}\n", path.name, path.why_not, place);
  }

  static void print_report(const std::vector<FastPath>& paths, const std::string& kernel,
                           const std::string& tactic) {
    Json list = Json::array();
    for (const FastPath& path : paths) {
      Json place;
      if (path.place) {
        place = {{"snippet", to_string(path.place->snippet)},
                 {"line", path.place->line},
                 {"column", path.place->column}};
      }
      const Json why_not = path.used ? Json() : Json(path.why_not);
      list.push_back(
          {{"name", path.name}, {"used", path.used}, {"why_not", why_not}, {"place", place}});
    }
    print_json({{"fast_paths", list}, {"kernel", kernel}, {"tactic", tactic}});
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
