#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "base/nearest_name.hpp"
#include "generator/render/engine/bound_arguments.hpp"
#include "generator/render/engine/filters.hpp"
#include "generator/render/engine/literals.hpp"
#include "generator/render/engine/operators.hpp"

namespace tilewright::jinja {
namespace filters {
namespace {

Value folded(const Value& value, bool case_sensitive) {
  const auto* text = value.as_string();
  if (!text || case_sensitive) return value;
  std::string lowered = *text;
  for (char& c : lowered) c = to_lower(c);
  return lowered;
}

// The extreme item; of equal ones the first, as in Jinja.
Value extreme(std::string_view filter, const Value& input, const Arguments& arguments,
              bool greatest, Budget& budget) {
  const BoundArguments bound(fmt::format("the filter {}", filter), arguments, {"case_sensitive"});
  const bool case_sensitive = bound.boolean_or(0, false);
  const List items = items_of(filter, input, budget);
  if (items.empty()) throw Complaint{fmt::format("the filter {} got an empty list", filter)};
  const Value* best = &items[0];
  for (const Value& item : items) {
    const Value a = folded(item, case_sensitive);
    const Value b = folded(*best, case_sensitive);
    if (greatest ? less(b, a) : less(a, b)) best = &item;
  }
  return *best;
}

}  // namespace

Value length(const Value& input, const Arguments& arguments, Budget& budget) {
  const BoundArguments none("the filter length", arguments, {});
  if (const auto* list = input.as_list()) return static_cast<std::int64_t>(list->size());
  if (const auto* map = input.as_map()) return static_cast<std::int64_t>(map->size());
  const std::string& text = text_of("length", input);
  budget.charge_bytes(text.size());
  // Code points: every byte of UTF-8 that does not continue a character.
  return static_cast<std::int64_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

Value join(const Value& input, const Arguments& arguments, Budget& budget) {
  const BoundArguments bound("the filter join", arguments, {"d"});
  const std::string separator = bound.string_or(0, "");
  std::string result;
  bool first = true;
  for (const Value& item : items_of("join", input, budget)) {
    const std::string text = (first ? "" : separator) + to_text(item);
    first = false;
    budget.charge_bytes(text.size());
    if (result.size() + text.size() > kMaxStringBytes) {
      throw Complaint{"a string is longer than 16 MiB"};
    }
    result += text;
  }
  return result;
}

Value first(const Value& input, const Arguments& arguments, Budget& budget) {
  const BoundArguments none("the filter first", arguments, {});
  const List items = items_of("first", input, budget);
  if (items.empty()) throw Complaint{"the filter first got an empty list"};
  return items.front();
}

Value last(const Value& input, const Arguments& arguments, Budget& budget) {
  const BoundArguments none("the filter last", arguments, {});
  const List items = items_of("last", input, budget);
  if (items.empty()) throw Complaint{"the filter last got an empty list"};
  return items.back();
}

Value list(const Value& input, const Arguments& arguments, Budget& budget) {
  const BoundArguments none("the filter list", arguments, {});
  return items_of("list", input, budget);
}

Value items(const Value& input, const Arguments& arguments, Budget& budget) {
  const BoundArguments none("the filter items", arguments, {});
  const auto* map = input.as_map();
  if (!map) throw Complaint{fmt::format("the filter items needs a map and got {}", a_type(input))};
  List pairs;
  for (const auto& [key, value] : *map) pairs.emplace_back(List{Value(key), value});
  budget.charge(static_cast<std::int64_t>(pairs.size()) * 8);
  return pairs;
}

Value sort(const Value& input, const Arguments& arguments, Budget& budget) {
  const BoundArguments bound("the filter sort", arguments, {"reverse", "case_sensitive"});
  const bool reverse = bound.boolean_or(0, false);
  const bool case_sensitive = bound.boolean_or(1, false);
  List items = items_of("sort", input, budget);
  std::vector<std::pair<Value, std::size_t>> keys;
  for (std::size_t i = 0; i < items.size(); ++i)
    keys.emplace_back(folded(items[i], case_sensitive), i);
  std::stable_sort(keys.begin(), keys.end(), [&](const auto& a, const auto& b) {
    budget.charge();
    return reverse ? less(b.first, a.first) : less(a.first, b.first);
  });
  List sorted;
  for (const auto& [key, i] : keys) sorted.push_back(std::move(items[i]));
  return sorted;
}

Value sum(const Value& input, const Arguments& arguments, Budget& budget) {
  const BoundArguments none("the filter sum", arguments, {});
  Value total = 0;
  for (const Value& item : items_of("sum", input, budget)) {
    total = apply_binary(BinaryOperator::add, total, item, budget);
  }
  return total;
}

Value least(const Value& input, const Arguments& arguments, Budget& budget) {
  return extreme("min", input, arguments, false, budget);
}

Value greatest(const Value& input, const Arguments& arguments, Budget& budget) {
  return extreme("max", input, arguments, true, budget);
}

}  // namespace filters

Value range(const Arguments& arguments, Budget& budget) {
  const BoundArguments bound("range", arguments, {"begin", "end", "step"});
  const std::int64_t begin = bound.find(1) ? bound.integer(0) : 0;
  const std::int64_t end = bound.find(1) ? bound.integer(1) : bound.integer(0);
  const std::int64_t step = bound.integer_or(2, 1);
  if (step == 0) throw Complaint{"range needs a step other than 0"};
  List numbers;
  for (std::int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (numbers.size() == kMaxItems) {
      throw Complaint{
          fmt::format("range({}, {}, {}) has more than {} numbers", begin, end, step, kMaxItems)};
    }
    numbers.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  budget.charge(static_cast<std::int64_t>(numbers.size()) * 4);
  return numbers;
}

namespace {

Value get(const Map& map, const Arguments& arguments) {
  const BoundArguments bound("get", arguments, {"key", "default"});
  const auto found = map.find(bound.string(0));
  if (found != map.end()) return found->second;
  return bound.find(1) ? *bound.find(1) : Value();
}

[[noreturn]] void fail_method(const Value& object, std::string_view name,
                              const std::vector<std::string>& methods) {
  std::string hint = did_you_mean(name, methods);
  if (hint.empty() && !methods.empty()) hint = "methods are " + one_of(methods);
  throw Complaint{fmt::format("{} has no method \"{}\"", a_type(object), name), hint};
}

}  // namespace

Value call_method(const Value& object, std::string_view name, const Arguments& arguments,
                  Budget& budget) {
  if (const auto* map = object.as_map()) {
    if (name == "items") return filters::items(object, arguments, budget);
    if (name == "keys") return filters::list(object, arguments, budget);
    if (name == "get") return get(*map, arguments);
    if (name != "values") fail_method(object, name, {"items", "keys", "values", "get"});
    const BoundArguments none("values", arguments, {});
    List values;
    for (const auto& [key, value] : *map) values.push_back(value);
    budget.charge(static_cast<std::int64_t>(values.size()));
    return values;
  }
  if (const auto* text = object.as_string()) {
    const std::vector<std::string> methods = {"startswith", "endswith", "upper", "lower"};
    if (name == "upper") return filters::upper(object, arguments, budget);
    if (name == "lower") return filters::lower(object, arguments, budget);
    if (name != "startswith" && name != "endswith") fail_method(object, name, methods);
    const BoundArguments bound(name, arguments, {"affix"});
    return name == "startswith" ? text->starts_with(bound.string(0))
                                : text->ends_with(bound.string(0));
  }
  fail_method(object, name, {});
}

}  // namespace tilewright::jinja
