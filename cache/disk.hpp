#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "directory.hpp"
#include "entry.hpp"
#include "load_result.hpp"
#include "lock.hpp"

namespace tilewright::cache {

/// One line of `cache ls`.
struct Listing {
  Key key;
  Metadata metadata;
  std::uint64_t bytes = 0;  ///< of the file
  std::chrono::system_clock::time_point created;
  std::chrono::system_clock::time_point last_used;  ///< to a minute
  std::string problem;  ///< not empty: the entry will not be used, and has no metadata here
};

/// How much there is, or was removed.
struct Usage {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
};

/// What prune() did.
struct Pruned {
  Usage removed;
  Usage left;
};

/// The files of the cache:
///
///     <directory>/v1/ab/ab12...ef.twk     an entry; its name is its key
///     <directory>/v1/ab/ab12...ef.bad     an entry that was set aside
///     <directory>/v1/ab/.tmp-...          an entry that is being written
///     <directory>/v1/locks/ab12...ef.lock
///     <directory>/v1/notes/ab12...ef.note  what a process found out, for the next one
///
/// Has no state but the path: folders are opened and checked anew each time, so a directory that
/// is deleted, repaired or filled while the process runs needs no restart. Nothing here throws for
/// what the disk does (only for bad_alloc): it comes back as a problem, a clause for a warning.
class Disk {
 public:
  /// Without a directory every call fails with the same problem.
  explicit Disk(std::optional<std::filesystem::path> directory);

  /// Reads, verifies, and notes the time of use.
  LoadResult load(const Key& key) const;

  /// KeyLock::try_acquire() for this directory, which is created where it is absent.
  KeyLock try_lock(const Key& key) const;

  /// Renames the file of `key` out of the way, or removes it. Only under its lock: it could be a
  /// new, good one. Returns the problem, or an empty text.
  std::string set_aside(const Key& key) const;

  /// Writes the entry; returns the problem, or an empty text.
  std::string publish(const Entry& entry) const;

  /// All entries, verified, by rising key.
  std::vector<Listing> list() const;

  /// Their number and size, without reading them.
  Usage usage() const;

  /// Files that are no entries: what was set aside, and what killed processes left.
  Usage leftovers() const;

  /// Sweeps what killed processes left, and where the entries take more than `max_bytes`, removes
  /// those that were not used for longest until an eighth of the room is free again. One that is
  /// being read or written now stays.
  enum class Depth {
    entries,  ///< the folders of entries
    all,      ///< lock files without a holder as well
  };
  Pruned prune(std::uint64_t max_bytes, Depth depth) const;

  /// A note, or null: not there, or not to be trusted. Notes are as private as entries.
  std::shared_ptr<const Entry> load_note(const Key& key) const;

  /// Stores a note; returns the problem, or an empty text.
  std::string publish_note(const Entry& note) const;

  /// Removes entries, notes, what was set aside, unused lock files and stale temporary files. Other
  /// processes may go on working: who has read an entry keeps it, who is building one stores it.
  Usage clear() const;

  /// Why the directory, or a folder of entries in it, cannot be read now; empty where all can, or
  /// the directory is not there yet.
  std::string problem() const;

  const std::optional<std::filesystem::path>& directory() const { return directory_; }

 private:
  PrivateFolder open_below(const std::string& name, IfAbsent if_absent) const;
  void for_each_shard(const std::function<void(const std::string& name, int folder)>& visit) const;
  void remove_unused_locks() const;
  std::string publish_in(const std::string& folder, const std::string& name,
                         const Entry& entry) const;

  std::optional<std::filesystem::path> directory_;
};

}  // namespace tilewright::cache
