#pragma once

#include <string>

#include "runtime/api/attention.hpp"

namespace tilewright::cli {

/// Reads a block mask for a call from a safetensors file: one of tilewright's own (`row_offsets`,
/// ...), FlexAttention's padded lists (`kv_num_blocks`, `kv_indices`, `full_kv_num_blocks`,
/// `full_kv_indices`) or CSR (`crow`, `col`).
/// @throws Error with code file, tensor or block_mask; also where the mask does not fit the call
BlockMask read_mask(const std::string& path, const Attention& attention, const Shape& shape,
                    const Bindings& bindings);

/// Reads the lists over positions of a packed call (PlanOptions::positions) in the same forms.
/// Those of FlexAttention and CSR are for as many positions as their rows of tiles have.
/// @param heads query heads of the call
/// @throws Error as read_mask
BlockMask read_positions(const std::string& path, const Attention& attention, std::int64_t heads,
                         const Bindings& bindings);

/// Writes FlexAttention's padded lists.
void write_flex_lists(const std::string& path, const BlockMask& mask);

/// A mask of full tiles alone, for a spec without mask_mod.
BlockMask mask_of_everything(const Attention& attention, const Shape& shape,
                             const Bindings& bindings);

}  // namespace tilewright::cli
