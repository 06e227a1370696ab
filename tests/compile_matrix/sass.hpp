#pragma once

#include <cstddef>
#include <vector>

namespace tilewright::compile_matrix {

/// Number of SASS instructions in a cubin, over all its kernels and device functions, without the
/// NOPs that pad each function to its alignment.
/// @param cubin an ELF64 file for sm_70 or newer, whose instructions have 16 bytes each
/// @throws Error with code file if it is not ELF64 or a section leaves the file
std::size_t count_instructions(const std::vector<std::byte>& cubin);

/// What a cubin for sm_90a has of matrix products by warpgroups, which run while others are issued.
struct WarpgroupProducts {
  std::size_t products = 0;
  std::size_t waits = 0;  ///< for all before, or for all but the last few

  /// Whether ptxas waits for each product before the next. It says so in its log for some causes; a
  /// branch between two products that are under way is none of them.
  bool are_serialised() const { return products > 0 && waits >= products; }
};

/// @throws Error as count_instructions
WarpgroupProducts count_products(const std::vector<std::byte>& cubin);

}  // namespace tilewright::compile_matrix
