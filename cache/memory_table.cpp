#include "cache/memory_table.hpp"

#include <mutex>
#include <utility>

namespace tilewright::cache {

std::shared_ptr<const Entry> MemoryTable::find(const Key& key) const {
  const std::shared_lock lock(mutex_);
  const auto slot = slots_.find(key);
  if (slot == slots_.end()) return nullptr;
  // Most hits find it set: only a read, so that threads do not fight for the cache line.
  if (!slot->second.used.load(std::memory_order_relaxed)) {
    slot->second.used.store(true, std::memory_order_relaxed);
  }
  return slot->second.entry;
}

void MemoryTable::insert(std::shared_ptr<const Entry> entry) {
  const Key key = entry->key;
  const std::unique_lock lock(mutex_);
  if (const auto old = slots_.find(key); old != slots_.end()) erase(old);
  bytes_ += entry->payload.size();
  slots_[key].entry = std::move(entry);
  if (bytes_ > max_bytes_) make_room(key);
}

void MemoryTable::clear() {
  const std::unique_lock lock(mutex_);
  slots_.clear();
  bytes_ = 0;
}

MemoryTable::Slots::iterator MemoryTable::erase(Slots::iterator slot) {
  bytes_ -= slot->second.entry->payload.size();
  return slots_.erase(slot);
}

// Second chance: the first round drops what was not used since the last time, the second the rest.
void MemoryTable::make_room(const Key& newest) {
  for (int round = 0; round < 2; ++round) {
    for (auto slot = slots_.begin(); slot != slots_.end() && bytes_ > max_bytes_;) {
      const bool keep = slot->first == newest || slot->second.used.exchange(false);
      slot = keep ? std::next(slot) : erase(slot);
    }
  }
}

}  // namespace tilewright::cache
