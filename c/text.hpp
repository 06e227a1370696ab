#pragma once

#include <cstddef>
#include <string_view>

namespace tilewright::capi {

/// Gives a text to a program: writes its size with the final zero to *size, and the text to a
/// buffer of *size bytes unless it is null.
/// @throws Error with code usage for a size that is null, or a buffer that is too small
void copy_text(std::string_view text, char* buffer, std::size_t* size);

}  // namespace tilewright::capi
