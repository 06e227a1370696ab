// Cache entries and the messages that name them, with a right digest and without.

#include <cstring>
#include <vector>

#include "cache/action_result.hpp"
#include "cache/entry.hpp"
#include "tests/fuzz/text/input.hpp"

using namespace tilewright;
using namespace tilewright::cache;

namespace {

constexpr std::size_t kKeyOffset = 24;

void check_entry(std::vector<std::byte> file) {
  Key key;
  if (file.size() >= kKeyOffset + key.digest.bytes.size()) {
    std::memcpy(key.digest.bytes.data(), file.data() + kKeyOffset, key.digest.bytes.size());
  }
  const Decoded decoded = decode(file, key);
  if (!decoded.entry) {
    fuzz::require(decoded.defect != Defect::none, "what is no entry has a defect");
    return;
  }
  fuzz::require(decoded.entry->key == key, "an entry has the key that was asked for");
  fuzz::require(encode(*decoded.entry) == file, "an entry has one spelling");
}

void check_action_result(std::span<const std::byte> message) {
  const std::optional<BlobName> blob = decode_action_result(message);
  if (!blob) return;
  fuzz::require(decode_action_result(encode_action_result(*blob)) == blob,
                "a blob's name survives being written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = fuzz::as_bytes(data, size);
  check_entry({bytes.begin(), bytes.end()});
  // No fuzzer guesses a SHA-256.
  std::vector<std::byte> with_digest(bytes.begin(), bytes.end());
  const Digest digest = sha256(bytes);
  const auto digest_bytes = std::as_bytes(std::span(digest.bytes));
  with_digest.insert(with_digest.end(), digest_bytes.begin(), digest_bytes.end());
  check_entry(std::move(with_digest));
  check_action_result(bytes);
  return 0;
}
