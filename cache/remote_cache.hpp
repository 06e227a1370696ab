#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "action_result.hpp"
#include "circuit_breaker.hpp"
#include "http.hpp"
#include "load_result.hpp"
#include "remote_options.hpp"

namespace tilewright::cache {

/// What became of the questions to a remote cache.
struct RemoteStats {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t stored = 0;
  std::uint64_t bad_entries = 0;  ///< answers with a wrong digest, length, key or form
  std::uint64_t failures = 0;     ///< no answer in time, or a refusal
  std::uint64_t skipped = 0;      ///< not asked, because of earlier failures
};

/// A cache that many machines share, asked after the directory of each. An entry is the blob
/// /cas/<SHA-256 of it>; /ac/<key> holds an ActionResult (action_result.hpp) that names it. What
/// arrives is verified by that digest, and then as an entry from disk is, so a server that lies
/// costs time only. Safe to use from many threads. Throws only bad_alloc after its construction:
/// what a server does comes back as a problem, a clause for a warning.
class RemoteCache {
 public:
  /// @throws Error as checked(RemoteOptions)
  explicit RemoteCache(RemoteOptions options) : RemoteCache(std::move(options), Http::get()) {}
  RemoteCache(RemoteOptions options, const Http& http);
  /// That of remote_options_from_environment(), or null.
  /// @throws Error as that function
  static std::shared_ptr<RemoteCache> from_environment();

  /// Fetches and verifies. Returns within the time-out; at once, as a miss, while the server is not
  /// to be asked.
  LoadResult load(const Key& key);

  /// Stores an entry, unless the mode is read. Returns within the time-out; returns the problem, or
  /// an empty text.
  std::string publish(const Entry& entry);

  /// Asks for a key that cannot exist; returns why that failed, or an empty text.
  std::string probe() const;

  RemoteStats stats() const;
  const RemoteOptions& options() const { return options_; }
  std::string name() const { return without_credentials(options_.url); }  ///< for messages

 private:
  using Clock = HttpRequest::Clock;

  HttpAnswer get(const std::string& path, std::size_t max_bytes, Clock::time_point deadline) const;
  HttpAnswer put(const std::string& path, std::span<const std::byte> bytes,
                 Clock::time_point deadline) const;
  HttpAnswer ask(const HttpRequest& request) const;
  LoadResult fetch(const Key& key) const;
  LoadResult fetch_blob(const Key& key, const BlobName& blob, Clock::time_point deadline) const;
  std::string upload(const Entry& entry) const;
  std::string why_failed(const HttpAnswer& answer, const std::string& path) const;

  const RemoteOptions options_;
  const Http& http_;
  CircuitBreaker reads_;
  CircuitBreaker writes_;  // a server that only refuses to be written is still read

  std::atomic<std::uint64_t> hits_{0};
  std::atomic<std::uint64_t> misses_{0};
  std::atomic<std::uint64_t> stored_{0};
  std::atomic<std::uint64_t> bad_entries_{0};
  std::atomic<std::uint64_t> failures_{0};
  std::atomic<std::uint64_t> skipped_{0};
};

}  // namespace tilewright::cache
