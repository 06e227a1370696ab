#pragma once

#include <string_view>

namespace tilewright {

/// SHA-256, in hexadecimal, of all that decides what is rendered: the sources of generator/ and the
/// files of templates/, as they were when the library was built. Equal digests mean that an equal
/// spec renders equal kernels.
std::string_view generator_digest();

}  // namespace tilewright
