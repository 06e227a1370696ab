#pragma once

#include "tests/support/environment.hpp"

namespace tilewright::mutants {

/// Whether the GPU is the emulated one (tests/emulated_gpu): it is each process's own, has three
/// multiprocessors, and finds by itself what never ends.
inline bool is_emulated() {
  return !environment("TILEWRIGHT_EMULATED_SM").empty();
}

}  // namespace tilewright::mutants
