#pragma once

#include <string>
#include <vector>

#include "spec.hpp"

namespace tilewright {

/// A read of a buffer whose indices are sums of indices, lengths and whole numbers, as
/// `bias[q_idx - kv_idx + 8192]`, also clamped to something that no index is part of. Over a tile
/// they are least and greatest at its corners, so four evaluations tell whether it stays inside.
struct LinearRead {
  std::string buffer;            ///< "bias"
  std::string indices;           ///< "q_idx - kv_idx + 8192"
  bool has_own_element = false;  ///< for each q_idx and kv_idx, which are in different indices
};

/// score_mod's reads that differ between elements (the others are done ahead, see HoistedRead), if
/// all of them are linear; none at all if one is not, or is of a trusted buffer.
std::vector<LinearRead> linear_reads(const Spec& spec);

}  // namespace tilewright
