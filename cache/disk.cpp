#include "cache/disk.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.hpp"

namespace tilewright::cache {
namespace {

constexpr std::string_view kVersionFolder = "v1";
constexpr std::string_view kLockFolder = "locks";
constexpr std::string_view kNoteFolder = "notes";
constexpr std::string_view kNoteSuffix = ".note";
constexpr std::string_view kEntrySuffix = ".twk";
constexpr std::string_view kBadSuffix = ".bad";
constexpr mode_t kEntryMode = 0600;
constexpr std::time_t kStaleTemporarySeconds = 600;  // no writer takes that long
constexpr std::time_t kBadEntrySeconds = 86400;      // for a look at what happened
constexpr std::time_t kLastUsedSeconds = 60;         // how exact the time of use is
constexpr std::time_t kClockSeconds = 60;            // how far clocks may be apart

std::string shard_name(const Key& key) {
  return key.digest.hex().substr(0, 2);
}
bool is_shard_name(std::string_view name) {
  constexpr std::string_view kHashDigits = "0123456789abcdef";
  return name.size() == 2 && name.find_first_not_of(kHashDigits) == std::string_view::npos;
}
std::string entry_name(const Key& key) {
  return key.digest.hex().append(kEntrySuffix);
}
std::string note_name(const Key& key) {
  return key.digest.hex().append(kNoteSuffix);
}
std::string bad_name(const Key& key) {
  return key.digest.hex().append(kBadSuffix);
}

// The key of "<64 hex digits><suffix>".
std::optional<Key> key_of(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return std::nullopt;
  const auto digest = Digest::from_hex(name.substr(0, name.size() - suffix.size()));
  if (!digest) return std::nullopt;
  return Key{*digest};
}

std::chrono::system_clock::time_point to_time_point(const timespec& time) {
  using namespace std::chrono;
  return system_clock::time_point(
      duration_cast<system_clock::duration>(seconds(time.tv_sec) + nanoseconds(time.tv_nsec)));
}

// Why a file with this status is not taken for an entry; empty where it may be one.
std::string refusal(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return "it is not a regular file";
  if (status.st_uid != ::geteuid()) return fmt::format("it belongs to user {}", status.st_uid);
  if ((status.st_mode & 022) != 0) return "others can write to it";
  if (status.st_nlink > 1) return "it has a second name (hard link)";
  if (static_cast<std::uint64_t>(status.st_size) > kMaxEntryBytes) {
    return std::string(to_string(Defect::too_large));
  }
  return {};
}

// Set while a clock was wrong, so it says nothing.
bool is_in_future(const timespec& time) {
  return time.tv_sec > std::time(nullptr) + kClockSeconds;
}

// The access time is kept by hand, because most file systems are mounted to keep it rarely or
// never.
void note_use(const FileDescriptor& file, const struct stat& status) {
  const bool is_new = status.st_atim.tv_sec > std::time(nullptr) - kLastUsedSeconds;
  const bool is_wrong = is_in_future(status.st_atim) || is_in_future(status.st_mtim);
  if (is_new && !is_wrong) return;
  const long modified = is_in_future(status.st_mtim) ? UTIME_NOW : UTIME_OMIT;
  const timespec times[2] = {{0, UTIME_NOW}, {0, modified}};
  static_cast<void>(::futimens(file.get(), times));
}

struct ReadEntry {
  LoadResult result;
  OpenedFile opened;
};

ReadEntry read_entry(int folder, const Key& key, const std::string& name) {
  using Status = LoadResult::Status;
  ReadEntry read{{}, open_for_reading(folder, name, false)};
  const auto finish = [&](Status status, std::string problem = {}) {
    read.result.status = status;
    read.result.problem = std::move(problem);
    return std::move(read);
  };
  const std::error_code open_error = read.opened.error;
  if (open_error == std::errc::no_such_file_or_directory) return finish(Status::miss);
  if (open_error == std::errc::too_many_symbolic_link_levels) {
    return finish(Status::bad, "it is a symbolic link");
  }
  if (open_error == std::errc::no_such_device_or_address) {
    return finish(Status::bad, "it is not a regular file");  // a socket
  }
  if (open_error) return finish(Status::failed, open_error.message());
  if (std::string why = refusal(read.opened.status); !why.empty()) {
    return finish(Status::bad, std::move(why));
  }
  // Until it is closed, so that it is not evicted meanwhile. Where it cannot be had, nothing is
  // lost: an open file stays whole when its name goes.
  static_cast<void>(::flock(read.opened.file.get(), LOCK_SH | LOCK_NB));
  std::vector<std::byte> bytes;
  const auto size = static_cast<std::size_t>(read.opened.status.st_size);
  const std::error_code error = read_whole(read.opened.file, size, bytes);
  if (error == std::errc::device_or_resource_busy) {
    return finish(Status::bad, "it changed while it was read");
  }
  if (error) return finish(Status::failed, error.message());
  Decoded decoded = decode(std::move(bytes), key);
  if (!decoded.entry) return finish(Status::bad, std::string(to_string(decoded.defect)));
  read.result.entry = std::make_shared<const Entry>(std::move(*decoded.entry));
  return finish(Status::hit);
}

// Calls `visit` for what is in the folder, by rising name. An unreadable folder counts as empty.
template <typename Visit>
void for_each_name(int folder, const Visit& visit) {
  std::vector<std::string> names;
  if (list_folder(folder, names)) return;
  for (const std::string& name : names) visit(name);
}

// As far in the future is as old: no clock that is right wrote that.
bool is_older(int folder, const std::string& name, std::time_t seconds) {
  struct stat status {};
  if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  const std::time_t age = std::time(nullptr) - status.st_mtim.tv_sec;
  return age > seconds || age < -seconds;
}

bool is_stale(int folder, const std::string& name) {
  if (name.starts_with(kTemporaryPrefix)) return is_older(folder, name, kStaleTemporarySeconds);
  return key_of(name, kBadSuffix) && is_older(folder, name, kBadEntrySeconds);
}

// Removes what killed processes left.
void remove_stale(int folder, const std::string& name) {
  if (is_stale(folder, name)) ::unlinkat(folder, name.c_str(), 0);
}
void remove_stale(int folder) {
  for_each_name(folder, [&](const std::string& name) { remove_stale(folder, name); });
}

// Where all that is known lies in the future, the beginning of time: as if never used.
timespec last_use(const struct stat& status) {
  timespec last{};
  for (const timespec& time : {status.st_atim, status.st_mtim}) {
    const bool is_later =
        std::pair(time.tv_sec, time.tv_nsec) > std::pair(last.tv_sec, last.tv_nsec);
    if (is_later && !is_in_future(time)) last = time;
  }
  return last;
}

struct Candidate {
  timespec last_use;
  std::string name;
  ino_t inode;
  std::uint64_t bytes;
};

// False if another process is reading it.
bool evict(int folder, const Candidate& candidate) {
  const OpenedFile opened = open_for_reading(folder, candidate.name, false);
  if (opened.error == std::errc::no_such_file_or_directory) return true;
  if (opened.file && S_ISREG(opened.status.st_mode)) {
    if (opened.status.st_ino != candidate.inode) return false;  // it has just been written
    if (::flock(opened.file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  }
  return ::unlinkat(folder, candidate.name.c_str(), 0) == 0 || errno == ENOENT;
}

// Also a directory that stands where an entry should, as long as it is empty.
bool remove(int folder, const std::string& name) {
  return ::unlinkat(folder, name.c_str(), 0) == 0 ||
         ::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0;
}

}  // namespace

Disk::Disk(std::optional<std::filesystem::path> directory) : directory_(std::move(directory)) {
  // Another working directory later must not mean another cache.
  std::error_code ignored;
  if (directory_ && directory_->is_relative()) {
    const std::filesystem::path working_directory = std::filesystem::current_path(ignored);
    directory_ = working_directory / *directory_;
  }
}

LoadResult Disk::load(const Key& key) const {
  const PrivateFolder shard = open_below(shard_name(key), IfAbsent::report);
  if (shard.absent) return {};
  if (!shard.folder) return {LoadResult::Status::failed, nullptr, shard.problem};
  ReadEntry read = read_entry(shard.folder.get(), key, entry_name(key));
  if (read.result.status == LoadResult::Status::hit) note_use(read.opened.file, read.opened.status);
  if (!read.result.problem.empty()) {
    const auto path = *directory_ / kVersionFolder / shard_name(key) / entry_name(key);
    read.result.problem = fmt::format(
        "the entry \"{}\" {}: {}", path.native(),
        read.result.status == LoadResult::Status::bad ? "must not be used" : "cannot be read",
        read.result.problem);
  }
  return std::move(read.result);
}

KeyLock Disk::try_lock(const Key& key) const {
  const std::string name(kLockFolder);
  PrivateFolder locks = open_below(name, IfAbsent::create);
  if (!locks.folder) return KeyLock::unavailable(std::move(locks.problem));
  return KeyLock::try_acquire(std::move(locks.folder), key, *directory_ / kVersionFolder / name);
}

std::string Disk::set_aside(const Key& key) const {
  PrivateFolder shard = open_below(shard_name(key), IfAbsent::report);
  if (!shard.folder) return std::move(shard.problem);
  const int folder = shard.folder.get();
  const std::string name = entry_name(key);
  const std::string aside = bad_name(key);
  if (::renameat(folder, name.c_str(), folder, aside.c_str()) == 0) return {};
  const std::error_code error = last_system_error();
  return remove(folder, name) ? std::string() : error.message();
}

std::string Disk::publish(const Entry& entry) const {
  return publish_in(shard_name(entry.key), entry_name(entry.key), entry);
}

std::string Disk::publish_note(const Entry& note) const {
  return publish_in(std::string(kNoteFolder), note_name(note.key), note);
}

std::shared_ptr<const Entry> Disk::load_note(const Key& key) const {
  const PrivateFolder notes = open_below(std::string(kNoteFolder), IfAbsent::report);
  if (!notes.folder) return nullptr;
  return read_entry(notes.folder.get(), key, note_name(key)).result.entry;
}

std::string Disk::publish_in(const std::string& folder, const std::string& name,
                             const Entry& entry) const {
  std::vector<std::byte> bytes;
  try {
    bytes = encode(entry);
  } catch (const Error& error) {
    return error.message();
  }
  const PrivateFolder opened = open_below(folder, IfAbsent::create);
  if (!opened.folder) return opened.problem;
  remove_stale(opened.folder.get());
  const std::error_code error = publish_file(opened.folder.get(), name, bytes, kEntryMode);
  if (!error) return {};
  const auto path = *directory_ / kVersionFolder / folder / name;
  return fmt::format("cannot write \"{}\": {}", path.native(), error.message());
}

std::vector<Listing> Disk::list() const {
  std::vector<Listing> listings;
  for_each_shard([&](const std::string&, int folder) {
    for_each_name(folder, [&](const std::string& name) {
      const std::optional<Key> key = key_of(name, kEntrySuffix);
      if (!key) return;
      ReadEntry read = read_entry(folder, *key, name);
      if (read.result.status == LoadResult::Status::miss) return;  // removed meanwhile
      const struct stat& status = read.opened.status;
      listings.push_back({*key, read.result.entry ? read.result.entry->metadata : Metadata(),
                          static_cast<std::uint64_t>(status.st_size), to_time_point(status.st_mtim),
                          to_time_point(last_use(status)), std::move(read.result.problem)});
    });
  });
  return listings;
}

Usage Disk::usage() const {
  Usage usage;
  for_each_shard([&](const std::string&, int folder) {
    for_each_name(folder, [&](const std::string& name) {
      struct stat status {};
      if (!key_of(name, kEntrySuffix)) return;
      if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
      ++usage.entries;
      usage.bytes += static_cast<std::uint64_t>(status.st_size);
    });
  });
  return usage;
}

Usage Disk::leftovers() const {
  Usage leftovers;
  for_each_shard([&](const std::string&, int folder) {
    for_each_name(folder, [&](const std::string& name) {
      if (!name.starts_with(kTemporaryPrefix) && !key_of(name, kBadSuffix)) return;
      struct stat status {};
      if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
      ++leftovers.entries;
      leftovers.bytes += static_cast<std::uint64_t>(status.st_size);
    });
  });
  return leftovers;
}

Pruned Disk::prune(std::uint64_t max_bytes, Depth depth) const {
  if (depth == Depth::all) remove_unused_locks();
  Pruned pruned;
  std::vector<Candidate> candidates;
  for_each_shard([&](const std::string&, int folder) {
    for_each_name(folder, [&](const std::string& name) {
      struct stat status {};
      if (!key_of(name, kEntrySuffix)) return remove_stale(folder, name);
      if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
      const auto bytes = static_cast<std::uint64_t>(status.st_size);
      candidates.push_back({last_use(status), name, status.st_ino, bytes});
      ++pruned.left.entries;
      pruned.left.bytes += bytes;
    });
  });
  if (pruned.left.bytes <= max_bytes) return pruned;
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.last_use.tv_sec, a.last_use.tv_nsec, a.name) <
           std::tie(b.last_use.tv_sec, b.last_use.tv_nsec, b.name);
  });
  const std::uint64_t goal = max_bytes - max_bytes / 8;
  for (const Candidate& candidate : candidates) {
    if (pruned.left.bytes <= goal) break;
    const PrivateFolder shard = open_below(candidate.name.substr(0, 2), IfAbsent::report);
    if (!shard.folder || !evict(shard.folder.get(), candidate)) continue;
    pruned.left.bytes -= candidate.bytes;
    --pruned.left.entries;
    pruned.removed.bytes += candidate.bytes;
    ++pruned.removed.entries;
  }
  return pruned;
}

Usage Disk::clear() const {
  Usage removed;
  const PrivateFolder notes = open_below(std::string(kNoteFolder), IfAbsent::report);
  if (notes.folder) {
    for_each_name(notes.folder.get(), [&](const std::string& name) {
      if (key_of(name, kNoteSuffix)) remove(notes.folder.get(), name);
    });
    remove_stale(notes.folder.get());
  }
  for_each_shard([&](const std::string&, int folder) {
    remove_stale(folder);
    for_each_name(folder, [&](const std::string& name) {
      const bool is_entry = key_of(name, kEntrySuffix).has_value();
      if (!is_entry && !key_of(name, kBadSuffix)) return;  // not ours
      struct stat status {};
      if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
      if (!remove(folder, name)) return;
      removed.entries += is_entry ? 1 : 0;
      removed.bytes += static_cast<std::uint64_t>(status.st_size);
    });
  });
  remove_unused_locks();
  return removed;
}

std::string Disk::problem() const {
  PrivateFolder entries = open_below(".", IfAbsent::report);
  if (!entries.folder) return std::move(entries.problem);
  std::string problem;
  for_each_name(entries.folder.get(), [&](const std::string& name) {
    if (!problem.empty() || !is_shard_name(name)) return;
    problem = open_private_folder(entries.folder.get(), name, *directory_ / kVersionFolder / name,
                                  IfAbsent::report)
                  .problem;
  });
  return problem;
}

PrivateFolder Disk::open_below(const std::string& name, IfAbsent if_absent) const {
  if (!directory_) {
    PrivateFolder none;
    none.problem = "no directory is known for it";
    return none;
  }
  const std::string version(kVersionFolder);
  const std::filesystem::path version_path = *directory_ / version;
  PrivateFolder root = open_private_folder(*directory_, if_absent);
  if (!root.folder) return root;
  PrivateFolder entries = open_private_folder(root.folder.get(), version, version_path, if_absent);
  if (!entries.folder) return entries;
  return open_private_folder(entries.folder.get(), name, version_path / name, if_absent);
}

void Disk::for_each_shard(
    const std::function<void(const std::string& name, int folder)>& visit) const {
  const PrivateFolder entries = open_below(".", IfAbsent::report);
  if (!entries.folder) return;
  for_each_name(entries.folder.get(), [&](const std::string& name) {
    if (!is_shard_name(name)) return;
    const PrivateFolder shard = open_private_folder(
        entries.folder.get(), name, *directory_ / kVersionFolder / name, IfAbsent::report);
    if (shard.folder) visit(name, shard.folder.get());
  });
}

void Disk::remove_unused_locks() const {
  const PrivateFolder locks = open_below(std::string(kLockFolder), IfAbsent::report);
  if (!locks.folder) return;
  for_each_name(locks.folder.get(), [&](const std::string& name) {
    // A lock that we get is unused, and letting go of it removes its file.
    if (const std::optional<Key> key = key_of(name, kLockSuffix)) static_cast<void>(try_lock(*key));
  });
}

}  // namespace tilewright::cache
