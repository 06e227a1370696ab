#pragma once

/// Everything that a program needs: `#include <tilewright.hpp>`.

#include "base/diagnostics.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "generator/spec.hpp"
#include "generator/spec_json.hpp"
#include "runtime/attention.hpp"
#include "runtime/safetensors.hpp"
