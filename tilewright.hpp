#pragma once

/// Everything that a program needs: `#include <tilewright.hpp>`.

#if __cplusplus < 201709L
#error tilewright needs C++20: compile with -std=c++20, or in CMake target_compile_features(my_target PRIVATE cxx_std_20)
#else

#include "base/diagnostics.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "generator/manifest.hpp"
#include "generator/mask_combination.hpp"
#include "generator/spec.hpp"
#include "generator/spec_json.hpp"
#include "runtime/attention.hpp"
#include "runtime/mask_file.hpp"
#include "runtime/mask_lists.hpp"
#include "runtime/mask_slice.hpp"
#include "runtime/precompile.hpp"
#include "runtime/safetensors.hpp"

#endif
