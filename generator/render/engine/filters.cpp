#include "generator/render/engine/filters.hpp"

#include <fmt/format.h>

#include "generator/render/engine/operators.hpp"

namespace tilewright::jinja {
namespace {

constexpr Filter kFilters[] = {
    {"default", nullptr},
    {"d", nullptr},
    {"upper", filters::upper},
    {"lower", filters::lower},
    {"trim", filters::trim},
    {"replace", filters::replace},
    {"indent", filters::indent},
    {"quote", filters::quote},
    {"string", filters::string},
    {"int", filters::to_int},
    {"float", filters::to_float},
    {"cpp_float", filters::cpp_float},
    {"round", filters::round},
    {"abs", filters::absolute},
    {"hex", filters::hex},
    {"pow2", filters::pow2},
    {"ceil_div", filters::ceil_div},
    {"length", filters::length},
    {"count", filters::length},
    {"join", filters::join},
    {"first", filters::first},
    {"last", filters::last},
    {"list", filters::list},
    {"items", filters::items},
    {"sort", filters::sort},
    {"sum", filters::sum},
    {"min", filters::least},
    {"max", filters::greatest},
};

}  // namespace

const Filter* find_filter(std::string_view name) {
  for (const Filter& filter : kFilters) {
    if (filter.name == name) return &filter;
  }
  return nullptr;
}

std::vector<std::string> filter_names() {
  std::vector<std::string> names;
  for (const Filter& filter : kFilters) names.emplace_back(filter.name);
  return names;
}

namespace filters {

const std::string& text_of(std::string_view filter, const Value& input) {
  if (const auto* text = input.as_string()) return *text;
  throw Complaint{fmt::format("the filter {} needs a string and got {}", filter, a_type(input)),
                  input.as_splice() ? "a splice keeps its own text; print it by itself" : ""};
}

List items_of(std::string_view filter, const Value& input, Budget& budget) {
  List items;
  if (const auto* list = input.as_list()) {
    items = *list;
  } else if (const auto* map = input.as_map()) {
    for (const auto& [key, value] : *map) items.emplace_back(key);
  } else {
    throw Complaint{fmt::format("the filter {} needs a list and got {}", filter, a_type(input))};
  }
  budget.charge(static_cast<std::int64_t>(items.size()) * 4);
  return items;
}

}  // namespace filters
}  // namespace tilewright::jinja
