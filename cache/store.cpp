#include "cache/store.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/activity.hpp"
#include "base/report.hpp"
#include "cache/memory_table.hpp"
#include "cache/single_flight.hpp"

namespace tilewright::cache {
namespace {

using Clock = std::chrono::steady_clock;
using Status = LoadResult::Status;
using EntryPointer = std::shared_ptr<const Entry>;

constexpr auto kFirstPause = std::chrono::milliseconds(1);
constexpr auto kLongestPause = std::chrono::milliseconds(20);
constexpr std::uint64_t kBytesBesidePayload = 512;  // about; a look is exact
constexpr std::size_t kMostKnownFailures = 1000;

template <typename State>
State& checked(const std::unique_ptr<State>& state) {
  if (state) return *state;
  throw Error(ErrorCode::usage, "this Store was moved from", "use the one that it was moved to");
}

Key note_key(std::string_view name) {
  return make_key(make_request({{"note", std::string(name)}}), "note");
}

}  // namespace

struct Store::State {
  explicit State(Options given)
      : options(std::move(given)), memory(options.memory_bytes), disk(options.directory) {}

  EntryPointer load(const Key& key);
  Result find_or_build(const Key& key, const std::function<Entry()>& build);

  EntryPointer load_from_disk(const Key& key);
  EntryPointer load_under_lock(const Key& key);
  EntryPointer load_from_remote(const Key& key);
  void offer_to_remote(const Entry& entry);
  EntryPointer build_and_publish(const Key& key, const std::function<Entry()>& build);
  void publish(const Entry& entry);
  void make_room(std::uint64_t added);
  void rethrow_known_failure(const Key& key);
  void remember_failure(const Key& key, std::exception_ptr failure);
  EntryPointer keep(EntryPointer entry, std::atomic<std::uint64_t>& counter);
  void report_failure(const std::string& problem);
  void report_remote(const std::string& problem);
  void report(std::string message);
  void deliver_reports();

  // The sink may ask the store for the key that a message is about, so it hears of it when the key
  // is done with: no other thread or process waits for this one then.
  struct ReportsAtEnd {
    State& state;
    ~ReportsAtEnd() { state.deliver_reports(); }
  };

  const Options options;
  MemoryTable memory;
  SingleFlight flights;
  const Disk disk;

  std::atomic<std::uint64_t> hits_memory{0};
  std::atomic<std::uint64_t> hits_disk{0};
  std::atomic<std::uint64_t> builds{0};
  std::atomic<std::uint64_t> failed_builds{0};
  std::atomic<std::uint64_t> evictions{0};
  std::atomic<std::uint64_t> bad_entries{0};
  std::atomic<std::uint64_t> failures{0};
  std::atomic<bool> has_warned{false};
  std::atomic<bool> has_warned_of_remote{false};

  std::mutex reports_mutex;
  std::vector<std::string> reports;  // for the sink, as soon as no key is being worked on

  std::mutex failures_mutex;
  std::unordered_map<Key, std::exception_ptr> known_failures;

  // What is known of the directory's size: exact at the last look, plus what was added here since.
  std::mutex room_mutex;
  std::optional<std::uint64_t> bytes_on_disk;
  std::uint64_t bytes_since_look = 0;
};

std::string_view to_string(Source source) {
  switch (source) {
    case Source::memory:
      return "memory";
    case Source::disk:
      return "disk";
    case Source::remote:
      return "remote";
    case Source::built:
      return "built";
  }
  return "unknown";
}

Store::Store(Options options) : state_(std::make_unique<State>(std::move(options))) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

EntryPointer Store::load(const Key& key) {
  if (EntryPointer entry = checked(state_).memory.find(key)) {
    checked(state_).hits_memory.fetch_add(1, std::memory_order_relaxed);
    return entry;
  }
  const State::ReportsAtEnd reports{checked(state_)};
  return checked(state_).load(key);
}

Store::Result Store::load_or_build(const Key& key, const std::function<Entry()>& build) {
  State& state = checked(state_);
  if (!build) {
    throw Error(ErrorCode::usage, "load_or_build was given nothing that builds an entry",
                "pass a function that returns one, or call load");
  }
  Source source = Source::memory;
  if (EntryPointer entry = state.memory.find(key)) {
    state.hits_memory.fetch_add(1, std::memory_order_relaxed);
    return {std::move(entry), source};
  }
  const State::ReportsAtEnd reports{state};
  SingleFlight::Outcome outcome = state.flights.run(key, [&] {
    Result result = state.find_or_build(key, build);
    source = result.source;
    return std::move(result.entry);
  });
  if (source == Source::memory) state.hits_memory.fetch_add(1, std::memory_order_relaxed);
  if (source == Source::built) state.offer_to_remote(*outcome.entry);  // in the background
  return {std::move(outcome.entry), source};
}

std::vector<Listing> Store::ls() const {
  return checked(state_).disk.list();
}

Stats Store::stats() const {
  const Usage usage = checked(state_).disk.usage();
  Stats stats;
  stats.entries = usage.entries;
  stats.bytes = usage.bytes;
  stats.hits_memory = checked(state_).hits_memory;
  stats.hits_disk = checked(state_).hits_disk;
  stats.builds = checked(state_).builds;
  stats.leftovers = checked(state_).disk.leftovers();
  stats.failed_builds = checked(state_).failed_builds;
  stats.evictions = checked(state_).evictions;
  stats.bad_entries = checked(state_).bad_entries;
  stats.failures = checked(state_).failures;
  if (checked(state_).options.remote) stats.remote = checked(state_).options.remote->stats();
  return stats;
}

Pruned Store::prune(std::uint64_t max_bytes) {
  const std::uint64_t limit = max_bytes == 0 ? UINT64_MAX : max_bytes;
  return checked(state_).disk.prune(limit, Disk::Depth::all);
}

std::optional<std::string> Store::note(std::string_view name) const {
  const EntryPointer entry = checked(state_).disk.load_note(note_key(name));
  if (!entry) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(entry->payload.data()), entry->payload.size());
}

void Store::keep_note(std::string_view name, std::string text) const {
  const auto bytes = std::as_bytes(std::span(text));
  static_cast<void>(checked(state_).disk.publish_note(
      {.key = note_key(name), .metadata = {}, .payload = {bytes.begin(), bytes.end()}}));
}

Usage Store::clear() {
  {
    const std::lock_guard lock(checked(state_).failures_mutex);
    checked(state_).known_failures.clear();
  }
  checked(state_).memory.clear();
  return checked(state_).disk.clear();
}

std::string Store::problem() const {
  return checked(state_).disk.problem();
}

const std::optional<std::filesystem::path>& Store::directory() const {
  return checked(state_).disk.directory();
}

EntryPointer Store::State::load(const Key& key) {
  const LoadResult found = disk.load(key);
  if (found.status == Status::hit) return keep(found.entry, hits_disk);
  if (found.status == Status::failed) report_failure(found.problem);
  if (found.status != Status::bad) return nullptr;
  const KeyLock lock = disk.try_lock(key);
  if (lock.state() == KeyLock::State::busy) return nullptr;  // its holder is mending the entry
  return load_under_lock(key);
}

// Memory, disk, remote cache, build. The remote cache is asked under the lock, so one process of a
// machine asks it for a key.
Store::Result Store::State::find_or_build(const Key& key, const std::function<Entry()>& build) {
  // Another thread may have finished between our look into memory and our turn.
  if (EntryPointer entry = memory.find(key)) return {std::move(entry), Source::memory};
  if (EntryPointer entry = load_from_disk(key)) return {std::move(entry), Source::disk};
  rethrow_known_failure(key);

  const Activity activity("asks the cache, waits for another process, or builds, for the key",
                          key.digest.hex());
  const Clock::time_point give_up = Clock::now() + options.lock_patience;
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    const KeyLock lock = disk.try_lock(key);
    const bool is_busy = lock.state() == KeyLock::State::busy;
    if (!is_busy || Clock::now() >= give_up) {
      if (lock.state() == KeyLock::State::unavailable) report_failure(lock.problem());
      if (is_busy) {
        report_failure(fmt::format("another process holds the lock of {} for {} s",
                                   key.digest.hex(), options.lock_patience.count() / 1000));
      } else if (EntryPointer entry = load_under_lock(key)) {
        return {std::move(entry), Source::disk};
      }
      if (EntryPointer entry = load_from_remote(key)) return {std::move(entry), Source::remote};
      return {build_and_publish(key, build), Source::built};
    }
    std::this_thread::sleep_for(pause);
    if (EntryPointer entry = load_from_disk(key)) return {std::move(entry), Source::disk};
  }
}

// Everything but a hit is left to load_under_lock(), which comes next.
EntryPointer Store::State::load_from_disk(const Key& key) {
  const LoadResult found = disk.load(key);
  return found.status == Status::hit ? keep(found.entry, hits_disk) : nullptr;
}

EntryPointer Store::State::load_under_lock(const Key& key) {
  const LoadResult found = disk.load(key);
  if (found.status == Status::hit) return keep(found.entry, hits_disk);
  if (found.status == Status::failed) report_failure(found.problem);
  if (found.status == Status::bad) {
    const std::string problem = disk.set_aside(key);
    ++bad_entries;
    report(
        fmt::format("cache: {}; {}", found.problem,
                    problem.empty() ? "it was set aside" : "it cannot be set aside: " + problem));
  }
  return nullptr;
}

EntryPointer Store::State::load_from_remote(const Key& key) {
  if (!options.remote) return nullptr;
  const LoadResult found = options.remote->load(key);
  if (!found.problem.empty()) report_remote(found.problem);
  if (found.status != Status::hit) return nullptr;
  memory.insert(found.entry);
  publish(*found.entry);
  return found.entry;
}

void Store::State::offer_to_remote(const Entry& entry) {
  if (!options.remote) return;
  const std::string problem = options.remote->publish(entry);
  if (!problem.empty()) report_remote(problem);
}

EntryPointer Store::State::build_and_publish(const Key& key, const std::function<Entry()>& build) {
  Entry built;
  try {
    built = build();
  } catch (const LastingFailure&) {
    remember_failure(key, std::current_exception());
    throw;
  }
  built.key = key;
  EntryPointer entry = keep(std::make_shared<const Entry>(std::move(built)), builds);
  publish(*entry);
  return entry;
}

void Store::State::publish(const Entry& entry) {
  const std::string problem = disk.publish(entry);
  if (!problem.empty()) report_failure(problem);
  if (problem.empty()) make_room(entry.payload.size() + kBytesBesidePayload);
}

// The directory is looked at for the first entry, and again after every sixteenth of the limit, so
// that processes which fill it together notice.
void Store::State::make_room(std::uint64_t added) {
  if (options.max_bytes == 0) return;
  const std::lock_guard lock(room_mutex);
  bytes_since_look += added;
  if (bytes_on_disk) *bytes_on_disk += added;
  if (bytes_on_disk && *bytes_on_disk <= options.max_bytes &&
      bytes_since_look <= options.max_bytes / 16) {
    return;
  }
  const Pruned pruned = disk.prune(options.max_bytes, Disk::Depth::entries);
  evictions += pruned.removed.entries;
  bytes_on_disk = pruned.left.bytes;
  bytes_since_look = 0;
}

void Store::State::rethrow_known_failure(const Key& key) {
  const std::lock_guard lock(failures_mutex);
  const auto found = known_failures.find(key);
  if (found == known_failures.end()) return;
  ++failed_builds;
  std::rethrow_exception(found->second);
}

void Store::State::remember_failure(const Key& key, std::exception_ptr failure) {
  const std::lock_guard lock(failures_mutex);
  if (known_failures.size() >= kMostKnownFailures) known_failures.clear();
  known_failures[key] = std::move(failure);
}

EntryPointer Store::State::keep(EntryPointer entry, std::atomic<std::uint64_t>& counter) {
  ++counter;
  memory.insert(entry);
  return entry;
}

// Once: a full disk would otherwise be reported with every kernel. The counter tells the rest.
void Store::State::report_failure(const std::string& problem) {
  ++failures;
  if (has_warned.exchange(true)) return;
  report(fmt::format(
      "cache: {}; what cannot be stored is built again in each process (TILEWRIGHT_CACHE names "
      "another directory)",
      problem));
}

// Once, for the same reason.
void Store::State::report_remote(const std::string& problem) {
  if (has_warned_of_remote.exchange(true)) return;
  report(fmt::format(
      "cache: the remote cache {} cannot be relied on: {}; kernels are compiled here instead "
      "(TILEWRIGHT_REMOTE_CACHE names it; cache::RemoteCache::probe() asks it)",
      options.remote->name(), problem));
}

void Store::State::report(std::string message) {
  if (!options.diagnostics) return;
  const std::lock_guard lock(reports_mutex);
  reports.push_back(std::move(message));
}

void Store::State::deliver_reports() {
  std::vector<std::string> messages;
  {
    const std::lock_guard lock(reports_mutex);
    messages.swap(reports);
  }
  for (const std::string& message : messages) {
    tilewright::report(options.diagnostics, Severity::warning, message);
  }
}

}  // namespace tilewright::cache
