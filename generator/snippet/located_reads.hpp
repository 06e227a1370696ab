#pragma once

#include <vector>

#include "../spec/spec.hpp"
#include "splice.hpp"

namespace tilewright {

/// Tells the checked interpretation where a snippet reads its buffers: `x[i]` becomes
/// `x.tw_at(N)[i]`, where N is the offset of `x` in the text. Names that the snippet may declare
/// anew stay as they are.
std::vector<Replacement> located_reads(const Snippet& snippet, const Spec& spec);

}  // namespace tilewright
