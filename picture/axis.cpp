#include "picture/axis.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"

namespace tilewright::picture {
namespace {

constexpr std::int64_t kUnit = 1024;
constexpr std::int64_t kLongAxis = 8 * kUnit;

std::string label_of(std::int64_t index, bool in_units) {
  const bool shortened = in_units && index != 0 && index % kUnit == 0;
  return shortened ? std::to_string(index / kUnit) + "k" : std::to_string(index);
}

}  // namespace

std::vector<Tick> axis_ticks(std::int64_t length, std::int64_t block, std::int64_t offset,
                             std::int64_t max_ticks) {
  const std::int64_t intervals = std::max<std::int64_t>(1, max_ticks - 1);
  std::int64_t step = length > block ? block : 1;
  while (ceil_div(length, step) > intervals) step *= 2;
  const bool in_units = length >= kLongAxis && step % kUnit == 0;
  std::vector<Tick> ticks;
  for (std::int64_t position = 0; position < length; position += step) {
    ticks.push_back({position, label_of(position + offset, in_units)});
  }
  // The end says how long the axis is; a mark too near to it would run into its label.
  if (ticks.size() > 1 && 4 * (length - ticks.back().position) < 3 * step) ticks.pop_back();
  ticks.push_back({length, label_of(length + offset, in_units)});
  return ticks;
}

}  // namespace tilewright::picture
