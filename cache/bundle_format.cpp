#include "cache/bundle_format.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cache/bytes.hpp"

namespace tilewright::cache {
namespace {

constexpr std::string_view kBundleMagic = "TWBUNDLE";
constexpr std::uint32_t kBundleVersion = 1;
constexpr std::size_t kSignedBytes = 96;
constexpr std::size_t kDigestedBytes = 160;
constexpr std::size_t kRecordBytes = 88;
constexpr std::size_t kMemoBytes = 40;

using Bytes = std::span<const std::byte>;
using Texts = std::vector<std::pair<std::string_view, std::string_view>>;

[[noreturn]] void refuse_bundle(std::string message) {
  throw Error(ErrorCode::internal, std::move(message));
}

Bytes bytes_of(const Digest& digest) {
  return std::as_bytes(std::span(digest.bytes));
}

Digest take_digest(ByteReader& reader) {
  Digest digest;
  const Bytes field = reader.take(digest.bytes.size());
  if (!field.empty()) std::memcpy(digest.bytes.data(), field.data(), field.size());
  return digest;
}

// Items with equal requests become one.
std::map<Digest, BundleItem> by_request(std::vector<BundleItem> items) {
  std::map<Digest, BundleItem> sorted;
  for (BundleItem& item : items) {
    std::vector<Digest> memos = std::move(item.memos);
    const Digest request = item.request.digest;
    BundleItem& kept = sorted.try_emplace(request, std::move(item)).first->second;
    kept.memos.insert(kept.memos.end(), memos.begin(), memos.end());
  }
  return sorted;
}

std::map<Digest, std::uint64_t> memo_table(const std::map<Digest, BundleItem>& items) {
  std::map<Digest, std::uint64_t> memos;
  std::uint64_t number = 0;
  for (const auto& [request, item] : items) {
    for (const Digest& memo : item.memos) {
      if (memos.try_emplace(memo, number).first->second == number) continue;
      refuse_bundle(fmt::format("the memo {} of a bundle belongs to two requests", memo.hex()));
    }
    ++number;
  }
  return memos;
}

void put_texts(std::vector<std::byte>& out, const Texts& texts) {
  put_number(out, static_cast<std::uint32_t>(texts.size()));
  for (const auto& [tag, value] : texts) {
    if (tag.size() > kMaxMetadataName || value.size() > kMaxMetadataValue) {
      refuse_bundle(fmt::format("\"{}\" of a bundle's entry is too long ({} bytes)",
                                tag.substr(0, kMaxMetadataName), value.size()));
    }
    put_number(out, static_cast<std::uint32_t>(tag.size()));
    put_number(out, static_cast<std::uint32_t>(value.size()));
    put_text(out, tag);
    put_text(out, value);
  }
}

std::vector<std::byte> encode_facts(const BundleItem& item) {
  std::vector<std::byte> out;
  Texts ingredients;
  for (const Ingredient& ingredient : item.request.ingredients) {
    ingredients.emplace_back(ingredient.tag, ingredient.value);
  }
  put_texts(out, ingredients);
  put_texts(out, {item.metadata.begin(), item.metadata.end()});
  return out;
}

std::vector<std::byte> encode_index(const std::map<Digest, BundleItem>& items) {
  std::vector<std::byte> out;
  std::vector<std::byte> facts;
  for (const auto& [request, item] : items) {
    const std::vector<std::byte> own = encode_facts(item);
    put_bytes(out, bytes_of(request));
    put_bytes(out, bytes_of(bundle_digest(request, item.entry->payload)));
    put_number(out, static_cast<std::uint64_t>(item.entry->payload.size()));
    put_number(out, static_cast<std::uint64_t>(facts.size()));
    put_number(out, static_cast<std::uint64_t>(own.size()));
    put_bytes(facts, own);
  }
  const std::map<Digest, std::uint64_t> memos = memo_table(items);
  put_number(out, static_cast<std::uint64_t>(memos.size()));
  for (const auto& [memo, number] : memos) {
    put_bytes(out, bytes_of(memo));
    put_number(out, number);
  }
  put_bytes(out, facts);
  return out;
}

std::vector<std::byte> encode_header(std::size_t entries, Bytes index, std::uint64_t file_bytes,
                                     const SigningKey* key) {
  std::vector<std::byte> out;
  put_text(out, kBundleMagic);
  put_number(out, kBundleVersion);
  put_number(out, static_cast<std::uint32_t>(entries));
  put_number(out, static_cast<std::uint64_t>(index.size()));
  put_number(out, file_bytes);
  put_bytes(out, bytes_of(sha256(index)));
  put_bytes(out, std::as_bytes(std::span(key ? key->public_key().bytes : PublicKey{}.bytes)));
  const Signature signature = key ? key->sign(out) : Signature{};
  put_bytes(out, std::as_bytes(std::span(signature)));
  put_bytes(out, bytes_of(sha256(out)));
  return out;
}

// By rising tags, each once; false where they are not.
bool take_texts(ByteReader& reader, Texts& texts) {
  const auto count = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && !reader.failed(); ++i) {
    const auto tag_bytes = reader.number<std::uint32_t>();
    const auto value_bytes = reader.number<std::uint32_t>();
    const std::string_view tag = reader.text(tag_bytes);
    const std::string_view value = reader.text(value_bytes);
    if (!texts.empty() && tag <= texts.back().first) return false;
    texts.emplace_back(tag, value);
  }
  return !reader.failed();
}

// Rising requests, and payloads that fill the rest of the file.
bool take_records(ByteReader& reader, const BundleHeader& header,
                  std::vector<BundleRecord>& records) {
  if (header.entries > reader.remaining() / kRecordBytes) return false;
  records.reserve(header.entries);
  std::uint64_t offset = kBundleHeaderBytes + header.index_bytes;
  for (std::uint32_t i = 0; i < header.entries; ++i) {
    BundleRecord record{.request = take_digest(reader), .digest = take_digest(reader)};
    record.offset = offset;
    record.bytes = reader.number<std::uint64_t>();
    record.facts_offset = reader.number<std::uint64_t>();
    record.facts_bytes = reader.number<std::uint64_t>();
    if (record.bytes > header.file_bytes - offset || record.bytes > kMaxEntryBytes) return false;
    if (!records.empty() && record.request.bytes <= records.back().request.bytes) return false;
    offset += record.bytes;
    records.push_back(record);
  }
  return offset == header.file_bytes;
}

// The records' facts, one after the other, and nothing else.
bool facts_are_whole(const std::vector<BundleRecord>& records, std::size_t bytes) {
  std::uint64_t expected = 0;
  for (const BundleRecord& record : records) {
    if (record.facts_offset != expected || record.facts_bytes > bytes - expected) return false;
    expected += record.facts_bytes;
  }
  return expected == bytes;
}

template <typename Items, typename Digested>
std::optional<std::size_t> binary_search(const Items& items, const Digest& digest,
                                         Digested Items::value_type::*member) {
  const auto found = std::lower_bound(
      items.begin(), items.end(), digest,
      [&](const auto& item, const Digest& d) { return (item.*member).bytes < d.bytes; });
  if (found == items.end() || (*found).*member != digest) return std::nullopt;
  return static_cast<std::size_t>(found - items.begin());
}

}  // namespace

Digest bundle_digest(const Digest& request, std::span<const std::byte> payload) {
  return Sha256().update(bytes_of(request)).update(payload).finish();
}

std::vector<std::byte> encode_bundle(std::vector<BundleItem> items, const SigningKey* key) {
  const std::map<Digest, BundleItem> sorted = by_request(std::move(items));
  const std::vector<std::byte> index = encode_index(sorted);
  if (index.size() > kMaxBundleIndexBytes || sorted.size() > UINT32_MAX) {
    refuse_bundle(fmt::format("a bundle of {} entries is too large", sorted.size()));
  }
  std::uint64_t file_bytes = kBundleHeaderBytes + index.size();
  for (const auto& [request, item] : sorted) file_bytes += item.entry->payload.size();
  std::vector<std::byte> out = encode_header(sorted.size(), index, file_bytes, key);
  out.reserve(file_bytes);
  put_bytes(out, index);
  for (const auto& [request, item] : sorted) put_bytes(out, item.entry->payload);
  return out;
}

DecodedHeader decode_bundle_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kBundleHeaderBytes) return {{}, "it is too short"};
  ByteReader reader(bytes.first(kBundleHeaderBytes));
  if (reader.text(kBundleMagic.size()) != kBundleMagic) return {{}, "it is not a bundle"};
  if (reader.number<std::uint32_t>() != kBundleVersion)
    return {{}, "it has another format version"};
  DecodedHeader decoded;
  BundleHeader& header = decoded.header;
  header.entries = reader.number<std::uint32_t>();
  header.index_bytes = reader.number<std::uint64_t>();
  header.file_bytes = reader.number<std::uint64_t>();
  header.index_digest = take_digest(reader);
  const PublicKey signer{take_digest(reader).bytes};
  Signature signature;
  std::memcpy(signature.data(), reader.take(signature.size()).data(), signature.size());
  if (take_digest(reader) != sha256(bytes.first(kDigestedBytes))) {
    return {{}, "its digest does not match"};
  }
  if (header.index_bytes > kMaxBundleIndexBytes ||
      header.file_bytes < kBundleHeaderBytes + header.index_bytes) {
    return {{}, "its lengths contradict each other"};
  }
  if (signer == PublicKey{} && signature == Signature{}) return decoded;
  if (!is_signed_by(signer, bytes.first(kSignedBytes), signature)) {
    return {{}, "its signature is wrong"};
  }
  header.signer = signer;
  return decoded;
}

std::optional<BundleIndex> BundleIndex::decode(const BundleHeader& header,
                                               std::span<const std::byte> bytes,
                                               std::string& problem) {
  if (sha256(bytes) != header.index_digest) {
    problem = "the digest of its index does not match";
    return std::nullopt;
  }
  problem = "its index contradicts itself";
  BundleIndex index;
  ByteReader reader(bytes);
  if (!take_records(reader, header, index.records_)) return std::nullopt;
  const auto memos = reader.number<std::uint64_t>();
  if (reader.failed() || memos > reader.remaining() / kMemoBytes) return std::nullopt;
  index.memos_.reserve(memos);
  for (std::uint64_t i = 0; i < memos; ++i) {
    const Memo memo{.digest = take_digest(reader), .entry = reader.number<std::uint64_t>()};
    const bool rises = index.memos_.empty() || index.memos_.back().digest.bytes < memo.digest.bytes;
    if (!rises || memo.entry >= index.records_.size()) return std::nullopt;
    index.memos_.push_back(memo);
  }
  const Bytes facts = reader.take(reader.remaining());
  if (!facts_are_whole(index.records_, facts.size())) return std::nullopt;
  index.facts_.assign(facts.begin(), facts.end());
  problem.clear();
  return index;
}

std::optional<std::size_t> BundleIndex::find(const Digest& request) const {
  return binary_search(records_, request, &BundleRecord::request);
}

std::optional<std::size_t> BundleIndex::find_memo(const Digest& memo) const {
  const std::optional<std::size_t> found = binary_search(memos_, memo, &Memo::digest);
  if (!found) return std::nullopt;
  return memos_[*found].entry;
}

std::optional<BundleFacts> BundleIndex::facts(std::size_t entry) const {
  const BundleRecord& record = records_[entry];
  ByteReader reader(Bytes(facts_).subspan(record.facts_offset, record.facts_bytes));
  Texts ingredients;
  Texts metadata;
  if (!take_texts(reader, ingredients) || !take_texts(reader, metadata)) return std::nullopt;
  if (reader.remaining() != 0) return std::nullopt;
  BundleFacts facts;
  for (const auto& [tag, value] : ingredients) {
    facts.ingredients.push_back({std::string(tag), std::string(value)});
  }
  for (const auto& [name, value] : metadata) facts.metadata.emplace(name, value);
  const bool has_empty_tag = std::any_of(ingredients.begin(), ingredients.end(),
                                         [](const auto& i) { return i.first.empty(); });
  if (has_empty_tag || digest_of(facts.ingredients) != record.request) return std::nullopt;
  return facts;
}

}  // namespace tilewright::cache
