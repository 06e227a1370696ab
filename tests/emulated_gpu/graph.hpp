#pragma once

#include <functional>

// Graphs of the emulated GPU: what a thread enqueues while it captures, to be done again. Copies
// are made at once, as no call of the library's that may be captured makes one.

namespace emulated {

/// Whether the calling thread captures.
bool is_capturing();

/// Adds work to the graph that the calling thread captures. @param work returns a CUresult
void capture(std::function<int()> work);

}  // namespace emulated
