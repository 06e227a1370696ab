#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::picture {

/// A mark on an axis of tokens.
struct Tick {
  std::int64_t position = 0;  ///< tokens from the axis' start
  std::string label;          ///< the token's index: position + offset
};

/// Marks at multiples of a power of two, which are edges of tiles where that is coarse enough, and
/// at the end. Large indices are written in units of 1024: "16k".
/// @param length of the axis, in tokens
/// @param block side of a tile
/// @param offset of the first token's index
/// @param max_ticks how many there is room for, at least 2
std::vector<Tick> axis_ticks(std::int64_t length, std::int64_t block, std::int64_t offset,
                             std::int64_t max_ticks);

}  // namespace tilewright::picture
