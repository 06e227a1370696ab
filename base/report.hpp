#pragma once

#include <string_view>

#include "diagnostics.hpp"

namespace tilewright {

/// Calls a sink, if there is one. To be called without locks, and when the work that the message is
/// about is done: the sink may call the library. What it throws is dropped.
inline void report(const DiagnosticsSink& sink, Severity severity,
                   std::string_view message) noexcept {
  if (!sink) return;
  try {
    sink(severity, message);
  } catch (...) {
    // A message is no reason for the work that it is about to fail.
  }
}

}  // namespace tilewright
