#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "attention_values.hpp"
#include "reference.hpp"

namespace tilewright::verify {

inline constexpr double kThroughKept = 1, kThroughDropped = 2;

/// The elements of out that NaN and infinity of v reach in a kernel, which multiplies whole tiles,
/// as a weight of 0 times infinity is NaN: kThroughDropped where the row drops such an element of
/// v, else kThroughKept where it keeps one. The others are 0. Returns nothing where v is finite.
/// @param block sides of the mask's tiles; a kernel's own may be greater, and begin elsewhere
std::optional<Values> value_spread(const DenseProblem& problem, const RowSnippets<float>& snippets,
                                   const std::array<std::int64_t, 2>& block);

}  // namespace tilewright::verify
