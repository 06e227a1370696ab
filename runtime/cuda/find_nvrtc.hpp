#pragma once

#include "nvrtc.hpp"

namespace tilewright::cuda {

/// Which NVRTC serves this process, found without loading it here. What an earlier process found is
/// noted in the cache, and holds as long as the places that are searched and the library's files
/// are the same (path, size, times, inode). Else a worker looks; without a worker, Nvrtc::get().
/// Looked for again where the library's file has changed.
/// @throws Error as Nvrtc::get()
NvrtcFacts find_nvrtc();

}  // namespace tilewright::cuda
