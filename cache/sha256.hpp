#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tilewright::cache {

/// A SHA-256 digest.
struct Digest {
  std::array<std::uint8_t, 32> bytes{};

  /// 64 lower-case hexadecimal digits.
  std::string hex() const;

  /// The reverse of hex(); nothing for any other text, upper case included, so that each digest has
  /// one spelling.
  static std::optional<Digest> from_hex(std::string_view text);

  // clang-tidy 14 takes the comparison with 0 that the compiler writes for a pointer's.
  auto operator<=>(const Digest&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// SHA-256 of a text that comes in pieces. Throws Error (internal) where libcrypto refuses.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  Sha256& update(std::span<const std::byte> bytes);
  Sha256& update(std::string_view text);

  /// The digest of everything so far; nothing may be added afterwards.
  Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Digest sha256(std::span<const std::byte> bytes);
Digest sha256(std::string_view text);

}  // namespace tilewright::cache

template <>
struct std::hash<tilewright::cache::Digest> {
  std::size_t operator()(const tilewright::cache::Digest& digest) const noexcept {
    std::size_t value;  // the digest's bytes are as good as random already
    std::memcpy(&value, digest.bytes.data(), sizeof value);
    return value;
  }
};
