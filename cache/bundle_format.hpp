#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "entry.hpp"
#include "key.hpp"
#include "signature.hpp"

namespace tilewright::cache {

// A bundle: one immutable file of compiled things, indexed by request.
//
//     0   8   magic "TWBUNDLE"
//     8   4   format version, 1             (all numbers little-endian)
//     12  4   number of entries
//     16  8   bytes of index
//     24  8   bytes of the file
//     32  32  SHA-256 of the index
//     64  32  public key of the signer; zeros: not signed
//     96  64  Ed25519 signature of bytes 0 to 96; zeros: not signed
//     160 32  SHA-256 of bytes 0 to 160
//     192     index
//             payloads, one after the other, in the index's order
//
// The index:
//
//             { request 32 | digest 32 | payload bytes u64 | facts offset u64 | facts bytes u64 }
//             for each entry, by rising request; the digest is SHA-256 of request and payload
//         8   number of memos
//             { memo 32 | entry u64 } by rising memo
//             facts: { u32 count, { u32 bytes of tag, u32 bytes of value, tag, value } by rising
//             tag } twice: ingredients, then metadata; offsets count from the first of them

/// One thing to put into a bundle.
struct BundleItem {
  Request request;            ///< its ingredients are recorded, so they had better be short
  std::vector<Digest> memos;  ///< other digests that it is found by
  Metadata metadata;
  std::shared_ptr<const Entry> entry;  ///< whose payload is taken; its key and metadata are not
};

/// A bundle as a file. The same items in any order give the same bytes; of items with the same
/// request the first one is taken, with the memos of all.
/// Throws Error (internal) where a limit is exceeded, or a memo belongs to two requests.
std::vector<std::byte> encode_bundle(std::vector<BundleItem> items, const SigningKey* key);

inline constexpr std::size_t kBundleHeaderBytes = 192;
inline constexpr std::size_t kMaxBundleIndexBytes = std::size_t{256} << 20;

/// What the first bytes of a bundle say.
struct BundleHeader {
  std::uint32_t entries = 0;
  std::uint64_t index_bytes = 0;
  std::uint64_t file_bytes = 0;
  Digest index_digest;
  std::optional<PublicKey> signer;
};

struct DecodedHeader {
  BundleHeader header;
  std::string problem;  ///< why it is no bundle: a clause; empty where it is one
};

/// Takes the first kBundleHeaderBytes bytes of a file, of which there may be fewer. A signature is
/// verified.
DecodedHeader decode_bundle_header(std::span<const std::byte> bytes);

/// Where one entry is.
struct BundleRecord {
  Digest request;
  Digest digest;
  std::uint64_t offset = 0;  ///< of the payload, in the file
  std::uint64_t bytes = 0;
  std::uint64_t facts_offset = 0;
  std::uint64_t facts_bytes = 0;
};

/// What is recorded of one entry in addition to its payload.
struct BundleFacts {
  std::vector<Ingredient> ingredients;  ///< of the request, sorted by tag
  Metadata metadata;
};

/// The verified index of a bundle.
class BundleIndex {
 public:
  /// Takes the bytes after the header. What is wrong goes to `problem`, a clause.
  static std::optional<BundleIndex> decode(const BundleHeader& header,
                                           std::span<const std::byte> bytes, std::string& problem);

  const std::vector<BundleRecord>& records() const { return records_; }
  std::optional<std::size_t> find(const Digest& request) const;
  std::optional<std::size_t> find_memo(const Digest& memo) const;
  /// Nothing where they contradict the request, or themselves.
  std::optional<BundleFacts> facts(std::size_t entry) const;

 private:
  struct Memo {
    Digest digest;
    std::uint64_t entry = 0;
  };
  std::vector<BundleRecord> records_;
  std::vector<Memo> memos_;
  std::vector<std::byte> facts_;
};

/// What stands in a record for a payload.
Digest bundle_digest(const Digest& request, std::span<const std::byte> payload);

}  // namespace tilewright::cache
