#include "tests/cache/bundle_support.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>
#include <stdexcept>

#include "base/error.hpp"
#include "base/file_io.hpp"

namespace cache_test {

using namespace tilewright::cache;

namespace {

// Of 48 bytes, which need no padding.
std::string base64(const std::vector<std::uint8_t>& bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i + 2 < bytes.size(); i += 3) {
    const unsigned group = bytes[i] << 16u | bytes[i + 1] << 8u | bytes[i + 2];
    for (const unsigned shift : {18u, 12u, 6u, 0u}) text += kDigits[group >> shift & 63u];
  }
  return text;
}

void put_digest(std::vector<std::byte>& bytes, std::size_t at, const Digest& digest) {
  std::memcpy(bytes.data() + at, digest.bytes.data(), digest.bytes.size());
}

}  // namespace

BundleItem item_named(const std::string& name, std::size_t bytes) {
  return {.request = make_request({{"name", name}, {"target", "cpu"}}),
          .memos = {memo_named(name)},
          .metadata = {{"compiler", "test 1"}, {"kernel", name}},
          .entry = std::make_shared<const Entry>(entry_named(name, bytes))};
}

std::vector<BundleItem> items(std::size_t count, std::size_t bytes) {
  std::vector<BundleItem> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(item_named("kernel " + std::to_string(i), bytes));
  }
  return all;
}

Digest request_named(const std::string& name) {
  return item_named(name).request.digest;
}

Digest memo_named(const std::string& name) {
  return sha256("memo of " + name);
}

std::filesystem::path write_key(const TemporaryFolder& folder, std::uint8_t seed) {
  // What precedes the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410).
  std::vector<std::uint8_t> der = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
                                   0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20};
  der.resize(der.size() + 32, seed);
  const std::filesystem::path path = folder / ("key" + std::to_string(seed) + ".pem");
  tilewright::write_text_file(
      path, "-----BEGIN PRIVATE KEY-----\n" + base64(der) + "\n-----END PRIVATE KEY-----\n", 0600);
  return path;
}

std::string refusal(const std::filesystem::path& path, const std::vector<PublicKey>& trusted) {
  try {
    Bundle::open(path, trusted);
  } catch (const tilewright::Error& error) {
    return error.message();
  }
  return {};
}

void write_raw(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  // Not write_file(), which syncs: tests do this thousands of times.
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.native());
  file.close();
  std::filesystem::permissions(path, std::filesystem::perms(0644));
}

void fix_digests(std::vector<std::byte>& bundle) {
  const BundleHeader header = decode_bundle_header(bundle).header;
  const std::span<const std::byte> bytes = bundle;
  put_digest(bundle, 32, sha256(bytes.subspan(kBundleHeaderBytes, header.index_bytes)));
  put_digest(bundle, 160, sha256(bytes.first(160)));
}

}  // namespace cache_test
