#include "cache/signature.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "cache/sha256.hpp"

namespace tilewright::cache {
namespace {

using KeyPointer = std::shared_ptr<EVP_PKEY>;
using ContextPointer = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;
using ReadPem = EVP_PKEY* (*)(BIO*, EVP_PKEY**, pem_password_cb*, void*);

constexpr std::uint64_t kMaxKeyFile = std::uint64_t{64} << 10;

const unsigned char* data_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

[[noreturn]] void refuse_libcrypto() {
  throw Error(ErrorCode::internal, "libcrypto refuses Ed25519",
              "check OpenSSL's configuration (OPENSSL_CONF, FIPS mode)");
}

// A passphrase is never asked for: the program may run without a terminal.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

KeyPointer key_from_pem(const std::filesystem::path& path, ReadPem read, std::string_view kind,
                        std::string hint) {
  const std::vector<std::byte> bytes = read_file(path, {.max_bytes = kMaxKeyFile});
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())), &BIO_free);
  const KeyPointer key(bio ? read(bio.get(), nullptr, no_passphrase, nullptr) : nullptr,
                       &EVP_PKEY_free);
  if (key && EVP_PKEY_id(key.get()) == EVP_PKEY_ED25519) return key;
  throw Error(ErrorCode::file,
              fmt::format("\"{}\" holds no {} Ed25519 key in PEM form{}", path.native(), kind,
                          key ? ", but one of another kind" : ""),
              std::move(hint));
}

PublicKey public_half(EVP_PKEY* key) {
  PublicKey result;
  std::size_t size = result.bytes.size();
  if (EVP_PKEY_get_raw_public_key(key, result.bytes.data(), &size) != 1 ||
      size != result.bytes.size()) {
    refuse_libcrypto();
  }
  return result;
}

}  // namespace

PublicKey PublicKey::parse(std::string_view text) {
  if (const std::optional<Digest> digits = Digest::from_hex(text)) return {digits->bytes};
  const std::filesystem::path path(text);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    throw Error(ErrorCode::usage, fmt::format("\"{}\" is no public key", text),
                "give 64 lower-case hexadecimal digits, or the path of a PEM file (openssl pkey "
                "-in key.pem -pubout -out key.pub)");
  }
  const KeyPointer key = key_from_pem(path, PEM_read_bio_PUBKEY, "public",
                                      "openssl pkey -in key.pem -pubout -out key.pub writes one");
  return public_half(key.get());
}

std::string PublicKey::hex() const {
  return Digest{bytes}.hex();
}

SigningKey SigningKey::from_file(const std::filesystem::path& path) {
  KeyPointer key =
      key_from_pem(path, PEM_read_bio_PrivateKey, "private",
                   "openssl genpkey -algorithm ed25519 -out key.pem makes one; it must have no "
                   "passphrase");
  const PublicKey public_key = public_half(key.get());
  return {std::move(key), public_key};
}

Signature SigningKey::sign(std::span<const std::byte> message) const {
  Signature signature{};
  std::size_t size = signature.size();
  const ContextPointer context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  auto* const key = static_cast<EVP_PKEY*>(key_.get());
  const bool done =
      context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key) == 1 &&
      EVP_DigestSign(context.get(), signature.data(), &size, data_of(message), message.size()) == 1;
  if (!done || size != signature.size()) refuse_libcrypto();
  return signature;
}

bool is_signed_by(const PublicKey& key, std::span<const std::byte> message,
                  const Signature& signature) {
  const KeyPointer pkey(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.bytes.data(), key.bytes.size()),
      &EVP_PKEY_free);
  const ContextPointer context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!context) refuse_libcrypto();
  return pkey && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, pkey.get()) == 1 &&
         EVP_DigestVerify(context.get(), signature.data(), signature.size(), data_of(message),
                          message.size()) == 1;
}

}  // namespace tilewright::cache
