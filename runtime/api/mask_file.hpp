#pragma once

#include <string>

#include "block_mask.hpp"

namespace tilewright {

/// Writes a block mask as a safetensors file: row_offsets and full_row_offsets (I64), indices and
/// full_indices (I32), and what it was built from in the metadata. Whole or not at all.
/// @throws Error with code disk
void write_block_mask(const std::string& path, const BlockMask& mask);

/// Reads what write_block_mask wrote. Everything is checked: the result is a mask that this version
/// could have built. A call that it does not fit refuses it as any other.
/// @throws Error with code file, saying what is wrong where
BlockMask read_block_mask(const std::string& path);

}  // namespace tilewright
