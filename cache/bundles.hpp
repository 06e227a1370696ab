#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "../base/diagnostics.hpp"
#include "bundle.hpp"
#include "memory_table.hpp"

namespace tilewright::cache {

/// The bundles that $TILEWRIGHT_BUNDLES names, separated by colons, in the order in which they are
/// asked. None in a set-user-id program, whose environment is another user's.
std::vector<std::filesystem::path> bundle_paths();

/// The public keys that $TILEWRIGHT_BUNDLE_KEY names, separated by colons: PublicKey::parse() says
/// how. Where there are any, a bundle must be signed by one of them.
/// @throws Error with code usage or file: a key that cannot be read must not mean "any key"
std::vector<PublicKey> trusted_keys();

/// Several bundles, asked one after the other before anything else is. A bundle or an entry that
/// must not be used is reported to the sink once, and is a miss. Safe to use from many threads.
class Bundles {
 public:
  struct Options {
    std::vector<std::filesystem::path> paths = {};
    std::vector<PublicKey> trusted = {};  ///< empty: bundles need not be signed
    DiagnosticsSink diagnostics = {};
    std::size_t memory_bytes = std::size_t{256} << 20;  ///< of payloads kept in memory
  };

  /// One of the paths.
  struct Opened {
    std::filesystem::path path;
    std::shared_ptr<const Bundle> bundle;  ///< null where it must not be used
    std::string problem;                   ///< then: why, a sentence
  };

  /// An entry of one of them; false where there is none.
  struct Found {
    const Bundle* bundle = nullptr;
    std::size_t entry = 0;
    explicit operator bool() const { return bundle != nullptr; }
  };

  Bundles() : Bundles(Options{}) {}
  explicit Bundles(Options options);
  /// Those of the environment: bundle_paths(), trusted_keys().
  /// @throws Error as trusted_keys()
  static std::shared_ptr<const Bundles> from_environment(DiagnosticsSink diagnostics = {});

  /// Reports from now on to this sink too, where there was none so far, what was reported before
  /// included.
  void attach(const DiagnosticsSink& diagnostics) const;

  const std::vector<Opened>& opened() const { return opened_; }
  bool empty() const { return opened_.empty(); }

  Found find(const Digest& request) const;
  Found find_memo(const Digest& memo) const;
  /// Whether an entry has this ingredient. The first question reads all facts; later ones do not.
  bool has_ingredient(const std::string& tag, const std::string& value) const;

  struct Loaded {
    std::shared_ptr<const Entry> entry;  ///< null where no bundle has one that may be used
    bool from_memory = false;
    Found found = {};  ///< where it is
  };
  /// The first verified entry.
  Loaded load(const Digest& request) const;
  Loaded load_memo(const Digest& memo) const;

 private:
  using Finder = std::optional<std::size_t> (Bundle::*)(const Digest&) const;
  Found find_with(Finder finder, const Digest& digest) const;
  Loaded load_with(Finder finder, const Digest& digest) const;
  Loaded load_entry(const Found& found) const;
  void report(const std::string& message) const;

  std::vector<Opened> opened_;
  mutable MemoryTable memory_;
  mutable std::mutex mutex_;
  mutable DiagnosticsSink diagnostics_;
  mutable std::set<std::string> reported_;
  mutable std::map<std::string, std::set<std::string>> ingredients_;  // of every short value
};

}  // namespace tilewright::cache
