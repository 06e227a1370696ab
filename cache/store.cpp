#include "cache/store.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "cache/memory_table.hpp"
#include "cache/single_flight.hpp"

namespace tilewright::cache {
namespace {

using Clock = std::chrono::steady_clock;
using Status = DiskEntry::Status;
using EntryPointer = std::shared_ptr<const Entry>;

constexpr auto kFirstPause = std::chrono::milliseconds(1);
constexpr auto kLongestPause = std::chrono::milliseconds(20);

}  // namespace

struct Store::State {
  explicit State(Options given)
      : options(std::move(given)), memory(options.memory_bytes), disk(options.directory) {}

  EntryPointer load(const Key& key);
  Result find_or_build(const Key& key, const std::function<Entry()>& build);

  EntryPointer load_from_disk(const Key& key);
  EntryPointer load_under_lock(const Key& key);
  EntryPointer build_and_publish(const Key& key, const std::function<Entry()>& build);
  EntryPointer keep(EntryPointer entry, std::atomic<std::uint64_t>& counter);
  void report_failure(const std::string& problem);
  void report(const std::string& message) const;

  const Options options;
  MemoryTable memory;
  SingleFlight flights;
  const Disk disk;

  std::atomic<std::uint64_t> hits_memory{0};
  std::atomic<std::uint64_t> hits_disk{0};
  std::atomic<std::uint64_t> builds{0};
  std::atomic<std::uint64_t> bad_entries{0};
  std::atomic<std::uint64_t> failures{0};
  std::atomic<bool> has_warned{false};
};

std::string_view to_string(Source source) {
  switch (source) {
    case Source::memory:
      return "memory";
    case Source::disk:
      return "disk";
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
  if (EntryPointer entry = state_->memory.find(key)) {
    state_->hits_memory.fetch_add(1, std::memory_order_relaxed);
    return entry;
  }
  return state_->load(key);
}

Store::Result Store::load_or_build(const Key& key, const std::function<Entry()>& build) {
  State& state = *state_;
  Source source = Source::memory;
  if (EntryPointer entry = state.memory.find(key)) {
    state.hits_memory.fetch_add(1, std::memory_order_relaxed);
    return {std::move(entry), source};
  }
  SingleFlight::Outcome outcome = state.flights.run(key, [&] {
    Result result = state.find_or_build(key, build);
    source = result.source;
    return std::move(result.entry);
  });
  if (source == Source::memory) state.hits_memory.fetch_add(1, std::memory_order_relaxed);
  return {std::move(outcome.entry), source};
}

std::vector<Listing> Store::ls() const {
  return state_->disk.list();
}

Stats Store::stats() const {
  const Usage usage = state_->disk.usage();
  Stats stats;
  stats.entries = usage.entries;
  stats.bytes = usage.bytes;
  stats.hits_memory = state_->hits_memory;
  stats.hits_disk = state_->hits_disk;
  stats.builds = state_->builds;
  stats.bad_entries = state_->bad_entries;
  stats.failures = state_->failures;
  return stats;
}

Usage Store::clear() {
  state_->memory.clear();
  return state_->disk.clear();
}

std::string Store::problem() const {
  return state_->disk.problem();
}

const std::optional<std::filesystem::path>& Store::directory() const {
  return state_->disk.directory();
}

EntryPointer Store::State::load(const Key& key) {
  const DiskEntry found = disk.load(key);
  if (found.status == Status::hit) return keep(found.entry, hits_disk);
  if (found.status == Status::failed) report_failure(found.problem);
  if (found.status != Status::bad) return nullptr;
  const KeyLock lock = disk.try_lock(key);
  if (lock.state() == KeyLock::State::busy) return nullptr;  // its holder is mending the entry
  return load_under_lock(key);
}

// Memory, disk, build: later layers (bundles before the disk, a fleet's cache behind it) fit here.
Store::Result Store::State::find_or_build(const Key& key, const std::function<Entry()>& build) {
  // Another thread may have finished between our look into memory and our turn.
  if (EntryPointer entry = memory.find(key)) return {std::move(entry), Source::memory};
  if (EntryPointer entry = load_from_disk(key)) return {std::move(entry), Source::disk};

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
      return {build_and_publish(key, build), Source::built};
    }
    std::this_thread::sleep_for(pause);
    if (EntryPointer entry = load_from_disk(key)) return {std::move(entry), Source::disk};
  }
}

// Everything but a hit is left to load_under_lock(), which comes next.
EntryPointer Store::State::load_from_disk(const Key& key) {
  const DiskEntry found = disk.load(key);
  return found.status == Status::hit ? keep(found.entry, hits_disk) : nullptr;
}

EntryPointer Store::State::load_under_lock(const Key& key) {
  const DiskEntry found = disk.load(key);
  if (found.status == Status::hit) return keep(found.entry, hits_disk);
  if (found.status == Status::failed) report_failure(found.problem);
  if (found.status == Status::bad) {
    disk.set_aside(key);
    ++bad_entries;
    report(fmt::format("cache: {}; it was set aside", found.problem));
  }
  return nullptr;
}

EntryPointer Store::State::build_and_publish(const Key& key, const std::function<Entry()>& build) {
  Entry built = build();
  built.key = key;
  EntryPointer entry = keep(std::make_shared<const Entry>(std::move(built)), builds);
  const std::string problem = disk.publish(*entry);
  if (!problem.empty()) report_failure(problem);
  return entry;
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

void Store::State::report(const std::string& message) const {
  if (options.diagnostics) options.diagnostics(Severity::warning, message);
}

}  // namespace tilewright::cache
