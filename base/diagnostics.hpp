#pragma once

#include <functional>
#include <string_view>

namespace tilewright {

enum class Severity { note, warning };

/// Receives what the library wants to say without throwing: a cache that is read-only, a slow path
/// that was taken. The library itself never prints. Called from any thread; an empty sink drops
/// all.
using DiagnosticsSink = std::function<void(Severity, std::string_view message)>;

}  // namespace tilewright
