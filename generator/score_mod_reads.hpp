#pragma once

#include "spec.hpp"

namespace tilewright {

/// What score_mod reads of its buffers: nothing, values that a whole head shares (`slopes[h]`), or
/// more: values that differ between elements, rows or columns, for which a kernel needs registers
/// in its loop.
enum class ScoreModReads { none, for_heads, more };
ScoreModReads score_mod_reads(const Spec& spec);

}  // namespace tilewright
