#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tilewright::cache {

/// An Ed25519 signature (RFC 8032).
using Signature = std::array<std::uint8_t, 64>;

/// The half of an Ed25519 key pair that may be known to all.
struct PublicKey {
  std::array<std::uint8_t, 32> bytes{};

  /// 64 hexadecimal digits, or the path of a PEM file ("openssl pkey -pubout" writes it).
  /// @throws Error with code usage where it is neither; with code file for a file that is no key
  static PublicKey parse(std::string_view text);

  /// 64 lower-case hexadecimal digits.
  std::string hex() const;

  bool operator==(const PublicKey&) const = default;
};

/// The half that signs.
class SigningKey {
 public:
  /// Reads a PEM file without a passphrase, as "openssl genpkey -algorithm ed25519" writes it.
  /// @throws Error with code file
  static SigningKey from_file(const std::filesystem::path& path);

  const PublicKey& public_key() const { return public_key_; }
  /// The same message gives the same signature.
  Signature sign(std::span<const std::byte> message) const;

 private:
  SigningKey(std::shared_ptr<void> key, const PublicKey& public_key)
      : key_(std::move(key)), public_key_(public_key) {}

  std::shared_ptr<void> key_;  // an EVP_PKEY
  PublicKey public_key_;
};

/// Whether the holder of the key's other half signed exactly this message.
bool is_signed_by(const PublicKey& key, std::span<const std::byte> message,
                  const Signature& signature);

}  // namespace tilewright::cache
