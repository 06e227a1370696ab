#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../../generator/spec/dtype.hpp"

namespace tilewright {

// The header of a safetensors file: JSON that says for each tensor which bytes of the data after
// it are its elements. The format: u64 header bytes (little-endian) | header | data.

/// The greatest header that is read, as in the reference implementation.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  std::string dtype_name;  ///< as the file has it: "F32"
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  ///< of its bytes, in the data
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< by begin; together they cover the data exactly
  std::map<std::string, std::string> metadata;
};

/// Takes time linear in the text's length, but for a sort of the tensors by place. Accepts what the
/// format's reader (safetensors 0.8) accepts, except what the format's text forbids and that reader
/// lets pass: white space before the header, a tensor or a metadata key that comes twice, a tensor
/// given as a list.
/// @param data_bytes length of the data after the header
/// @throws Error with code file where the header is no JSON of the right form, or where sizes,
///         offsets and shapes contradict each other
SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                           const std::filesystem::path& path);

/// The header's JSON, padded with blanks so that the data after it is aligned to 8 bytes.
/// @throws Error with code usage for a name or text that is no UTF-8, and for a reserved name
std::string format_safetensors_header(const SafetensorsHeader& header);

/// "F32" for f32, ...
std::string_view safetensors_name(DType dtype);
/// The opposite; empty for dtypes that tilewright does not have.
std::optional<DType> dtype_from_safetensors(std::string_view name);

}  // namespace tilewright
