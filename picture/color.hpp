#pragma once

#include <cstdint>
#include <string>

namespace tilewright::picture {

struct Color {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;

  friend bool operator==(const Color&, const Color&) = default;
  // NOLINTNEXTLINE(modernize-use-nullptr): see cache/sha256.hpp
  friend auto operator<=>(const Color&, const Color&) = default;
};

// Blue and orange of Okabe and Ito, and greys: people with any kind of colour blindness tell them
// apart, and so does a grey printer.
inline constexpr Color kFull = {0, 114, 178};
inline constexpr Color kPartial = {230, 159, 0};
inline constexpr Color kPartialDropped = {250, 226, 178};  ///< elements of partial tiles
inline constexpr Color kEmpty = {233, 233, 236};
inline constexpr Color kPaper = {255, 255, 255};
inline constexpr Color kInk = {34, 34, 34};
inline constexpr Color kFaintInk = {95, 95, 95};
inline constexpr Color kLine = {120, 120, 120};

/// `share` of b, the rest of a.
Color mix(Color a, Color b, double share);

/// From dark blue (0) over green to yellow (1), rising in brightness all the way: viridis.
Color heat(double share);

/// "#0072b2"
std::string hex(Color color);

}  // namespace tilewright::picture
