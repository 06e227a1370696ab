#include "generator/render/engine/value.hpp"

#include <algorithm>
#include <array>

namespace tilewright::jinja {
namespace {

int depth_of(const List& list) {
  int deepest = 0;
  for (const Value& item : list) deepest = std::max(deepest, item.depth());
  return deepest + 1;
}

int depth_of(const Map& map) {
  int deepest = 0;
  for (const auto& [key, item] : map) deepest = std::max(deepest, item.depth());
  return deepest + 1;
}

}  // namespace

Value::Value(List value) {
  const int depth = depth_of(value);
  data_ = std::make_shared<const Nested<List>>(Nested<List>{std::move(value), depth});
}

Value::Value(Map value) {
  const int depth = depth_of(value);
  data_ = std::make_shared<const Nested<Map>>(Nested<Map>{std::move(value), depth});
}

int Value::depth() const {
  if (const auto* list = pointer<Nested<List>>()) return list->depth;
  if (const auto* map = pointer<Nested<Map>>()) return map->depth;
  return 0;
}

std::string_view Value::type_name() const {
  static constexpr std::array<std::string_view, 9> kNames = {
      "none", "bool", "int", "float", "string", "list", "map", "function", "splice"};
  return kNames[data_.index()];
}

}  // namespace tilewright::jinja
