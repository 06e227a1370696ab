#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

#include "entry.hpp"

namespace tilewright::cache {

/// The entries that this process has used, so that they are found without a system call. Safe to
/// use from many threads.
class MemoryTable {
 public:
  /// Once the payloads exceed `max_bytes`, entries that were not asked for lately are dropped. Who
  /// holds one keeps it.
  explicit MemoryTable(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Null where the key is not there.
  std::shared_ptr<const Entry> find(const Key& key) const;
  void insert(std::shared_ptr<const Entry> entry);
  void clear();

 private:
  struct Slot {
    std::shared_ptr<const Entry> entry;
    mutable std::atomic<bool> used{true};  // since the last time that room was made
  };
  using Slots = std::unordered_map<Key, Slot>;

  Slots::iterator erase(Slots::iterator slot);
  void make_room(const Key& newest);

  const std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  Slots slots_;
  mutable std::shared_mutex mutex_;
};

}  // namespace tilewright::cache
