#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace tilewright::cache {

// Fields of the cache's files: little-endian numbers, and bytes as they are.

template <typename Number>
void put_number(std::vector<std::byte>& out, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) {
    out.push_back(std::byte(number >> (8 * i) & 0xff));
  }
}

inline void put_bytes(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

inline void put_text(std::vector<std::byte>& out, std::string_view text) {
  put_bytes(out, std::as_bytes(std::span(text.data(), text.size())));
}

/// Takes fields off the front of some bytes; once a field is missing, everything after it is.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename Number>
  Number number() {
    Number value = 0;
    const std::span<const std::byte> field = take(sizeof value);
    for (std::size_t i = 0; i < field.size(); ++i) {
      value |= static_cast<Number>(static_cast<Number>(field[i]) << (8 * i));
    }
    return value;
  }

  std::string_view text(std::size_t size) {
    const std::span<const std::byte> field = take(size);
    return {reinterpret_cast<const char*>(field.data()), field.size()};
  }

  std::span<const std::byte> take(std::size_t size) {
    if (size > rest_.size()) failed_ = true;
    if (failed_) return {};
    const std::span<const std::byte> field = rest_.first(size);
    rest_ = rest_.subspan(size);
    return field;
  }

  bool failed() const { return failed_; }
  std::size_t remaining() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
  bool failed_ = false;
};

}  // namespace tilewright::cache
