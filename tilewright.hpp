#pragma once

/// Everything that a program needs: `#include <tilewright.hpp>`.

#include "base/diagnostics.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "cache/bundles.hpp"
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
