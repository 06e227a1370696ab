#include "cache/remote_cache.hpp"

#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright::cache {
namespace {

using Status = LoadResult::Status;

constexpr std::size_t kMaxActionResultBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxRefusalBytes = std::size_t{64} << 10;  // the page that comes with a PUT
constexpr int kTries = 2;
constexpr auto kRetryPause = std::chrono::milliseconds(50);

constexpr long kOk = 200;
constexpr long kNotFound = 404;

std::string action_path(const Key& key) {
  return "/ac/" + key.digest.hex();
}
std::string blob_path(const Digest& digest) {
  return "/cas/" + digest.hex();
}

// Such as a server that is being restarted or is busy.
bool may_pass(const HttpAnswer& answer) {
  if (!answer.problem.empty()) return !answer.timed_out;
  return answer.status == 429 || (answer.status >= 500 && answer.status <= 504);
}

bool is_stored(const HttpAnswer& answer) {
  return answer.problem.empty() && answer.status >= 200 && answer.status < 300;
}

LoadResult bad(std::string problem) {
  return {Status::bad, nullptr, std::move(problem)};
}
LoadResult failed(std::string problem) {
  return {Status::failed, nullptr, std::move(problem)};
}

}  // namespace

RemoteCache::RemoteCache(RemoteOptions options, const Http& http)
    : options_(checked(std::move(options))),
      http_(http),
      reads_(options_.breaker),
      writes_(options_.breaker) {}

std::shared_ptr<RemoteCache> RemoteCache::from_environment() {
  std::optional<RemoteOptions> options = remote_options_from_environment();
  return options ? std::make_shared<RemoteCache>(*std::move(options)) : nullptr;
}

LoadResult RemoteCache::load(const Key& key) {
  if (!reads_.allows(Clock::now())) {
    ++skipped_;
    return {};
  }
  LoadResult found = fetch(key);
  if (found.status == Status::hit || found.status == Status::miss) {
    reads_.succeeded();
    ++(found.entry ? hits_ : misses_);
  } else {
    reads_.failed(Clock::now());
    ++(found.status == Status::bad ? bad_entries_ : failures_);
  }
  return found;
}

std::string RemoteCache::publish(const Entry& entry) {
  if (options_.mode != RemoteMode::read_write) return {};
  if (!writes_.allows(Clock::now())) {
    ++skipped_;
    return {};
  }
  std::string problem = upload(entry);
  if (problem.empty()) {
    writes_.succeeded();
    ++stored_;
  } else {
    writes_.failed(Clock::now());
    ++failures_;
  }
  return problem;
}

std::string RemoteCache::probe() const {
  const Key nobodys{sha256("tilewright asks whether this server answers")};
  return fetch(nobodys).problem;
}

RemoteStats RemoteCache::stats() const {
  return {.hits = hits_,
          .misses = misses_,
          .stored = stored_,
          .bad_entries = bad_entries_,
          .failures = failures_,
          .skipped = skipped_};
}

LoadResult RemoteCache::fetch(const Key& key) const {
  const Clock::time_point deadline = Clock::now() + options_.timeout;
  const std::string path = action_path(key);
  const HttpAnswer answer = get(path, kMaxActionResultBytes, deadline);
  if (answer.problem.empty() && answer.status == kNotFound) return {};
  if (std::string why = why_failed(answer, path); !why.empty()) return failed(std::move(why));
  const std::optional<BlobName> blob = decode_action_result(answer.body);
  if (!blob) return bad(fmt::format("{} is no ActionResult of a kernel", path));
  if (blob->bytes > kMaxEntryBytes) return bad(fmt::format("{} names a blob too large", path));
  return fetch_blob(key, *blob, deadline);
}

// A blob that is gone is a miss: servers may drop it before what names it.
LoadResult RemoteCache::fetch_blob(const Key& key, const BlobName& blob,
                                   Clock::time_point deadline) const {
  const std::string path = blob_path(blob.digest);
  HttpAnswer answer = get(path, blob.bytes, deadline);
  if (answer.problem.empty() && answer.status == kNotFound) return {};
  if (std::string why = why_failed(answer, path); !why.empty()) return failed(std::move(why));
  if (answer.body.size() != blob.bytes) {
    return bad(fmt::format("{} has {} bytes instead of {}", path, answer.body.size(), blob.bytes));
  }
  if (sha256(answer.body) != blob.digest) {
    return bad(fmt::format("{} has other contents than its name says", path));
  }
  Decoded decoded = decode(std::move(answer.body), key);
  if (!decoded.entry) return bad(fmt::format("{}: {}", path, to_string(decoded.defect)));
  return {Status::hit, std::make_shared<const Entry>(std::move(*decoded.entry)), {}};
}

// The blob first, so that nothing ever names what is not there.
std::string RemoteCache::upload(const Entry& entry) const {
  const Clock::time_point deadline = Clock::now() + options_.timeout;
  std::vector<std::byte> bytes;
  try {
    bytes = encode(entry);
  } catch (const Error& error) {
    return error.message();
  }
  const BlobName blob{sha256(bytes), bytes.size()};
  const std::string path = blob_path(blob.digest);
  const HttpAnswer stored = put(path, bytes, deadline);
  if (!is_stored(stored)) return why_failed(stored, "PUT " + path);
  const std::string action = action_path(entry.key);
  const HttpAnswer named = put(action, encode_action_result(blob), deadline);
  return is_stored(named) ? std::string() : why_failed(named, "PUT " + action);
}

HttpAnswer RemoteCache::get(const std::string& path, std::size_t max_bytes,
                            Clock::time_point deadline) const {
  return ask({.url = options_.url + path,
              .ca_file = options_.ca_file,
              .upload = {},
              .max_bytes = max_bytes,
              .connect_timeout = options_.connect_timeout,
              .deadline = deadline});
}

HttpAnswer RemoteCache::put(const std::string& path, std::span<const std::byte> bytes,
                            Clock::time_point deadline) const {
  return ask({.url = options_.url + path,
              .ca_file = options_.ca_file,
              .upload = bytes,
              .max_bytes = kMaxRefusalBytes,
              .connect_timeout = options_.connect_timeout,
              .deadline = deadline});
}

// What may pass is tried once more, after a pause, where the time allows it.
HttpAnswer RemoteCache::ask(const HttpRequest& request) const {
  HttpAnswer answer = http_.ask(request);
  if (!http_.problem().empty()) return answer;
  for (int tries = 1; tries < kTries && may_pass(answer); ++tries) {
    if (Clock::now() + kRetryPause >= request.deadline) break;
    std::this_thread::sleep_for(kRetryPause);
    answer = http_.ask(request);
  }
  return answer;
}

// Empty where the answer is good.
std::string RemoteCache::why_failed(const HttpAnswer& answer, const std::string& path) const {
  if (answer.timed_out) {
    return fmt::format("{}: no answer within {} s", path,
                       static_cast<double>(options_.timeout.count()) / 1000);
  }
  if (!answer.problem.empty()) return answer.problem;
  if (answer.status == kOk) return {};
  return fmt::format("{} is answered with status {}", path, answer.status);
}

}  // namespace tilewright::cache
