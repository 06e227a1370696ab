#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "attention_values.hpp"
#include "reference.hpp"

namespace tilewright::verify {

/// Marks with 1 the elements of out that a kernel may make NaN or infinite because v is so: it
/// multiplies whole tiles, and a weight of 0 times NaN is NaN. The others are 0. Returns nothing
/// where v is finite.
/// @param block sides of the mask's tiles; a kernel's own may be greater, and begin elsewhere
std::optional<Values> value_spread(const DenseProblem& problem, const RowSnippets<float>& snippets,
                                   const std::array<std::int64_t, 2>& block);

}  // namespace tilewright::verify
