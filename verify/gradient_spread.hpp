#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "gradient_sweep.hpp"

namespace tilewright::verify {

/// Which elements of a call's gradients NaN and infinity of its inputs may reach: through what is
/// kept, and through what is dropped of a tile that keeps something (docs/gradients.md). They are 1
/// there, else 0; the cells of buffers and scalars are all alike. Nothing where q, k, v, dout and
/// dlse are finite.
/// @param block sides of the mask's tiles; a kernel's own may be greater, and begin elsewhere
std::optional<GradientValues> gradient_spread(const DenseProblem& problem,
                                              const GradientInputs& inputs,
                                              const RowSnippets<double>& snippets,
                                              const std::array<std::int64_t, 2>& block);

}  // namespace tilewright::verify
