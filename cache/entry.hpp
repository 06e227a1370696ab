#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "key.hpp"

namespace tilewright::cache {

/// Short facts for people, stored with the payload: kernel, target, compiler. At most
/// kMaxMetadataItems, names of at most kMaxMetadataName and values of at most kMaxMetadataValue
/// bytes.
using Metadata = std::map<std::string, std::string>;

struct Entry {
  Key key;
  Metadata metadata;
  std::vector<std::byte> payload;
};

inline constexpr std::size_t kMaxEntryBytes = std::size_t{256} << 20;  ///< of an encoded entry
inline constexpr std::size_t kMaxMetadataItems = 64;
inline constexpr std::size_t kMaxMetadataName = 64;
inline constexpr std::size_t kMaxMetadataValue = std::size_t{64} << 10;

/// The entry as a file. The same entry gives the same bytes.
///
///     0   8   magic "TWENTRY\n"
///     8   4   format version, 1             (all numbers little-endian)
///     12  4   number of metadata items
///     16  8   bytes of payload
///     24  32  key
///     56      metadata: { u32 bytes of name, u32 bytes of value, name, value } by rising name
///             payload
///     -32 32  SHA-256 of everything before
///
/// Throws Error (internal) where a limit is exceeded.
std::vector<std::byte> encode(const Entry& entry);

/// Why bytes are no entry.
enum class Defect {
  none,
  too_short,  ///< shorter than an empty entry: torn
  too_large,  ///< longer than kMaxEntryBytes
  magic,      ///< not an entry at all
  version,    ///< written by another version of the format
  digest,     ///< torn, or changed after it was written
  malformed,  ///< the digest is right but the lengths contradict each other
  key,        ///< the entry of another key: renamed or swapped
};

/// "the digest does not match", for messages.
std::string_view to_string(Defect defect);

struct Decoded {
  std::optional<Entry> entry;
  Defect defect = Defect::none;
};

/// The reverse of encode(). Takes any bytes: an entry comes out only if its digest is right and its
/// key is `expected`. The payload stays in the memory that was digested.
Decoded decode(std::vector<std::byte> file, const Key& expected);

}  // namespace tilewright::cache
