#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewright::jinja {

// Limits that no kernel template comes near, so that no input can overflow the stack, hang the
// process or fill its memory.
inline constexpr std::size_t kMaxTemplateBytes = 16 << 20;
inline constexpr std::size_t kMaxOutputBytes = 16 << 20;
inline constexpr std::size_t kMaxStringBytes = 16 << 20;
inline constexpr std::size_t kMaxNameBytes = 128;
inline constexpr std::size_t kMaxItems = 100'000;  ///< of one list, map or range
inline constexpr int kMaxExpressionDepth = 100;
inline constexpr int kMaxBlockDepth = 50;  ///< of if and for inside one template
inline constexpr int kMaxIncludeDepth = 16;
inline constexpr int kMaxValueDepth = 32;              ///< of lists within lists
inline constexpr std::int64_t kMaxSteps = 10'000'000;  ///< of one rendering, see Budget

}  // namespace tilewright::jinja
