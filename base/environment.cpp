#include "base/environment.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <set>
#include <sstream>

#include <unistd.h>

#include "base/nearest_name.hpp"

namespace tilewright {
namespace {

constexpr std::string_view kPrefix = "TILEWRIGHT_";

constexpr std::array kVariables = {
    EnvironmentVariable{"TILEWRIGHT_BUNDLES",
                        "precompiled kernels, asked before the cache, separated by colons"},
    EnvironmentVariable{"TILEWRIGHT_BUNDLE_KEY",
                        "public keys: one of them must have signed a bundle"},
    EnvironmentVariable{"TILEWRIGHT_CACHE", "the folder of compiled kernels"},
    EnvironmentVariable{"TILEWRIGHT_CACHE_MAX_SIZE", "how large the cache may become: 500M, 2G"},
    EnvironmentVariable{"TILEWRIGHT_COMPILE_MEMORY", "MiB that a compile may take"},
    EnvironmentVariable{"TILEWRIGHT_COMPILE_TIMEOUT", "seconds that a compile may take"},
    EnvironmentVariable{"TILEWRIGHT_CXX", "the C++ compiler, with arguments if need be"},
    EnvironmentVariable{"TILEWRIGHT_DEVICE", "what auto means: cpu, cuda or cuda:N"},
    EnvironmentVariable{"TILEWRIGHT_JIT", "off: nothing is ever compiled"},
    EnvironmentVariable{"TILEWRIGHT_LINEINFO",
                        "on: GPU kernels tell profilers the lines of their source"},
    EnvironmentVariable{"TILEWRIGHT_LOG",
                        "where events are written: stderr or a file, with :debug for more"},
    EnvironmentVariable{"TILEWRIGHT_NCCL", "the NCCL library to use"},
    EnvironmentVariable{"TILEWRIGHT_NVRTC", "the NVRTC library to use"},
    EnvironmentVariable{"TILEWRIGHT_REMOTE_CACHE", "a server that machines share kernels through"},
    EnvironmentVariable{"TILEWRIGHT_REMOTE_CACHE_MODE",
                        "what the server is used for: read or readwrite"},
    EnvironmentVariable{"TILEWRIGHT_REMOTE_CACHE_TIMEOUT",
                        "seconds that a look-up and an upload may take"},
    EnvironmentVariable{
        "TILEWRIGHT_RESIDENT",
        "on: short sequences' k and v stay in shared memory wherever they fit; off: nowhere"},
    EnvironmentVariable{"TILEWRIGHT_TEMPLATES",
                        "a folder of templates in place of the embedded ones"},
    EnvironmentVariable{"TILEWRIGHT_THREADS", "threads of the CPU backend"},
    EnvironmentVariable{"TILEWRIGHT_TUNED", "off: tactics that tune remembered are not used"},
    EnvironmentVariable{"TILEWRIGHT_WORKER", "the executable that compiles for a program, or off"},
};

bool belongs_to_others(std::string_view name) {
  for (const std::string_view prefix :
       {"TILEWRIGHT_TEST_", "TILEWRIGHT_EMULATED_", "TILEWRIGHT_BUILD_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

// How many of the words between underscores are in both names.
std::size_t shared_words(const std::string& a, const std::string& b) {
  const auto words_of = [](const std::string& name) {
    std::set<std::string> words;
    std::istringstream stream(name);
    for (std::string word; std::getline(stream, word, '_');) words.insert(word);
    return words;
  };
  const std::set<std::string> others = words_of(b);
  std::size_t shared = 0;
  for (const std::string& word : words_of(a)) shared += others.count(word);
  return shared;
}

// By spelling; else the shortest name that shares most words: CACHE_DIR is near CACHE.
std::string nearest_ending(const std::string& ending, const std::vector<std::string>& endings) {
  if (const auto nearest = nearest_name(ending, endings)) return *nearest;
  std::string nearest;
  std::size_t most = 0;
  for (const std::string& candidate : endings) {
    const std::size_t shared = shared_words(ending, candidate);
    const bool is_shorter = shared == most && candidate.size() < nearest.size();
    if (shared > most || is_shorter) nearest = candidate;
    most = std::max(most, shared);
  }
  return nearest;
}

// A name whose prefix is misspelt too: "TILEWRIGTH_CACHE", "tilewright_cache".
std::string meant_by_other_prefix(const std::string& name) {
  constexpr std::string_view kBeginning = "tile";
  const bool begins_alike = std::equal(
      kBeginning.begin(), kBeginning.end(), name.begin(),
      name.begin() + static_cast<std::ptrdiff_t>(std::min(kBeginning.size(), name.size())),
      [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
  if (!begins_alike) return {};
  std::vector<std::string> names;
  for (const EnvironmentVariable& variable : kVariables) names.emplace_back(variable.name);
  return nearest_name(name, names).value_or("");
}

// The part after the prefix decides how near a name is: the prefix is everyone's.
std::vector<std::string> known_endings() {
  std::vector<std::string> endings;
  for (const EnvironmentVariable& variable : kVariables) {
    endings.emplace_back(variable.name.substr(kPrefix.size()));
  }
  return endings;
}

}  // namespace

std::span<const EnvironmentVariable> environment_variables() {
  return kVariables;
}

std::vector<UnknownVariable> unknown_variables(std::span<const std::string> environment) {
  const std::vector<std::string> endings = known_endings();
  std::vector<UnknownVariable> unknown;
  for (const std::string& entry : environment) {
    const std::string name = entry.substr(0, entry.find('='));
    if (belongs_to_others(name)) continue;
    if (!name.starts_with(kPrefix)) {
      const std::string meant = meant_by_other_prefix(name);
      if (!meant.empty()) unknown.push_back({name, meant});
      continue;
    }
    const std::string ending = name.substr(kPrefix.size());
    if (std::find(endings.begin(), endings.end(), ending) != endings.end()) continue;
    const std::string nearest = nearest_ending(ending, endings);
    unknown.push_back({name, nearest.empty() ? "" : std::string(kPrefix) + nearest});
  }
  std::sort(unknown.begin(), unknown.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return unknown;
}

std::vector<UnknownVariable> unknown_variables() {
  std::vector<std::string> environment;
  for (char** entry = ::environ; entry && *entry; ++entry) environment.emplace_back(*entry);
  return unknown_variables(environment);
}

std::string describe(const UnknownVariable& variable) {
  const std::string text = variable.name + " is set, but tilewright reads no variable of that name";
  return variable.nearest.empty() ? text : text + ": did you mean " + variable.nearest + "?";
}

void report_unknown_variables(const DiagnosticsSink& diagnostics) {
  static std::atomic<bool> reported = false;
  if (!diagnostics || reported.exchange(true)) return;
  for (const UnknownVariable& variable : unknown_variables()) {
    diagnostics(Severity::warning, describe(variable));
  }
}

}  // namespace tilewright
