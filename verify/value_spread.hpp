#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "attention_values.hpp"
#include "reference.hpp"

namespace tilewright::verify {

/// Which elements of out NaN and infinity of v may reach: those of a tile that keeps something,
/// through what it drops too. They are 1 there, else 0. Nothing where v is finite.
/// @param block sides of the mask's tiles; a kernel's own may be greater, and begin elsewhere
std::optional<Values> value_spread(const DenseProblem& problem, const RowSnippets<float>& snippets,
                                   const std::array<std::int64_t, 2>& block);

}  // namespace tilewright::verify
