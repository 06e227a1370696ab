#pragma once

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "../../base/error.hpp"
#include "../../runtime/api/communicator.hpp"

// Ranks that are threads of one process, with tensors of the host.

namespace tilewright::test {

/// What the ranks of a group share: bytes on their way from rank to rank.
class LoopbackGroup {
 public:
  LoopbackGroup(int size, std::chrono::milliseconds timeout)
      : size_(size), timeout_(timeout), is_gone_(static_cast<std::size_t>(size)) {}

  int size() const { return size_; }

  /// The rank takes no further part: who waits for it gets an error at once.
  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    is_gone_[static_cast<std::size_t>(rank)] = true;
    changed_.notify_all();
  }

  void send(int from, int to, const void* data, std::int64_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(data);
    const std::lock_guard lock(mutex_);
    ways_[{from, to}].emplace_back(begin, begin + bytes);
    changed_.notify_all();
  }

  std::vector<std::byte> receive(int from, int to) {
    std::unique_lock lock(mutex_);
    std::deque<std::vector<std::byte>>& way = ways_[{from, to}];
    const auto is_decided = [&] {
      return !way.empty() || is_gone_[static_cast<std::size_t>(from)];
    };
    if (!changed_.wait_for(lock, timeout_, is_decided) || way.empty()) {
      throw Error(ErrorCode::device,
                  way.empty() && is_gone_[static_cast<std::size_t>(from)]
                      ? fmt::format("rank {} is gone", from)
                      : fmt::format("rank {} sent nothing within {} ms", from, timeout_.count()));
    }
    std::vector<std::byte> message = std::move(way.front());
    way.pop_front();
    return message;
  }

 private:
  int size_;
  std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> is_gone_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> ways_;
};

/// One rank's end. It leaves the group when it is destroyed.
class Loopback final : public Communicator {
 public:
  Loopback(std::shared_ptr<LoopbackGroup> group, int rank)
      : group_(std::move(group)), rank_(rank) {}
  ~Loopback() override { group_->leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  std::vector<std::byte> all_gather(std::span<const std::byte> mine) override {
    for (int to = 0; to < size(); ++to) {
      group_->send(rank_, to, mine.data(), static_cast<std::int64_t>(mine.size()));
    }
    std::vector<std::byte> all;
    for (int from = 0; from < size(); ++from) {
      const std::vector<std::byte> bytes = group_->receive(from, rank_);
      if (bytes.size() != mine.size()) {
        throw Error(ErrorCode::device, fmt::format("rank {} gathers {} bytes, and rank {} {}", from,
                                                   bytes.size(), rank_, mine.size()));
      }
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  }

  void exchange(std::span<const Message> sends, std::span<const Message> receives,
                Stream) override {
    if (exchanges_until_death_-- == 0) throw Error(ErrorCode::device, "this rank dies");
    for (const Message& message : sends) {
      group_->send(rank_, message.peer, message.data, message.bytes);
      sent_ += message.bytes;
    }
    for (const Message& message : receives) {
      const std::vector<std::byte> bytes = group_->receive(message.peer, rank_);
      if (std::ssize(bytes) != message.bytes) {
        throw Error(ErrorCode::device, fmt::format("rank {} sent {} bytes in place of {}",
                                                   message.peer, bytes.size(), message.bytes));
      }
      if (!bytes.empty()) std::memcpy(message.data, bytes.data(), bytes.size());
    }
  }

  /// Of exchanges, without what all_gather sends.
  std::int64_t sent() const { return sent_; }
  /// The exchange after `count` others throws.
  void die_after(int count) { exchanges_until_death_ = count; }

 private:
  std::shared_ptr<LoopbackGroup> group_;
  int rank_;
  std::int64_t sent_ = 0;
  int exchanges_until_death_ = -1;
};

}  // namespace tilewright::test
