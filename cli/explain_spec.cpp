#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
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
#include "runtime/call/call_prefill.hpp"
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
                   "sizes of a call, B,HQ,HKV,SQ,SKV: says whether its q tiles are split, and of a "
                   "packed call which kernel serves its prefill; a dense call is taken to have "
                   "AttentionOptions::decode and a workspace");
    add_whole(app, "--multiprocessors", multiprocessors_, {1, 1 << 16},
              "of the GPU of --target and --shape (default 132, an H100's)")
        ->needs("--shape");
    add_json_flag(app, json_);
  }

  ExitStatus execute() override {
    const Spec spec = as_attention_takes_it(spec_from_file(spec_));
    const Target target = target_or_default(spec, target_);
    const Explanation found = tilewright::explain(spec, target);
    std::optional<CallSplit> split;
    std::optional<CallPrefill> prefill;
    if (!shape_.empty()) {
      const Shape shape = parse_sizes(shape_, "--shape");
      validate(shape);
      refuse_multiprocessors_of_cpu(target);
      split = split_of_call(spec, target, multiprocessors_.value_or(kOfH100), shape);
      if (spec.is_packed()) prefill = prefill_of_call(spec, target, shape, *split);
    }
    if (json_ && split) {
      Json facts = Json::parse(found.to_json());
      facts["split"] = to_json(*split, assumed_of(spec, target));
      facts["prefill"] = prefill ? to_json(*prefill) : Json();
      print_json(facts);
    } else if (json_) {
      print(found.to_json() + "\n");
    } else {
      print(fmt::format("{} for {}: {}\n", found.kernel, found.target, found.tactic));
      if (found.backward) print(line(*found.backward, found.target));
      for (const Explanation::Path& path : found.fast_paths) print(line(path));
      if (split) print(line(*split, assumed_of(spec, target)));
      if (prefill) print(line(*prefill));
      if (split) print(hint_of_target(target));
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
      std::string text = fmt::format("{} for {}: {}\n", backward.kernel, target, backward.tactic);
      for (const Explanation::Sum& sum : backward.sums) {
        text += fmt::format("  gradient of {}, {}: {}\n", sum.read, sum.by, sum.way);
      }
      return text;
    }
    const std::string place = backward.place ? " (" + place_text(*backward.place) + ")" : "";
    return fmt::format("{} for {}: none: {}{}\n", backward.kernel, target, backward.why_not, place);
  }

  static std::string line(const Explanation::Path& path) {
    if (path.used) return fmt::format("  {:<16} yes\n", path.name);
    const std::string place = path.place ? " (" + place_text(*path.place) + ")" : "";
    return fmt::format("  {:<16} no: {}{}\n", path.name, path.why_not, place);
  }

  void refuse_multiprocessors_of_cpu(const Target& target) const {
    if (!multiprocessors_ || !target.is_cpu()) return;
    throw Error(ErrorCode::usage,
                fmt::format("--multiprocessors are a GPU's, and {} has none", target.name()),
                "give the GPU's target too, --target sm_90a, or leave --multiprocessors out");
  }

  // What a dense call is taken to have; nothing helps a CPU, and packed calls need nothing.
  static std::string assumed_of(const Spec& spec, const Target& target) {
    const bool is_free = spec.is_packed() || target.is_cpu();
    return is_free ? "" : "AttentionOptions::decode and a workspace";
  }

  static std::string line(const CallSplit& split, const std::string& assumed) {
    const std::string with = assumed.empty() ? "" : " with " + assumed;
    if (split.parts == 1) {
      return fmt::format("not split{}: {}\n", with.empty() ? "" : ", even" + with, split.why_not);
    }
    if (split.q_tiles < split.multiprocessors) {
      return fmt::format("split{}: {} for {}, each in {} parts\n", with, split.q_tiles_text(),
                         counted(split.multiprocessors, "multiprocessor"), split.parts);
    }
    return fmt::format(
        "split{}: {} leave idle in the end some of {} multiprocessors, so each has {} parts\n",
        with, split.q_tiles_text(), split.multiprocessors, split.parts);
  }

  static std::string line(const CallPrefill& prefill) {
    if (prefill.kernel.empty()) return fmt::format("no prefill: {}\n", prefill.why);
    return fmt::format("prefill by {}{}: {}\n", prefill.kernel,
                       prefill.keeps_kv ? ", which keeps k and v in shared memory" : "",
                       prefill.why);
  }

  static Json to_json(const CallPrefill& prefill) {
    return {{"kernel", prefill.kernel.empty() ? Json() : Json(prefill.kernel)},
            {"keeps_kv", prefill.keeps_kv},
            {"why", prefill.why}};
  }

  std::string hint_of_target(const Target& target) const {
    return target_.empty() && target.is_cpu()
               ? "hint: only Hopper GPUs split q tiles; --target sm_90a asks about one\n"
               : "";
  }

  static Json to_json(const CallSplit& split, const std::string& assumed) {
    return {{"assumed", assumed.empty() ? Json() : Json(assumed)},
            {"multiprocessors", split.multiprocessors},
            {"parts", split.parts},
            {"q_tiles", split.q_tiles},
            {"why_not", split.parts == 1 ? Json(split.why_not) : Json()}};
  }

  static constexpr std::int64_t kOfH100 = 132;

  std::string spec_;
  std::string target_;
  std::string shape_;
  std::optional<std::int64_t> multiprocessors_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_explain_verb() {
  return std::make_unique<ExplainVerb>();
}

}  // namespace tilewright::cli
