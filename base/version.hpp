#pragma once

/// The version of these headers, for `#if`. The build reads its own version from here.
#define TILEWRIGHT_VERSION_MAJOR 0
#define TILEWRIGHT_VERSION_MINOR 2
#define TILEWRIGHT_VERSION_PATCH 0

/// major * 10000 + minor * 100 + patch, so that versions compare as numbers.
#define TILEWRIGHT_VERSION \
  (TILEWRIGHT_VERSION_MAJOR * 10000 + TILEWRIGHT_VERSION_MINOR * 100 + TILEWRIGHT_VERSION_PATCH)

namespace tilewright {

/// The version of the library that is linked, "major.minor.patch".
const char* version();

}  // namespace tilewright
