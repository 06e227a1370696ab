#include "verify/buffer_ends.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::verify {
namespace {

// Floats of 64 MB. An offset of the call or an overflow makes greater indices, which no table
// holds.
constexpr std::int64_t kLongest = 1 << 24;

const BufferDim& dimension_of(const Spec& spec, const OutsideIndices& outside) {
  return spec.buffers.at(outside.buffer).shape.at(static_cast<std::size_t>(outside.dimension));
}

// An index that int64 does not hold is the nearest one that it does.
std::string index_text(std::int64_t index) {
  if (index == std::numeric_limits<std::int64_t>::max()) return "infinity";
  if (index == std::numeric_limits<std::int64_t>::min()) return "-infinity";
  return fmt::format("{}", index);
}

// The extent that would hold all indices if the snippet added -least to each.
std::optional<std::int64_t> shifted_extent(const OutsideIndices& outside) {
  if (!outside.passes_both_ends()) return std::nullopt;
  if (outside.least <= -kLongest || outside.greatest >= kLongest) return std::nullopt;
  const std::int64_t extent = outside.greatest - outside.least + 1;
  return extent > kLongest ? std::nullopt : std::optional(extent);
}

std::string why_unheld(const Spec& spec, const OutsideIndices& outside) {
  const BufferDim& dimension = dimension_of(spec, outside);
  const std::string of_buffer =
      fmt::format("dimension {} of \"{}\"", outside.dimension, outside.buffer);
  if (const auto* const name = std::get_if<NamedDim>(&dimension)) {
    return fmt::format("{} is {}, {} in this call, and was read at {}: no other extent fits it",
                       of_buffer, to_string(*name), outside.extent,
                       range_text(outside.least, outside.greatest));
  }
  const std::string was_read =
      fmt::format("{} was read at {}", of_buffer, range_text(outside.least, outside.greatest));
  if (outside.least >= 0) {
    return fmt::format("{}, which no table of {} elements holds", was_read, kLongest);
  }
  const std::optional<std::int64_t> extent = shifted_extent(outside);
  return fmt::format("{}: no extent holds what is below 0{}", was_read,
                     extent ? fmt::format(", and one of {} holds all where the snippet adds {}",
                                          *extent, -outside.least)
                            : "");
}

OutsideIndices merged(const OutsideIndices& known, const OutsideIndices& other) {
  OutsideIndices both = known;
  both.least = std::min(known.least, other.least);
  both.greatest = std::max(known.greatest, other.greatest);
  return both;
}

// Where no table has all extents that its dimensions need.
void refuse_great_table(const std::string& buffer, BufferEnds& ends) {
  double elements = 1;
  std::vector<std::int64_t> extents;
  for (const auto& [dimension, extent] : ends.needed) {
    extents.push_back(extent);
    elements *= static_cast<double>(extent);
  }
  if (elements <= kLongest) return;
  ends.unheld.push_back(fmt::format("\"{}\" would need {} elements, and no table has more than {}",
                                    buffer, fmt::join(extents, " x "), kLongest));
  ends.needed.clear();
}

}  // namespace

std::string range_text(std::int64_t least, std::int64_t greatest) {
  if (least == greatest) return index_text(least);
  return fmt::format("{} to {}", index_text(least), index_text(greatest));
}

std::optional<std::int64_t> needed_extent(const Spec& spec, const OutsideIndices& outside) {
  const bool is_named = std::holds_alternative<NamedDim>(dimension_of(spec, outside));
  if (is_named || outside.least < 0 || outside.greatest >= kLongest) return std::nullopt;
  return outside.greatest + 1;
}

std::map<std::string, BufferEnds> find_buffer_ends(const Spec& spec,
                                                   std::span<const UndefinedOperation> operations) {
  std::map<std::string, BufferEnds> ends;
  std::map<std::pair<std::string, int>, OutsideIndices> dimensions;
  for (const UndefinedOperation& operation : operations) {
    if (!operation.outside) continue;
    const OutsideIndices& outside = *operation.outside;
    BufferEnds& of_buffer = ends[outside.buffer];
    of_buffer.reads_nan = of_buffer.reads_nan || outside.is_nan;
    if (outside.is_nan) continue;
    const auto [entry, is_new] =
        dimensions.emplace(std::pair(outside.buffer, outside.dimension), outside);
    if (!is_new) entry->second = merged(entry->second, outside);
  }
  for (const auto& [key, outside] : dimensions) {
    BufferEnds& of_buffer = ends.at(outside.buffer);
    if (const auto extent = needed_extent(spec, outside)) {
      of_buffer.needed.emplace(outside.dimension, *extent);
    } else {
      of_buffer.unheld.push_back(why_unheld(spec, outside));
    }
  }
  for (auto& [buffer, of_buffer] : ends) refuse_great_table(buffer, of_buffer);
  return ends;
}

std::string advice_on_extents(const Spec& spec, const std::string& buffer, const BufferEnds& ends) {
  const std::vector<BufferDim>& shape = spec.buffers.at(buffer).shape;
  std::vector<std::string> longer;
  for (const auto& [dimension, extent] : ends.needed) {
    const bool is_free =
        std::holds_alternative<FreeDim>(shape.at(static_cast<std::size_t>(dimension)));
    longer.push_back(fmt::format("dimension {} of \"{}\" {} long ({})", dimension, buffer, extent,
                                 is_free ? "--buffer, of random inputs" : "\"shape\" in the spec"));
  }
  std::vector<std::string> clauses = ends.unheld;
  if (!longer.empty()) {
    clauses.insert(clauses.begin(), fmt::format("make {}", fmt::join(longer, " and ")));
  }
  return fmt::format("{}", fmt::join(clauses, "; "));
}

}  // namespace tilewright::verify
