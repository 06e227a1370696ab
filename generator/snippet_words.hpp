#pragma once

#include <algorithm>
#include <string_view>

#include "snippet.hpp"

namespace tilewright {

/// Whether a list of names or words holds this one.
bool is_one_of(std::string_view name, const auto& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

inline bool is_identifier(const SnippetToken& token) {
  return token.kind == SnippetToken::Kind::identifier;
}

}  // namespace tilewright
