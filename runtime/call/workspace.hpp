#pragma once

#include <cstdint>
#include <string_view>

#include "../api/tensor.hpp"

namespace tilewright {

/// Every workspace begins at a multiple of so many bytes.
inline constexpr std::int64_t kWorkspaceAlignment = 256;

/// Checks memory that a caller lends.
/// @param user what needs it: "this plan"
/// @param hint how a caller finds the size
/// @throws Error with code tensor for memory that is too small, is not one block, or begins
/// elsewhere
void require_workspace(const TensorView& workspace, std::int64_t bytes, std::string_view user,
                       std::string_view hint);

}  // namespace tilewright
