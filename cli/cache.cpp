#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cache/store.hpp"
#include "cli/arguments.hpp"
#include "cli/bundle_file.hpp"
#include "cli/cache_bundle.hpp"
#include "cli/explain.hpp"
#include "cli/kernel_by_name.hpp"
#include "cli/output.hpp"
#include "cli/remote.hpp"
#include "cli/verb.hpp"
#include "runtime/library/cache_export.hpp"

namespace tilewright::cli {
namespace {

template <class Integer>
std::string counted_entries(Integer count) {
  return counted(count, "entry", "entries");
}

const std::vector<std::string> kActions = {"ls",    "stats",   "verify", "prune",
                                           "clear", "explain", "export"};

std::string utc(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

std::string value_of(const cache::Metadata& metadata, const std::string& name) {
  const auto found = metadata.find(name);
  return found == metadata.end() ? "-" : found->second;
}

Json to_json(const cache::Listing& entry) {
  return {{"key", entry.key.digest.hex()},
          {"bytes", entry.bytes},
          {"created", utc(entry.created)},
          {"last_used", utc(entry.last_used)},
          {"problem", entry.problem.empty() ? Json() : Json(entry.problem)},
          {"metadata", entry.metadata}};
}

void require_known(const std::string& action) {
  for (const std::string& known : kActions) {
    if (action == known) return;
  }
  std::string hint = did_you_mean(action, kActions);
  if (hint.empty()) hint = "there are " + one_of(kActions);
  throw Error(ErrorCode::usage, fmt::format("unknown action \"cache {}\"", action), hint);
}

class CacheVerb : public Verb {
 public:
  CacheVerb()
      : Verb("cache", "list, count, verify or remove compiled kernels",
             "tilewright cache prune --max-size 1G") {}

  void declare(CLI::App& app) override {
    app.add_option(
           "ACTION", action_,
           "ls: list every entry; stats: count entries and bytes; verify: read and check every "
           "entry; ls BUNDLE, verify BUNDLE: the same for a bundle; prune: delete leftovers, then "
           "the entries that were unused for longest; clear: delete everything; explain SPEC: say "
           "why its kernels are found or missed; explain NAME: name the spec of a kernel that a "
           "profiler shows; export: write the entries to a bundle")
        ->required();
    app.add_option("FILE", file_,
                   "explain: a spec, a JSON file (docs/spec.md), or the name of a kernel "
                   "(tw_forward_1a2b3c4d, or its last eight digits); ls and verify: a bundle to "
                   "read instead of the cache");
    app.add_option("--target", target_, "explain: the target (default: this machine)");
    app.add_option("--max-size", max_size_,
                   "prune: the size to shrink the cache to, as 500M or 2G (default: "
                   "TILEWRIGHT_CACHE_MAX_SIZE, else 4G); 0: delete leftovers only");
    app.add_flag("--verbose", verbose_,
                 "explain: list also every place that was searched and every input of the key");
    bundle_.declare(app, false);
    add_json_flag(app, json_);
  }

  std::vector<std::string> choices(std::string_view argument) const override {
    return argument == "ACTION" ? kActions : std::vector<std::string>();
  }

  ExitStatus execute() override {
    require_known(action_);
    require_fitting_arguments();
    if (action_ == "explain" && names_kernel()) {
      explain_kernel_name(file_, json_);
      return kDone;
    }
    if (action_ == "explain") {
      explain(file_, target_, json_, verbose_);
      return kDone;
    }
    if (!file_.empty()) {
      if (action_ == "verify") return verify_bundle(file_, json_);
      list_bundle(file_, json_);
      return kDone;
    }
    cache::Store store(
        {.directory = cache::default_directory(), .diagnostics = diagnostics_to_stderr()});
    if (!store.directory()) {
      throw Error(ErrorCode::disk, "there is no cache directory: no home is known",
                  "name one with the environment variable TILEWRIGHT_CACHE");
    }
    directory_ = store.directory()->string();
    // What cannot be read must not pass for an empty cache.
    if (const std::string problem = store.problem(); !problem.empty()) {
      throw Error(ErrorCode::disk, problem,
                  "mend it, or name another directory in TILEWRIGHT_CACHE");
    }
    if (action_ == "ls") list(store.ls());
    if (action_ == "verify") return verify(store.ls());
    if (action_ == "prune") prune(store);
    if (action_ == "stats") count(store.stats());
    if (action_ == "clear") clear(store);
    if (action_ == "export") export_to_bundle(store);
    return kDone;
  }

 private:
  bool names_kernel() const { return is_kernel_name(file_) && !std::filesystem::exists(file_); }

  void list(const std::vector<cache::Listing>& entries) const {
    if (json_) {
      Json list = Json::array();
      for (const cache::Listing& entry : entries) list.push_back(to_json(entry));
      return print_json({{"directory", directory_}, {"entries", list}});
    }
    Table table({"key", "kernel", "target", "spec", "size", "last used"});
    for (const cache::Listing& entry : entries) {
      const std::string kernel =
          entry.problem.empty() ? value_of(entry.metadata, "kernel") : "BAD: " + entry.problem;
      table.add({entry.key.digest.hex().substr(0, 12), kernel, value_of(entry.metadata, "target"),
                 value_of(entry.metadata, "spec"), format_bytes(entry.bytes),
                 utc(entry.last_used)});
    }
    print(entries.empty() ? fmt::format("{}: empty\n", directory_)
                          : fmt::format("{}\n{}", directory_, table.text()));
  }

  void count(const cache::Stats& stats) const {
    const RemoteReport remote = examine_remote();
    if (json_) {
      return print_json(
          {{"directory", directory_},
           {"entries", stats.entries},
           {"bytes", stats.bytes},
           {"max_bytes", cache::default_max_bytes()},
           {"leftovers", {{"files", stats.leftovers.entries}, {"bytes", stats.leftovers.bytes}}},
           {"remote_cache", remote.facts}});
    }
    const std::uint64_t most = cache::default_max_bytes();
    std::string text =
        fmt::format("{}: {}, {} of {}\n", directory_, counted_entries(stats.entries),
                    format_bytes(stats.bytes), most == 0 ? "any number" : format_bytes(most));
    if (stats.leftovers.entries > 0) {
      text += fmt::format("{} set aside or left by killed processes, {}\n",
                          counted(stats.leftovers.entries, "file"),
                          format_bytes(stats.leftovers.bytes));
    }
    text += fmt::format("remote cache: {}\n", remote.text);
    print(text);
  }

  ExitStatus verify(const std::vector<cache::Listing>& entries) const {
    Json bad = Json::array();
    std::string text;
    std::uint64_t bytes = 0;
    for (const cache::Listing& entry : entries) {
      bytes += entry.bytes;
      if (entry.problem.empty()) continue;
      bad.push_back({{"key", entry.key.digest.hex()}, {"problem", entry.problem}});
      text += fmt::format("{}: {}\n", entry.key.digest.hex(), entry.problem);
    }
    if (json_) {
      print_json({{"directory", directory_},
                  {"entries", entries.size()},
                  {"bytes", bytes},
                  {"bad", bad},
                  {"ok", bad.empty()}});
    } else {
      print(text + fmt::format("{}: {}, {}, {} bad\n", directory_, counted_entries(entries.size()),
                               format_bytes(bytes), bad.size()));
      if (!bad.empty())
        print("a bad entry is never loaded, and is built again when it is needed\n");
    }
    return bad.empty() ? kDone : kNegativeVerdict;
  }

  void prune(cache::Store& store) const {
    const std::optional<std::uint64_t> most =
        max_size_.empty() ? cache::default_max_bytes() : cache::parse_size(max_size_);
    if (!most) {
      throw Error(ErrorCode::usage, fmt::format("--max-size {} is no size", max_size_),
                  "give one such as 500M or 2G");
    }
    const cache::Pruned pruned = store.prune(*most);
    if (json_) {
      return print_json({{"directory", directory_},
                         {"max_bytes", *most},
                         {"removed_entries", pruned.removed.entries},
                         {"removed_bytes", pruned.removed.bytes},
                         {"entries", pruned.left.entries},
                         {"bytes", pruned.left.bytes}});
    }
    print(fmt::format("{}: removed {}, {}; {} {} left, {}\n", directory_,
                      counted_entries(pruned.removed.entries), format_bytes(pruned.removed.bytes),
                      pruned.left.entries, is_or_are(pruned.left.entries),
                      format_bytes(pruned.left.bytes)));
  }

  void require_fitting_arguments() const {
    if (action_ == "explain" && file_.empty()) {
      throw Error(ErrorCode::usage, "cache explain needs a spec",
                  "tilewright cache explain examples/alibi.json");
    }
    if (action_ != "prune" && !max_size_.empty()) {
      throw Error(ErrorCode::usage, fmt::format("cache {} takes no --max-size", action_),
                  "it belongs to cache prune");
    }
    if (const std::string option = bundle_.given_option(); action_ != "export" && !option.empty()) {
      throw Error(ErrorCode::usage, fmt::format("cache {} takes no {}", action_, option),
                  "it belongs to cache export");
    }
    if (action_ == "explain" && names_kernel() && (verbose_ || !target_.empty())) {
      throw Error(ErrorCode::usage, "the name of a kernel takes neither --target nor --verbose",
                  "they belong to cache explain SPEC");
    }
    if (action_ == "explain") return;
    if (verbose_) {
      throw Error(ErrorCode::usage, fmt::format("cache {} takes no --verbose", action_),
                  "it belongs to cache explain");
    }
    if (!target_.empty()) {
      throw Error(ErrorCode::usage, fmt::format("cache {} takes no --target", action_),
                  "it belongs to cache explain");
    }
    if (file_.empty() || action_ == "ls" || action_ == "verify") return;
    throw Error(ErrorCode::usage, fmt::format("cache {} takes no file", action_),
                "cache explain takes a spec, cache ls and cache verify a bundle");
  }

  void export_to_bundle(cache::Store& store) {
    bundle_.prepare();
    LeftOut left;
    const BundleSummary summary = bundle_.write(exportable(store, &left));
    if (json_) {
      Json facts = {{"directory", directory_},
                    {"kernels", summary.kernels},
                    {"left_out", left.count()},
                    {"older", left.older}};
      facts.update(to_json(summary));
      return print_json(facts);
    }
    print(describe(summary));
    if (left.own > 0) {
      print(
          fmt::format("{} for \"cpu\", which is this machine's own, {} left out (precompile for "
                      "cpu-x86-64-v3)\n",
                      counted_entries(left.own), was_or_were(left.own)));
    }
    if (left.bad > 0) {
      print(fmt::format("{} left out: bad, or another version's (tilewright cache verify)\n",
                        counted_entries(left.bad)));
    }
    for (const std::string& older : left.older) {
      print(fmt::format("left out, because a newer entry is the same kernel: {}\n", older));
    }
  }

  void clear(cache::Store& store) const {
    const cache::Usage removed = store.clear();
    const cache::Stats left = store.stats();
    if (json_) {
      print_json({{"directory", directory_},
                  {"removed_entries", removed.entries},
                  {"removed_bytes", removed.bytes},
                  {"entries", left.entries}});
    } else {
      print(fmt::format("{}: removed {}, {}\n", directory_, counted_entries(removed.entries),
                        format_bytes(removed.bytes)));
    }
    if (left.entries == 0) return;
    throw Error(ErrorCode::disk, counted_entries(left.entries) + " could not be removed",
                fmt::format("check the permissions of \"{}\"", directory_));
  }

  std::string action_;
  std::string max_size_;
  std::string directory_;
  std::string file_;
  std::string target_;
  BundleFile bundle_;
  bool verbose_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_cache_verb() {
  return std::make_unique<CacheVerb>();
}

}  // namespace tilewright::cli
