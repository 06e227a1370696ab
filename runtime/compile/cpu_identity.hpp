#pragma once

#include <string>
#include <vector>

#include "../../generator/spec/target.hpp"

namespace tilewright {

/// What `-march=native` depends on: vendor, model, features that both the processor and the system
/// support, cache sizes. Equal texts mean equal code. Read once per process, in microseconds.
const std::string& cpu_identity();

/// The targets with a fixed instruction set that this machine runs, the highest first:
/// cpu-x86-64-v4, cpu-x86-64-v3.
const std::vector<Target>& cpu_targets();

}  // namespace tilewright
