#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "undefined_behaviour.hpp"

namespace tilewright::verify {

/// "-63 to 69", "64", "-infinity to 7".
std::string range_text(std::int64_t least, std::int64_t greatest);

/// The extent that holds all indices outside of a dimension: nothing if one of them is below 0 or
/// beyond any table, or if the dimension is a name, whose extent neither spec nor call may choose.
std::optional<std::int64_t> needed_extent(const Spec& spec, const OutsideIndices& outside);

/// What reads of one buffer asked for outside of it, of all places in a spec's snippets.
struct BufferEnds {
  std::map<int, std::int64_t> needed = {};  ///< by dimension: the extent that holds all its indices
  std::vector<std::string> unheld = {};     ///< clauses: why no such extent
  bool reads_nan = false;                   ///< no extent holds it
};

/// By the buffer's name.
std::map<std::string, BufferEnds> find_buffer_ends(const Spec& spec,
                                                   std::span<const UndefinedOperation> operations);

/// What could be changed about a buffer: `make dimension 0 of "x" 8 long (--buffer, of random
/// inputs)`, then the clauses of BufferEnds::unheld. Empty if there is nothing.
std::string advice_on_extents(const Spec& spec, const std::string& buffer, const BufferEnds& ends);

}  // namespace tilewright::verify
