#pragma once

#include <functional>
#include <string_view>

namespace tilewright {

enum class Severity { note, warning };

/// Receives what the library says without throwing or printing: a cache is read-only, a path is
/// slow. Called from any thread, without any lock held, so a sink may call the library: make an
/// Attention, run forward, ask a cache. What a sink throws is dropped. An empty sink drops all.
using DiagnosticsSink = std::function<void(Severity, std::string_view message)>;

}  // namespace tilewright
