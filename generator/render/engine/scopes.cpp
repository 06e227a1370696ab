#include "generator/render/engine/scopes.hpp"

#include <array>
#include <utility>

namespace tilewright::jinja {
namespace {

constexpr std::array<std::string_view, 9> kLoopAttributes = {
    "index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem", "nextitem"};

}  // namespace

std::optional<Value> LoopState::attribute(std::string_view name) const {
  const auto i = static_cast<std::int64_t>(index);
  const auto n = static_cast<std::int64_t>(items->size());
  if (name == "index") return i + 1;
  if (name == "index0") return i;
  if (name == "revindex") return n - i;
  if (name == "revindex0") return n - i - 1;
  if (name == "first") return i == 0;
  if (name == "last") return i + 1 == n;
  if (name == "length") return n;
  if (name == "previtem" && i > 0) return (*items)[index - 1];
  if (name == "nextitem" && i + 1 < n) return (*items)[index + 1];
  return std::nullopt;
}

Value LoopState::as_map() const {
  Map map;
  for (const std::string_view name : kLoopAttributes) {
    if (auto value = attribute(name)) map.emplace(name, std::move(*value));
  }
  return map;
}

void Scopes::pop() {
  variables_.resize(starts_.back());
  starts_.pop_back();
}

void Scopes::set(std::string_view name, Value value) {
  for (std::size_t i = starts_.back(); i < variables_.size(); ++i) {
    if (variables_[i].name != name) continue;
    variables_[i].value = std::move(value);
    return;
  }
  variables_.push_back({name, std::move(value)});
}

const Value* Scopes::find(std::string_view name) const {
  for (std::size_t i = variables_.size(); i > 0; --i) {
    if (variables_[i - 1].name == name) return &variables_[i - 1].value;
  }
  return nullptr;
}

void Scopes::append_names(std::vector<std::string>& names) const {
  for (const Variable& variable : variables_) names.emplace_back(variable.name);
}

}  // namespace tilewright::jinja
