#include "cache/sha256.hpp"

#include <openssl/evp.h>

#include "base/error.hpp"

namespace tilewright::cache {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

void require(bool done) {
  if (done) return;
  throw Error(ErrorCode::internal, "libcrypto refuses to compute SHA-256",
              "check OpenSSL's configuration (OPENSSL_CONF, FIPS mode)");
}

}  // namespace

struct Sha256::Context {
  Context() : evp(EVP_MD_CTX_new()) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_MD_CTX_free(evp); }
  EVP_MD_CTX* evp;
};

std::string Digest::hex() const {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 15];
  }
  return text;
}

std::optional<Digest> Digest::from_hex(std::string_view text) {
  Digest digest;
  if (text.size() != 2 * digest.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    const std::size_t high = kHexDigits.find(text[2 * i]);
    const std::size_t low = kHexDigits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    digest.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return digest;
}

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  require(context_->evp != nullptr && EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1);
}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

Sha256& Sha256::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1);
  return *this;
}

Sha256& Sha256::update(std::string_view text) {
  return update(std::as_bytes(std::span(text.data(), text.size())));
}

Digest Sha256::finish() {
  Digest digest;
  require(EVP_DigestFinal_ex(context_->evp, digest.bytes.data(), nullptr) == 1);
  return digest;
}

Digest sha256(std::span<const std::byte> bytes) {
  return Sha256().update(bytes).finish();
}
Digest sha256(std::string_view text) {
  return Sha256().update(text).finish();
}

}  // namespace tilewright::cache
