#pragma once

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "value.hpp"

namespace tilewright::jinja {

/// Variables that the template itself sets, in nested scopes: a scope's variables end with it.
class Scopes {
 public:
  // Names point into a template, which outlives the rendering.
  using Variables = std::map<std::string_view, Value>;

  void push() { scopes_.emplace_back(); }
  void pop() { scopes_.pop_back(); }
  /// Sets a variable in the innermost scope.
  void set(std::string_view name, Value value) {
    scopes_.back().insert_or_assign(name, std::move(value));
  }
  /// The innermost variable of that name, or nullptr.
  const Value* find(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end()) return &found->second;
    }
    return nullptr;
  }
  const std::vector<Variables>& all() const { return scopes_; }

 private:
  std::vector<Variables> scopes_ = {{}};
};

}  // namespace tilewright::jinja
