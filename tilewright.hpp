#pragma once

/// Everything that a program needs: `#include <tilewright.hpp>`.

#if __cplusplus < 201709L
#error tilewright needs C++20: compile with -std=c++20, or in CMake target_compile_features(my_target PRIVATE cxx_std_20)
#else

#include "base/diagnostics.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "generator/spec/manifest.hpp"
#include "generator/spec/mask_combination.hpp"
#include "generator/spec/spec.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/api/context_parallel.hpp"
#include "runtime/api/explain.hpp"
#include "runtime/api/mask_file.hpp"
#include "runtime/api/mask_lists.hpp"
#include "runtime/api/mask_slice.hpp"
#include "runtime/api/nccl.hpp"
#include "runtime/api/precompile.hpp"
#include "runtime/api/safetensors.hpp"

#endif
