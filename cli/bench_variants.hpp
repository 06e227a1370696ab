#pragma once

#include <cstdint>
#include <vector>

#include "generator/spec.hpp"

namespace tilewright::cli {

/// Attention without snippets.
Spec dense_variant(DType dtype, std::int64_t head_dim);

/// Variants that people ask for, the plain one first: masks, scores, and both.
std::vector<Spec> mod_variants(DType dtype, std::int64_t head_dim);

/// Those whose tiles of the block mask are worth counting.
std::vector<Spec> mask_variants();

}  // namespace tilewright::cli
