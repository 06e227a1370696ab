#pragma once

#include "spec.hpp"

namespace tilewright {

/// Whether score_mod takes `kv_idx - q_idx` or `q_idx - kv_idx` and its indices may be classes in
/// place of ints (templates/cuda/snippet/index.hpp). They may not where a type is deduced from one,
/// as in `auto i = kv_idx; i += 1` or a lambda that returns it here and an int there.
bool takes_index_difference(const Spec& spec);

}  // namespace tilewright
