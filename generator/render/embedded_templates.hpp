#pragma once

#include <span>
#include <string_view>

namespace tilewright {

/// One file of templates/, as it was when the library was built.
struct EmbeddedTemplate {
  /// Path below templates/, with forward slashes: "cpu/kernels/forward.cpp.jinja".
  std::string_view name;
  std::string_view text;
};

/// Every file of templates/, sorted by name.
std::span<const EmbeddedTemplate> embedded_templates();

}  // namespace tilewright
