#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "c/error.hpp"

namespace tilewright::capi {

[[noreturn]] void refuse_size(const char* name, std::size_t given, std::size_t known);

[[noreturn]] void refuse_reserved(const char* name);

/// Refuses a struct whose reserved field is not 0: a later version may give it a meaning.
inline void require_zero(std::int32_t reserved, const char* name) {
  if (reserved != 0) refuse_reserved(name);
}

/// A struct of the ABI that a program gave, as this version knows it: fields that the program's
/// header did not have are zero.
template <typename Struct>
class Sized {
 public:
  /// @param given may be null: all zeros
  /// @throws Error with code usage for a struct that is larger than this version's, or has no size
  Sized(const Struct* given, const char* name) {
    if (given && given->struct_size == sizeof(Struct)) {
      used_ = given;
      return;
    }
    used_ = &copy_;
    if (!given) return;
    const std::size_t size = given->struct_size;
    if (size < sizeof(std::size_t) || size > sizeof(Struct))
      refuse_size(name, size, sizeof(Struct));
    std::memcpy(static_cast<void*>(&copy_), given, size);
  }
  Sized(const Sized&) = delete;
  Sized& operator=(const Sized&) = delete;

  const Struct* operator->() const { return used_; }
  const Struct& operator*() const { return *used_; }

 private:
  Struct copy_ = {};
  const Struct* used_;
};

/// Gives a program as much of a struct as its header has.
/// @throws Error with code usage as Sized
template <typename Struct>
void fill_sized(Struct* target, Struct filled, const char* name) {
  const std::size_t size = required(target, name).struct_size;
  if (size < sizeof(std::size_t) || size > sizeof(Struct)) refuse_size(name, size, sizeof(Struct));
  filled.struct_size = size;
  std::memcpy(static_cast<void*>(target), &filled, size);
}

}  // namespace tilewright::capi
