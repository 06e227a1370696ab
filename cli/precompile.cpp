#include "runtime/api/precompile.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "cli/arguments.hpp"
#include "cli/bundle_file.hpp"
#include "cli/call.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/target_note.hpp"
#include "cli/verb.hpp"
#include "generator/spec/manifest.hpp"
#include "runtime/api/device.hpp"
#include "runtime/api/device_kind.hpp"
#include "runtime/library/tuned_tactic.hpp"

namespace tilewright::cli {
namespace {

class PrecompileVerb : public Verb {
 public:
  PrecompileVerb()
      : Verb("precompile", "compile a manifest of specs into a bundle",
             "tilewright precompile examples/precompile/manifest.json --targets sm_80,sm_90a,cpu "
             "--out kernels.twb") {}

  void declare(CLI::App& app) override {
    app.add_option("MANIFEST", manifest_, "what to compile, a JSON file (docs/cache.md)")
        ->required();
    app.add_option("--targets", targets_,
                   "what for, separated by commas: sm_80, sm_90a, ...; cpu stands for "
                   "cpu-x86-64-v3 and cpu-x86-64-v4 (default: the manifest's)");
    app.add_flag("--tuned", tuned_,
                 "also the kernels of tactics that tune remembered on this machine's device");
    bundle_.declare(app);
    add_whole(app, "--jobs", jobs_, {1, 1024},
              "kernels compiled at a time (default: one for each processor)");
    add_json_flag(app, json_);
  }

  ExitStatus execute() override {
    const Stopwatch watch;
    bundle_.prepare({manifest_});
    const Manifest manifest = manifest_from_file(manifest_);
    const std::vector<Target> targets = wanted_targets(manifest);
    notes_ = say_target_notes(targets);
    std::vector<cache::BundleItem> items = compile(manifest, targets);
    const BundleSummary summary = bundle_.write(std::move(items));
    report(manifest, targets, summary, watch.ms() / 1000);
    return kDone;
  }

 private:
  std::vector<Target> wanted_targets(const Manifest& manifest) const {
    const std::vector<std::string> named = split_at_commas(targets_);
    if (named.empty() && manifest.targets.empty()) {
      throw Error(ErrorCode::usage, "no target is named",
                  "name some: --targets sm_80,sm_90a,cpu, or \"targets\" in the manifest");
    }
    return bundle_targets(named.empty() ? manifest.targets : named);
  }

  std::vector<cache::BundleItem> compile(const Manifest& manifest,
                                         const std::vector<Target>& targets) {
    const TunedSpecs tuned = wanted_tuned(manifest, targets);
    tuned_specs_ = tuned.specs.size();
    Progress progress(
        precompile_count(manifest.specs, targets) + precompile_count(tuned.specs, tuned.targets),
        json_);
    const auto step = [&](const PrecompileStep& made) {
      const bool compiled = made.build.source == "built";
      compiled_ += compiled ? 1 : 0;
      ++uses_;
      progress.step(fmt::format("{} for {}, {}: {}", made.spec.empty() ? "the spec" : made.spec,
                                made.target, made.build.kernel,
                                compiled ? "compiled in " + format_ms(made.build.compile_ms)
                                         : "from " + made.build.source));
    };
    const PrecompileOptions options = {
        .kernels = command_line_toolchain(), .jobs = jobs_, .progress = step};
    std::vector<cache::BundleItem> items = precompile(manifest.specs, targets, options);
    const auto append = [&](std::vector<cache::BundleItem> more) {
      items.insert(items.end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
    };
    append(precompile(tuned.specs, tuned.targets, options));
    append(tuned.records);
    return items;
  }

  // For the bundle's targets alone.
  TunedSpecs wanted_tuned(const Manifest& manifest, const std::vector<Target>& targets) const {
    if (!tuned_) return {};
    TunedSpecs tuned =
        tuned_specs(manifest.specs, device_kind(Device::automatic()), command_line_toolchain());
    std::erase_if(tuned.targets,
                  [&](const Target& one) { return std::ranges::count(targets, one) == 0; });
    if (!tuned.targets.empty()) return tuned;
    throw Error(ErrorCode::usage, "--tuned carries what this machine runs, and no target is of it",
                "name the target of this machine's device: tilewright doctor shows it");
  }

  void report(const Manifest& manifest, const std::vector<Target>& targets,
              const BundleSummary& summary, double seconds) const {
    std::vector<std::string> names;
    for (const Target& target : targets) names.push_back(target.name());
    // Specs that need equal kernels share one, whichever of them came first.
    const std::size_t found = summary.kernels - std::min(compiled_, summary.kernels);
    const std::size_t shared = uses_ - std::min(uses_, summary.kernels);
    if (json_) {
      Json facts = {{"manifest", manifest_}, {"specs", manifest.specs.size()},
                    {"targets", names},      {"kernels", summary.kernels},
                    {"compiled", compiled_}, {"found", found},
                    {"shared", shared},      {"tuned", tuned_specs_},
                    {"notes", notes_},       {"seconds", seconds}};
      facts.update(to_json(summary));
      return print_json(facts);
    }
    std::string text =
        fmt::format("{} of {} for {}: {} compiled, {} from the cache, {:.1f} s\n",
                    counted(summary.kernels, "kernel"), counted(manifest.specs.size(), "spec"),
                    fmt::join(names, ", "), compiled_, found, seconds);
    if (shared > 0) {
      text += fmt::format("{} more {} equal to one of these, and {} it\n", shared,
                          is_or_are(shared), shared == 1 ? "shares" : "share");
    }
    if (tuned_) text += counted(tuned_specs_, "spec") + " with the tactics that tune found\n";
    print(text + describe(summary));
  }

  std::string manifest_;
  std::string targets_;
  BundleFile bundle_;
  unsigned jobs_ = 0;
  bool tuned_ = false;
  std::size_t tuned_specs_ = 0;  // whose tactics are in the bundle
  std::size_t compiled_ = 0;
  std::size_t uses_ = 0;  // of kernels, equal ones counted each time
  std::vector<std::string> notes_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_precompile_verb() {
  return std::make_unique<PrecompileVerb>();
}

}  // namespace tilewright::cli
