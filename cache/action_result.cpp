#include "cache/action_result.hpp"

#include <string>
#include <utility>

#include "cache/bytes.hpp"

namespace tilewright::cache {
namespace {

constexpr std::uint64_t kOutputFiles = 2;  // of ActionResult
constexpr std::uint64_t kPath = 1;         // of OutputFile
constexpr std::uint64_t kDigest = 2;
constexpr std::uint64_t kHash = 1;  // of Digest
constexpr std::uint64_t kSizeBytes = 2;

// How a field is written: the three low bits of its tag.
enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::vector<std::byte>& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(std::byte(value | 0x80));
  out.push_back(std::byte(value));
}

void put_tag(std::vector<std::byte>& out, std::uint64_t field, WireType type) {
  put_varint(out, field << 3 | static_cast<std::uint64_t>(type));
}

void put_field(std::vector<std::byte>& out, std::uint64_t field, std::span<const std::byte> bytes) {
  put_tag(out, field, WireType::bytes);
  put_varint(out, bytes.size());
  put_bytes(out, bytes);
}

void put_field(std::vector<std::byte>& out, std::uint64_t field, std::string_view text) {
  put_field(out, field, std::as_bytes(std::span(text.data(), text.size())));
}

// Nothing where it does not end, or needs more than 64 bits.
std::optional<std::uint64_t> take_varint(ByteReader& reader) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = reader.number<std::uint8_t>();
    if (reader.failed() || (shift == 63 && byte > 1)) return std::nullopt;
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

struct Field {
  std::uint64_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;           // of a varint
  std::span<const std::byte> bytes;  // of any other
};

std::optional<Field> take_field(ByteReader& reader) {
  const std::optional<std::uint64_t> tag = take_varint(reader);
  if (!tag || *tag >> 3 == 0) return std::nullopt;
  Field field{.number = *tag >> 3, .type = static_cast<WireType>(*tag & 7), .bytes = {}};
  switch (field.type) {
    case WireType::varint:
    case WireType::bytes: {
      const std::optional<std::uint64_t> value = take_varint(reader);
      if (!value) return std::nullopt;
      field.value = *value;
      if (field.type == WireType::bytes) field.bytes = reader.take(*value);
      break;
    }
    case WireType::fixed64:
      field.bytes = reader.take(8);
      break;
    case WireType::fixed32:
      field.bytes = reader.take(4);
      break;
    default:
      return std::nullopt;
  }
  if (reader.failed()) return std::nullopt;
  return field;
}

// Calls `visit` for each field of a message; false where it is malformed.
template <typename Visit>
bool for_each_field(std::span<const std::byte> message, const Visit& visit) {
  ByteReader reader(message);
  while (reader.remaining() > 0) {
    const std::optional<Field> field = take_field(reader);
    if (!field) return false;
    visit(*field);
  }
  return true;
}

std::string_view text_of(const Field& field) {
  return {reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size()};
}

std::optional<BlobName> decode_digest(std::span<const std::byte> message) {
  std::optional<Digest> digest;
  std::uint64_t bytes = 0;
  const bool is_good = for_each_field(message, [&](const Field& field) {
    if (field.number == kHash && field.type == WireType::bytes) {
      digest = Digest::from_hex(text_of(field));
    }
    if (field.number == kSizeBytes && field.type == WireType::varint) bytes = field.value;
  });
  if (!is_good || !digest) return std::nullopt;
  return BlobName{*digest, bytes};
}

struct OutputFile {
  std::string_view path;
  std::optional<BlobName> blob;
};

std::optional<OutputFile> decode_output_file(std::span<const std::byte> message) {
  OutputFile file;
  const bool is_good = for_each_field(message, [&](const Field& field) {
    if (field.type != WireType::bytes) return;
    if (field.number == kPath) file.path = text_of(field);
    if (field.number == kDigest) file.blob = decode_digest(field.bytes);
  });
  if (!is_good) return std::nullopt;
  return file;
}

}  // namespace

std::vector<std::byte> encode_action_result(const BlobName& blob) {
  std::vector<std::byte> digest;
  put_field(digest, kHash, blob.digest.hex());
  if (blob.bytes != 0) {
    put_tag(digest, kSizeBytes, WireType::varint);
    put_varint(digest, blob.bytes);
  }
  std::vector<std::byte> file;
  put_field(file, kPath, kOutputPath);
  put_field(file, kDigest, digest);
  std::vector<std::byte> result;
  put_field(result, kOutputFiles, file);
  return result;
}

std::optional<BlobName> decode_action_result(std::span<const std::byte> message) {
  std::optional<BlobName> found;
  bool all_files_are_good = true;
  const bool is_good = for_each_field(message, [&](const Field& field) {
    if (field.number != kOutputFiles || field.type != WireType::bytes) return;
    const std::optional<OutputFile> file = decode_output_file(field.bytes);
    if (!file) all_files_are_good = false;
    if (file && file->path == kOutputPath && !found) found = file->blob;
  });
  if (!is_good || !all_files_are_good) return std::nullopt;
  return found;
}

}  // namespace tilewright::cache
