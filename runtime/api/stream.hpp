#pragma once

namespace tilewright {

/// A CUstream or cudaStream_t, in whose order a call on a GPU runs; null is the default stream. A
/// CPU ignores it. Not owned.
using Stream = void*;

}  // namespace tilewright
