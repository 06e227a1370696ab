#pragma once

#include <cstddef>
#include <vector>

#include "../snippet/spec_facts.hpp"

namespace tilewright {

/// Tables that a kernel has room for.
inline constexpr std::size_t kMaxExtremaTables = 8;

/// A buffer of which the proved path of a block mask has a table of least and greatest values
/// (templates/abi/extrema.hpp).
struct ExtremaTable {
  std::size_t buffer;  ///< in the order of the spec's names
  std::size_t rank;    ///< of the buffer
  bool is_wide;        ///< entries are pairs of 64-bit integers, else of 32-bit ones
};

/// The tables of a spec: of each integer buffer that mask_mod mentions, has along q or kv, and in
/// all other dimensions by batch or head, whose index is the same all over a tile. At most
/// kMaxExtremaTables; reads of any further buffer prove nothing. A buffer that is promised to be
/// sorted needs none.
std::vector<ExtremaTable> extrema_tables(const SpecFacts& facts);

}  // namespace tilewright
