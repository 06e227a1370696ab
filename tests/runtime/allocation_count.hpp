#pragma once

#include <cstdint>

/// How often this process has called operator new so far, on any thread. For tests of functions
/// that must not allocate.
std::int64_t allocation_count();
