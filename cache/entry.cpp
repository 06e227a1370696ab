#include "cache/entry.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cache/bytes.hpp"

namespace tilewright::cache {
namespace {

constexpr std::string_view kEntryMagic = "TWENTRY\n";
constexpr std::uint32_t kEntryVersion = 1;
constexpr std::size_t kHeaderBytes = 56;
constexpr std::size_t kDigestBytes = 32;

[[noreturn]] void refuse_entry(std::string message) {
  throw Error(ErrorCode::internal, std::move(message));
}

// The size of the encoded entry, once its limits are checked.
std::size_t checked_size(const Entry& entry) {
  if (entry.metadata.size() > kMaxMetadataItems) {
    refuse_entry(fmt::format("a cache entry has {} metadata items, and at most {} are allowed",
                             entry.metadata.size(), kMaxMetadataItems));
  }
  std::size_t size = kHeaderBytes + kDigestBytes;
  for (const auto& [name, value] : entry.metadata) {
    if (name.size() > kMaxMetadataName || value.size() > kMaxMetadataValue) {
      refuse_entry(fmt::format("the metadata item \"{}\" of a cache entry is too long ({} bytes)",
                               name.substr(0, kMaxMetadataName), value.size()));
    }
    size += 8 + name.size() + value.size();
  }
  if (entry.payload.size() > kMaxEntryBytes - size) {
    refuse_entry(fmt::format("a cache entry of {} bytes is too large, at most {} are allowed",
                             entry.payload.size(), kMaxEntryBytes - size));
  }
  return size + entry.payload.size();
}

// False where a limit is exceeded or the names do not rise.
bool read_metadata(ByteReader& reader, std::uint32_t items, Metadata& metadata) {
  if (items > kMaxMetadataItems) return false;
  for (std::uint32_t i = 0; i < items; ++i) {
    const auto name_bytes = reader.number<std::uint32_t>();
    const auto value_bytes = reader.number<std::uint32_t>();
    if (name_bytes > kMaxMetadataName || value_bytes > kMaxMetadataValue) return false;
    const std::string_view name = reader.text(name_bytes);
    const std::string_view value = reader.text(value_bytes);
    if (reader.failed()) return false;
    if (!metadata.empty() && name <= metadata.rbegin()->first) return false;
    metadata.emplace_hint(metadata.end(), name, value);
  }
  return true;
}

bool digest_matches(std::span<const std::byte> file) {
  const Digest digest = sha256(file.first(file.size() - kDigestBytes));
  return std::memcmp(digest.bytes.data(), file.last(kDigestBytes).data(), kDigestBytes) == 0;
}

}  // namespace

std::vector<std::byte> encode(const Entry& entry) {
  std::vector<std::byte> out;
  out.reserve(checked_size(entry));
  put_text(out, kEntryMagic);
  put_number(out, kEntryVersion);
  put_number(out, static_cast<std::uint32_t>(entry.metadata.size()));
  put_number(out, static_cast<std::uint64_t>(entry.payload.size()));
  put_bytes(out, std::as_bytes(std::span(entry.key.digest.bytes)));
  for (const auto& [name, value] : entry.metadata) {
    put_number(out, static_cast<std::uint32_t>(name.size()));
    put_number(out, static_cast<std::uint32_t>(value.size()));
    put_text(out, name);
    put_text(out, value);
  }
  put_bytes(out, entry.payload);
  const Digest digest = sha256(out);
  put_bytes(out, std::as_bytes(std::span(digest.bytes)));
  return out;
}

std::string_view to_string(Defect defect) {
  switch (defect) {
    case Defect::none:
      return "nothing is wrong";
    case Defect::too_short:
      return "it is too short";
    case Defect::too_large:
      return "it is too large";
    case Defect::magic:
      return "it is not a cache entry";
    case Defect::version:
      return "it has another format version";
    case Defect::digest:
      return "its digest does not match";
    case Defect::malformed:
      return "its lengths contradict each other";
    case Defect::key:
      return "it is the entry of another key";
  }
  return "unknown defect";
}

Decoded decode(std::vector<std::byte> file, const Key& expected) {
  if (file.size() > kMaxEntryBytes) return {{}, Defect::too_large};
  if (file.size() < kHeaderBytes + kDigestBytes) return {{}, Defect::too_short};
  const std::span<const std::byte> bytes = file;
  ByteReader reader(bytes.first(bytes.size() - kDigestBytes));
  if (reader.text(kEntryMagic.size()) != kEntryMagic) return {{}, Defect::magic};
  if (reader.number<std::uint32_t>() != kEntryVersion) return {{}, Defect::version};
  if (!digest_matches(file)) return {{}, Defect::digest};

  const auto items = reader.number<std::uint32_t>();
  const auto payload_bytes = reader.number<std::uint64_t>();
  Decoded decoded{Entry{}, Defect::none};
  Entry& entry = *decoded.entry;
  const auto key = reader.take(entry.key.digest.bytes.size());
  std::memcpy(entry.key.digest.bytes.data(), key.data(), key.size());
  if (!read_metadata(reader, items, entry.metadata) || reader.remaining() != payload_bytes) {
    return {{}, Defect::malformed};
  }
  if (entry.key != expected) return {{}, Defect::key};

  const std::size_t payload_begin = file.size() - kDigestBytes - reader.remaining();
  file.resize(file.size() - kDigestBytes);
  file.erase(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(payload_begin));
  entry.payload = std::move(file);
  return decoded;
}

}  // namespace tilewright::cache
