#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "cli/arguments.hpp"
#include "cli/bench/tuner.hpp"
#include "cli/call.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/random_lengths.hpp"
#include "cli/verb.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/api/device_kind.hpp"
#include "runtime/library/kernel_library.hpp"
#include "runtime/library/tuned_tactic.hpp"

namespace tilewright::cli {
namespace {

std::string size_text(const Shape& shape) {
  return fmt::format("{},{},{},{},{}", shape.batch, shape.num_q_heads, shape.num_kv_heads,
                     shape.q_len, shape.kv_len);
}

std::string today() {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::chrono::system_clock::now()));
}

std::string per_cent(double gain) {
  return fmt::format("{:+.1f} %", 100 * (gain - 1));
}

class TuneVerb : public Verb {
 public:
  TuneVerb()
      : Verb("tune", "measure a spec's tactics on this device, and remember the fastest",
             "tilewright tune examples/causal.json --shape 1,40,40,3000,3000 --shape "
             "4,40,40,512,512") {}

  void declare(CLI::App& app) override {
    add_spec_argument(app, spec_);
    app.add_option("--shape", shapes_,
                   "sizes of a call, B,HQ,HKV,SQ,SKV; repeated, the tactic must suit all");
    app.add_option("--device", device_, "auto, cpu, cuda or cuda:N (default auto)");
    add_positive(app, "--budget-ms", budget_ms_,
                 "measuring time for each of the last pairs that are compared (default 500)");
    add_whole(app, "--seed", seed_, kAnySeed, "of random contents (default 0)");
    app.add_flag("--dry-run", dry_run_,
                 "measure, and remember nothing; with --forget: say what would be forgotten");
    app.add_flag("--forget", forget_, "measure nothing: from now on the tactic is chosen again")
        ->excludes("--shape", "--budget-ms", "--seed");
    add_json_flag(app, json_);
  }

  ExitStatus execute() override {
    const Spec spec = spec_from_file(spec_);
    require_tunable(spec);
    const Device device = Device::parse(device_);
    const DeviceKind kind = device_kind(device);
    if (forget_) return forget(spec, kind);
    const std::vector<Shape> shapes = wanted_shapes();
    const Tuning tuning = measure(spec, device, shapes);
    if (!dry_run_) {
      std::vector<std::string> texts;
      for (const Shape& shape : shapes) texts.push_back(size_text(shape));
      remember_tactic(spec, kind,
                      {.tactic = tuning.tactic,
                       .gain = tuning.gain,
                       .shapes = fmt::format("{}", fmt::join(texts, " ")),
                       .date = today()},
                      command_line_toolchain());
    }
    report(spec, device, tuning);
    return tuning.wrong.empty() ? kDone : kNegativeVerdict;
  }

 private:
  static void require_tunable(const Spec& spec) {
    if (spec.is_packed()) {
      throw Error(ErrorCode::usage, "tune measures dense calls, and the spec is packed",
                  "set \"tactic\" in the spec to choose one yourself (docs/spec.md)");
    }
    if (spec.tactic) {
      throw Error(ErrorCode::usage, "the spec forces a tactic, so there is nothing to choose",
                  "leave \"tactic\" out of the spec");
    }
    if (jit_is_allowed()) return;
    throw Error(ErrorCode::usage, "tune compiles, and TILEWRIGHT_JIT=off forbids that",
                "unset TILEWRIGHT_JIT here; precompile --tuned carries what was found");
  }

  std::vector<Shape> wanted_shapes() const {
    if (shapes_.empty()) {
      throw Error(ErrorCode::usage, "--shape is required",
                  "give the sizes of your calls: --shape B,HQ,HKV,SQ,SKV, repeated");
    }
    std::vector<Shape> shapes;
    for (const std::string& text : shapes_) {
      shapes.push_back(parse_sizes(text, "--shape"));
      validate(shapes.back());
    }
    return shapes;
  }

  Tuning measure(const Spec& spec, const Device& device, const std::vector<Shape>& shapes) const {
    Progress progress(1, json_);
    return tune(spec, {.device = device,
                       .shapes = shapes,
                       .seed = seed_,
                       .timing = {.budget_ms = budget_ms_},
                       .progress = [&](std::string_view what, double share) {
                         progress.update(what, share);
                       }});
  }

  ExitStatus forget(const Spec& spec, const DeviceKind& kind) const {
    const bool was_there = remembered_tactic(spec, kind, command_line_toolchain()).has_value();
    const bool is_forgotten = was_there && !dry_run_;
    if (is_forgotten) remember_tactic(spec, kind, {}, command_line_toolchain());
    if (json_) {
      print_json({{"remembered", was_there && dry_run_}, {"forgotten", is_forgotten}});
    } else {
      print(is_forgotten ? "forgotten: the tactic is chosen again\n"
            : was_there  ? "remembered; without --dry-run it would be forgotten\n"
                         : "nothing was remembered\n");
    }
    return kDone;
  }

  void report(const Spec& spec, const Device& device, const Tuning& tuning) const {
    if (json_) return print_json(json_of(spec, device, tuning));
    Table table({"shape", "before", "after", "gain"});
    for (const TunedShape& one : tuning.shapes) {
      table.add({size_text(one.shape), format_ms(one.before_ms), format_ms(one.after_ms),
                 per_cent(one.before_ms / one.after_ms)});
    }
    std::string text = table.text();
    text += fmt::format("before  {}\n", tuning.before);
    if (tuning.tactic) {
      text += fmt::format("after   {}\n{}, over all shapes {}\n", tuning.after,
                          dry_run_ ? "not remembered" : "remembered", per_cent(tuning.gain));
    } else {
      text += fmt::format("none of {} others is faster on one shape and slower on none\n",
                          tuning.candidates);
    }
    for (const std::string& wrong : tuning.wrong) {
      text += fmt::format(
          "WRONG: {} computes a wrong result. It was left out; this is a fault of Tilewright\n",
          wrong);
    }
    print(text);
  }

  Json json_of(const Spec& spec, const Device& device, const Tuning& tuning) const {
    Json shapes = Json::array();
    for (const TunedShape& one : tuning.shapes) {
      shapes.push_back({{"shape", size_text(one.shape)},
                        {"tactic", tuning.after},
                        {"before_ms", one.before_ms},
                        {"after_ms", one.after_ms}});
    }
    return {{"spec", spec.name},       {"device", device.name()}, {"tactic", tuning.after},
            {"before", tuning.before}, {"gain", tuning.gain},     {"candidates", tuning.candidates},
            {"remembered", !dry_run_}, {"wrong", tuning.wrong},   {"shapes", shapes}};
  }

  std::string spec_;
  std::vector<std::string> shapes_;
  std::string device_ = "auto";
  double budget_ms_ = 500;
  std::uint64_t seed_ = 0;
  bool dry_run_ = false;
  bool forget_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_tune_verb() {
  return std::make_unique<TuneVerb>();
}

}  // namespace tilewright::cli
