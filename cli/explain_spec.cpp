#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "cli/arguments.hpp"
#include "cli/call.hpp"
#include "cli/kernels.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "cli/random_lengths.hpp"
#include "cli/verb.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/api/device_kind.hpp"
#include "runtime/api/explain.hpp"
#include "runtime/call/call_split.hpp"
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
    app.add_option("--shape", shape_,
                   "sizes of a call, B,HQ,HKV,SQ,SKV: says whether its q tiles are split");
    add_whole(app, "--multiprocessors", multiprocessors_, {1, 1 << 16},
              "of the GPU of --shape (default 132, an H100's)")
        ->needs("--shape");
    add_json_flag(app, json_);
  }

  ExitStatus execute() override {
    const Spec spec = as_attention_takes_it(spec_from_file(spec_));
    const Target target = target_or_default(target_);
    const Explanation found = tilewright::explain(spec, target);
    std::optional<CallSplit> split;
    if (!shape_.empty()) {
      const Shape shape = parse_sizes(shape_, "--shape");
      validate(shape);
      split = split_of_call(spec, target, multiprocessors_, shape);
    }
    if (json_ && split) {
      Json facts = Json::parse(found.to_json());
      facts["split"] = to_json(*split);
      print_json(facts);
    } else if (json_) {
      print(found.to_json() + "\n");
    } else {
      print(fmt::format("{} for {}: {}\n", found.kernel, found.target, found.tactic));
      if (found.backward) print(line(*found.backward, found.target));
      for (const Explanation::Path& path : found.fast_paths) print(line(path));
      if (split) print(line(*split));
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

  static std::string line(const CallSplit& split) {
    if (split.parts == 1) return fmt::format("not split: {}\n", split.why_not);
    const std::string q_tiles = counted(split.q_tiles, "q tile");
    if (split.q_tiles < split.multiprocessors) {
      return fmt::format("split: {} for {} multiprocessors, each in {} parts\n", q_tiles,
                         split.multiprocessors, split.parts);
    }
    return fmt::format(
        "split: {} leave idle in the end some of {} multiprocessors, so each has {} parts\n",
        q_tiles, split.multiprocessors, split.parts);
  }

  static Json to_json(const CallSplit& split) {
    return {{"multiprocessors", split.multiprocessors},
            {"parts", split.parts},
            {"q_tiles", split.q_tiles},
            {"why_not", split.parts == 1 ? Json(split.why_not) : Json()}};
  }

  std::string spec_;
  std::string target_;
  std::string shape_;
  std::int64_t multiprocessors_ = 132;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_explain_verb() {
  return std::make_unique<ExplainVerb>();
}

}  // namespace tilewright::cli
