#include <ctime>
#include <string>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cache/store.hpp"
#include "cli/arguments.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"

namespace tilewright::cli {
namespace {

const std::vector<std::string> kActions = {"ls", "stats", "clear"};
const std::vector<std::string> kLaterActions = {"verify", "prune", "explain", "export"};

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
  std::vector<std::string> all = kActions;
  all.insert(all.end(), kLaterActions.begin(), kLaterActions.end());
  for (const std::string& known : kActions) {
    if (action == known) return;
  }
  for (const std::string& later : kLaterActions) {
    if (action != later) continue;
    throw Error(ErrorCode::usage,
                fmt::format("not yet: \"cache {}\" comes with a later version", action),
                "today there are " + one_of(kActions));
  }
  std::string hint = did_you_mean(action, all);
  if (hint.empty()) hint = "there are " + one_of(kActions);
  throw Error(ErrorCode::usage, fmt::format("unknown action \"cache {}\"", action), hint);
}

class CacheVerb : public Verb {
 public:
  CacheVerb()
      : Verb("cache", "list, count or remove compiled kernels", "tilewright cache ls --json") {}

  void declare(CLI::App& app) override {
    app.add_option("ACTION", action_,
                   "ls: every entry; stats: how many and how large; clear: remove all")
        ->required();
    add_json_flag(app, json_);
  }

  ExitStatus execute() override {
    require_known(action_);
    cache::Store store(
        {.directory = cache::default_directory(), .diagnostics = diagnostics_to_stderr()});
    if (!store.directory()) {
      throw Error(ErrorCode::disk, "there is no cache directory: no home is known",
                  "name one with the environment variable TILEWRIGHT_CACHE");
    }
    directory_ = store.directory()->string();
    if (action_ == "ls") list(store.ls());
    if (action_ == "stats") count(store.stats());
    if (action_ == "clear") clear(store);
    return kDone;
  }

 private:
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
    if (json_) {
      return print_json(
          {{"directory", directory_}, {"entries", stats.entries}, {"bytes", stats.bytes}});
    }
    print(
        fmt::format("{}: {} entries, {}\n", directory_, stats.entries, format_bytes(stats.bytes)));
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
      print(fmt::format("{}: removed {} entries, {}\n", directory_, removed.entries,
                        format_bytes(removed.bytes)));
    }
    if (left.entries == 0) return;
    throw Error(ErrorCode::disk, fmt::format("{} entries could not be removed", left.entries),
                fmt::format("check the permissions of \"{}\"", directory_));
  }

  std::string action_;
  std::string directory_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_cache_verb() {
  return std::make_unique<CacheVerb>();
}

}  // namespace tilewright::cli
