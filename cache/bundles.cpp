#include "cache/bundles.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/report.hpp"

namespace tilewright::cache {
namespace {

constexpr const char* kKeyVariable = "TILEWRIGHT_BUNDLE_KEY";

// A set-user-id program's environment belongs to another user.
bool is_privileged() {
  return ::getuid() != ::geteuid() || ::getgid() != ::getegid();
}

[[noreturn]] void refuse_empty_key(const std::string& why) {
  throw Error(ErrorCode::usage, fmt::format("{}: {}", kKeyVariable, why),
              "separate keys by one colon, or unset it to need no signature");
}

// What colons separate, empty words too; nothing where the variable is empty.
std::vector<std::string> words_of(const char* variable) {
  std::vector<std::string> words;
  if (is_privileged()) return words;
  const char* const value = std::getenv(variable);
  std::string_view rest = value ? value : "";
  if (rest.empty()) return words;
  for (;;) {
    const std::size_t end = rest.find(':');
    words.emplace_back(rest.substr(0, end));
    if (end == std::string_view::npos) return words;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace

std::vector<std::filesystem::path> bundle_paths() {
  std::vector<std::filesystem::path> paths;
  for (const std::string& word : words_of("TILEWRIGHT_BUNDLES")) {
    if (!word.empty()) paths.emplace_back(word);
  }
  return paths;
}

std::vector<PublicKey> trusted_keys() {
  std::vector<PublicKey> keys;
  const char* const value = std::getenv(kKeyVariable);
  if (value && !*value && !is_privileged()) refuse_empty_key("it is set and empty");
  for (const std::string& word : words_of(kKeyVariable)) {
    // A variable of a script that was empty must not mean that no signature is needed.
    if (word.empty()) {
      refuse_empty_key("a key is empty");
    }
    try {
      keys.push_back(PublicKey::parse(word));
    } catch (const Error& error) {
      throw Error(error.code(), "TILEWRIGHT_BUNDLE_KEY: " + error.message(), error.hint());
    }
  }
  return keys;
}

Bundles::Bundles(Options options)
    : memory_(options.memory_bytes), diagnostics_(std::move(options.diagnostics)) {
  for (const std::filesystem::path& path : options.paths) {
    Opened opened{.path = path, .bundle = nullptr, .problem = {}};
    try {
      opened.bundle = Bundle::open(path, options.trusted);
    } catch (const Error& error) {
      opened.problem = error.message();
      report(error.message());
    }
    opened_.push_back(std::move(opened));
  }
}

std::shared_ptr<const Bundles> Bundles::from_environment(DiagnosticsSink diagnostics) {
  return std::make_shared<const Bundles>(Options{
      .paths = bundle_paths(), .trusted = trusted_keys(), .diagnostics = std::move(diagnostics)});
}

Bundles::Found Bundles::find(const Digest& request) const {
  return find_with(&Bundle::find, request);
}

Bundles::Found Bundles::find_memo(const Digest& memo) const {
  return find_with(&Bundle::find_memo, memo);
}

Bundles::Loaded Bundles::load(const Digest& request) const {
  return load_with(&Bundle::find, request);
}

Bundles::Loaded Bundles::load_memo(const Digest& memo) const {
  return load_with(&Bundle::find_memo, memo);
}

Bundles::Found Bundles::find_with(Finder finder, const Digest& digest) const {
  for (const Opened& opened : opened_) {
    if (!opened.bundle) continue;
    if (const auto entry = (*opened.bundle.*finder)(digest)) return {opened.bundle.get(), *entry};
  }
  return {};
}

Bundles::Loaded Bundles::load_with(Finder finder, const Digest& digest) const {
  for (const Opened& opened : opened_) {
    if (!opened.bundle) continue;
    const auto entry = (*opened.bundle.*finder)(digest);
    if (!entry) continue;
    if (Loaded loaded = load_entry({opened.bundle.get(), *entry}); loaded.entry) return loaded;
  }
  return {};
}

Bundles::Loaded Bundles::load_entry(const Found& found) const {
  const BundleRecord& record = found.bundle->record(found.entry);
  if (auto entry = memory_.find({record.digest})) return {std::move(entry), true, found};
  Bundle::Loaded loaded = found.bundle->load(found.entry);
  if (!loaded.entry) {
    report(fmt::format("the entry {} of the bundle \"{}\" must not be used: {}",
                       record.request.hex(), found.bundle->path().native(), loaded.problem));
    return {};
  }
  memory_.insert(loaded.entry);
  return {std::move(loaded.entry), false, found};
}

bool Bundles::has_ingredient(const std::string& tag, const std::string& value) const {
  const std::lock_guard lock(mutex_);
  if (ingredients_.empty()) {
    ingredients_[""];  // read, whatever there is
    for (const Opened& opened : opened_) {
      for (std::size_t entry = 0; opened.bundle && entry < opened.bundle->size(); ++entry) {
        const std::optional<BundleFacts> facts = opened.bundle->facts(entry);
        if (!facts) continue;
        for (const Ingredient& i : facts->ingredients) ingredients_[i.tag].insert(i.value);
      }
    }
  }
  const auto values = ingredients_.find(tag);
  return values != ingredients_.end() && values->second.contains(value);
}

void Bundles::attach(const DiagnosticsSink& diagnostics) const {
  std::set<std::string> earlier;
  {
    const std::lock_guard lock(mutex_);
    if (diagnostics_ || !diagnostics) return;
    diagnostics_ = diagnostics;
    earlier = reported_;
  }
  for (const std::string& message : earlier)
    tilewright::report(diagnostics, Severity::warning, message);
}

void Bundles::report(const std::string& message) const {
  DiagnosticsSink diagnostics;
  {
    const std::lock_guard lock(mutex_);
    if (!reported_.insert(message).second) return;
    diagnostics = diagnostics_;
  }
  tilewright::report(diagnostics, Severity::warning, message);
}

}  // namespace tilewright::cache
