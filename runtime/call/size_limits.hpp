#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "../../base/error.hpp"

namespace tilewright {

/// The greatest length: kernels count up to the end of tiles that go beyond the last row or column.
inline constexpr std::int64_t kMaxIndex = std::numeric_limits<int>::max() - 1024;

/// @throws Error with code tensor where a size is not from `least` to `greatest`
inline void require_size(std::string_view name, std::int64_t size, std::int64_t least,
                         std::int64_t greatest) {
  if (size >= least && size <= greatest) return;
  throw Error(ErrorCode::tensor,
              fmt::format("{} is {}; it must be from {} to {}", name, size, least, greatest));
}

}  // namespace tilewright
