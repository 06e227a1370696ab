#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensor.hpp"

namespace tilewright {

/// The contents of a safetensors file.
struct TensorFile {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;  ///< the file's `__metadata__`
  std::vector<std::string>
      skipped;  ///< tensors that are in the file but were not asked for, sorted
};

/// Reads a safetensors file. dtypes F32, F16, BF16, I32, I64, U8 and BOOL; rank 0 to 5. The whole
/// header is checked, so a truncated or lying file is refused whatever is asked for.
/// @param names read these alone; a name that the file lacks is no error here, and tensors of other
///        names may have any dtype and rank
/// @throws Error with code file, naming the tensor and its place in the file; with code memory
TensorFile read_safetensors(const std::string& path,
                            std::optional<std::span<const std::string>> names = std::nullopt);

/// Writes a safetensors file: to a temporary one first, which is synced and renamed, so that no
/// reader sees a part of it. Views may have any strides. Equal contents give equal bytes: large
/// elements come first, so that each tensor is aligned to its elements, then the names' order
/// counts.
/// @throws Error with code disk; with code usage for a name that is empty, "__metadata__" or no
/// UTF-8
void write_safetensors(const std::string& path, const std::map<std::string, TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace tilewright
