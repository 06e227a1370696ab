#include "picture/color.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace tilewright::picture {
namespace {

// Every eighth part of matplotlib's viridis.
constexpr std::array<Color, 9> kViridis = {{{68, 1, 84},
                                            {71, 45, 123},
                                            {59, 82, 139},
                                            {44, 114, 142},
                                            {33, 145, 140},
                                            {40, 174, 128},
                                            {94, 201, 98},
                                            {173, 220, 48},
                                            {253, 231, 37}}};

std::uint8_t between(std::uint8_t a, std::uint8_t b, double share) {
  return static_cast<std::uint8_t>(std::lround(a + (b - a) * share));
}

}  // namespace

Color mix(Color a, Color b, double share) {
  return {between(a.red, b.red, share), between(a.green, b.green, share),
          between(a.blue, b.blue, share)};
}

Color heat(double share) {
  const double position = std::clamp(share, 0.0, 1.0) * (kViridis.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(position), kViridis.size() - 2);
  return mix(kViridis[below], kViridis[below + 1], position - static_cast<double>(below));
}

std::string hex(Color color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue);
}

}  // namespace tilewright::picture
