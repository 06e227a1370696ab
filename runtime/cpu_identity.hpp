#pragma once

#include <string>

namespace tilewright {

/// What `-march=native` depends on: vendor, model, features that both the processor and the system
/// support, cache sizes. Equal texts mean equal code. Read once per process, in microseconds.
const std::string& cpu_identity();

}  // namespace tilewright
