#pragma once

#include <cstddef>
#include <vector>

namespace tilewright::compile_matrix {

/// Number of SASS instructions in a cubin, over all its kernels and device functions, without the
/// NOPs that pad each function to its alignment.
/// @param cubin an ELF64 file for sm_70 or newer, whose instructions have 16 bytes each
/// @throws Error with code file if it is not ELF64 or a section leaves the file
std::size_t count_instructions(const std::vector<std::byte>& cubin);

}  // namespace tilewright::compile_matrix
