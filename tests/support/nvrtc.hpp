#pragma once

#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "tests/support/skip.hpp"

namespace tilewright::test {

/// True where NVRTC is missing, after saying so: `if (nvrtc_is_missing()) return;`. With
/// TILEWRIGHT_TEST_NEEDS_NVRTC=1, as in CI, that is a failure.
/// @throws Error with code compiler in that case
inline bool nvrtc_is_missing() {
  try {
    cuda::Nvrtc::get();
    return false;
  } catch (const Error& error) {
    const char* needed = std::getenv("TILEWRIGHT_TEST_NEEDS_NVRTC");
    if (needed && std::string_view(needed) == "1") throw;
    say_skipped(error.message() + ": " + error.hint());
    return true;
  }
}

}  // namespace tilewright::test
