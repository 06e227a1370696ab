#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "../base/diagnostics.hpp"
#include "../base/error.hpp"
#include "disk.hpp"
#include "entry.hpp"
#include "remote_cache.hpp"

namespace tilewright::cache {

/// Where an entry came from.
enum class Source { memory, disk, remote, built };

/// "memory", "disk", "remote", "built".
std::string_view to_string(Source source);

/// What is stored now, and what happened since this Store was made.
struct Stats {
  std::uint64_t entries = 0;  ///< on disk
  std::uint64_t bytes = 0;    ///< of their files
  Usage leftovers;            ///< files set aside, or left by processes that were killed

  std::uint64_t hits_memory = 0;  ///< waiting for another thread that builds the same included
  std::uint64_t hits_disk = 0;
  std::uint64_t builds = 0;         ///< that succeeded
  std::uint64_t failed_builds = 0;  ///< asked for again, and not tried again
  std::uint64_t evictions = 0;      ///< entries that this Store removed to make room
  std::uint64_t bad_entries = 0;    ///< torn, altered, swapped or foreign: set aside
  std::uint64_t failures = 0;       ///< times that the disk could not be used
  RemoteStats remote;               ///< of the remote cache, which other Stores may use too
};

/// A failure that would be met again: where `build` throws it, the Store remembers it for its own
/// life and throws it to each caller that asks for that key, without building. Nothing of it is on
/// disk.
class LastingFailure : public Error {
 public:
  explicit LastingFailure(const Error& error) : Error(error) {}
};

/// A cache of built things, kept in memory and in one directory that many processes share.
///
/// Each key is built once: threads wait for one another in memory, processes through a lock that
/// the kernel frees when its holder dies. An entry from disk is verified before it is used, and a
/// bad one is set aside and built again. Where the directory cannot be used (read-only, full,
/// missing, another user's), everything works without it, and the sink hears of it once.
///
/// After the directory the store may ask a remote cache, which many machines share. What it has is
/// written to the directory; what is built is offered to it. Where it fails or lies, the sink hears
/// of that once as well.
///
/// Safe to use from many threads. A child made by fork() while another thread builds must not use
/// its parent's Store.
class Store {
 public:
  struct Options {
    std::optional<std::filesystem::path> directory =
        {};  ///< see default_directory(); none: memory only
    DiagnosticsSink diagnostics = {};
    std::size_t memory_bytes = std::size_t{256} << 20;  ///< of payloads kept in memory
    /// Of entries on disk; 0: no limit. Where there are more, those that were not used for longest
    /// are removed. Processes that store at the same time may go beyond it, by a sixteenth each.
    std::uint64_t max_bytes = std::uint64_t{4} << 30;
    /// How long to wait for a process that builds the same key before building it here too. It
    /// only matters where that process is stopped; one that died holds nothing.
    std::chrono::milliseconds lock_patience = std::chrono::minutes(5);
    std::shared_ptr<RemoteCache> remote = {};  ///< asked after the disk, before building; or none
  };

  struct Result {
    std::shared_ptr<const Entry> entry;  ///< never null
    Source source = Source::memory;
  };

  explicit Store(Options options);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// The entry of `key` from memory or disk, or null. Does not wait for one that is being built.
  std::shared_ptr<const Entry> load(const Key& key);

  /// The entry of `key`, from memory, disk, the remote cache, or from `build`, whose result is
  /// stored under `key` (the key that it holds itself is ignored). What `build` throws goes to this
  /// caller and to the threads that waited for it; nothing is stored, and the next caller tries
  /// again, except after a LastingFailure. `build` may use the store for other keys.
  Result load_or_build(const Key& key, const std::function<Entry()>& build);

  /// The entries on disk, verified, by rising key; bad ones with their problem.
  std::vector<Listing> ls() const;

  Stats stats() const;

  /// Forgets everything in memory and removes everything on disk; returns what was on disk.
  Usage clear();

  /// Sweeps leftovers, and removes what was not used for longest until at most `max_bytes` are
  /// left; 0 only sweeps.
  Pruned prune(std::uint64_t max_bytes);

  /// What another process, or this one earlier, noted under `name`; nothing where there is no note.
  /// For what is costly to find out and cheap to check. Notes fail silently.
  std::optional<std::string> note(std::string_view name) const;
  void keep_note(std::string_view name, std::string text) const;

  /// Why the directory cannot be read now, so that what ls() and stats() say of it is not taken for
  /// the truth; empty where it can be read, or is not there yet.
  std::string problem() const;

  /// The directory as an absolute path, for messages.
  const std::optional<std::filesystem::path>& directory() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright::cache
