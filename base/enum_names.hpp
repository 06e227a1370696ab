#pragma once

#include <optional>
#include <string_view>
#include <type_traits>

namespace tilewright {

/// The name of a value in a table of pairs {value, name}; empty where the table has none.
template <typename Table, typename Enum>
constexpr std::string_view name_in(const Table& table, Enum value) {
  for (const auto& entry : table) {
    if (entry.first == value) return entry.second;
  }
  return {};
}

/// The value of a name in such a table, or nothing.
template <typename Table>
constexpr auto value_in(const Table& table, std::string_view name) {
  using Enum = std::remove_const_t<decltype(Table::value_type::first)>;
  for (const auto& entry : table) {
    if (entry.second == name) return std::optional<Enum>(entry.first);
  }
  return std::optional<Enum>();
}

}  // namespace tilewright
