#include "generator/render/engine/value.hpp"

#include <array>
#include <limits>

#include <fmt/format.h>

#include "generator/render/engine/complaint.hpp"

namespace tilewright::jinja {

std::string_view Value::a_type() const {
  static constexpr std::array<std::string_view, 7> kValueTypes = {
      "none", "a bool", "an int", "a string", "a list", "a map", "a splice"};
  return kValueTypes[data_.index()];
}

bool Value::is_true() const {
  if (const auto* truth = as_bool()) return *truth;
  if (const auto* number = as_int()) return *number != 0;
  if (const auto* text = as_string()) return !text->empty();
  if (const auto* list = as_list()) return !list->empty();
  if (const auto* map = as_map()) return !map->empty();
  return !is_none();
}

std::string Value::text() const {
  if (const auto* string = as_string()) return *string;
  if (const auto* number = as_int()) {
    // C++ has no literal for the least integer: it would be a negated, too large number.
    const bool is_least = *number == std::numeric_limits<std::int64_t>::min();
    return is_least ? "(-9223372036854775807 - 1)" : std::to_string(*number);
  }
  if (const auto* truth = as_bool()) return *truth ? "true" : "false";
  throw Complaint{fmt::format("{} cannot be printed", a_type()),
                  is_none()   ? "test it with `is none`"
                  : as_list() ? "write `|join(\", \")`"
                  : as_map()  ? "print one of its values: map.name"
                              : "a splice can only be printed by itself: {{ it }}"};
}

}  // namespace tilewright::jinja
