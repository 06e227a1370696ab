#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "value.hpp"

namespace tilewright::jinja {

/// What `loop` holds in one round of a for. Points at the loop's items, which outlive it.
struct LoopState {
  const List* items = nullptr;
  std::size_t index = 0;

  /// One attribute, or nothing where there is none: loop.previtem in the first round.
  std::optional<Value> attribute(std::string_view name) const;
  /// Every attribute.
  Value as_map() const;
};

/// Variables that the template itself sets, in nested scopes: a scope's variables end with it.
class Scopes {
 public:
  void push() { starts_.push_back(variables_.size()); }
  void pop();
  /// Sets a variable in the innermost scope.
  void set(std::string_view name, Value value);
  /// The innermost variable of that name, or nullptr.
  const Value* find(std::string_view name) const;
  void append_names(std::vector<std::string>& names) const;

 private:
  struct Variable {
    std::string_view name;  // points into a template, which outlives the rendering
    Value value;
  };
  std::vector<Variable> variables_;
  std::vector<std::size_t> starts_ = {0};
};

}  // namespace tilewright::jinja
