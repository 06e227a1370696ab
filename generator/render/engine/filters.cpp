#include "generator/render/engine/filters.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace tilewright::jinja {
namespace {

const List& list_of(std::string_view filter, const Value& input, Budget& budget) {
  const List* const list = input.as_list();
  if (!list) {
    throw Complaint{fmt::format("the filter {} needs a list and got {}", filter, input.a_type())};
  }
  budget.charge(static_cast<std::int64_t>(list->size()));
  return *list;
}

Value length(const Value& input, const Value*, Budget& budget) {
  return static_cast<std::int64_t>(list_of("length", input, budget).size());
}

Value join(const Value& input, const Value* argument, Budget& budget) {
  const std::string* const separator = argument->as_string();
  if (!separator) {
    throw Complaint{fmt::format("the filter join needs a string between the items and got {}",
                                argument->a_type())};
  }
  std::string result;
  bool is_first = true;
  for (const Value& item : list_of("join", input, budget)) {
    const std::string text = (is_first ? "" : *separator) + item.text();
    is_first = false;
    budget.charge_bytes(text.size());
    if (result.size() + text.size() > kMaxStringBytes) {
      throw Complaint{"a string is longer than 16 MiB"};
    }
    result += text;
  }
  return result;
}

std::int64_t integer_of(std::string_view what, const Value& value) {
  if (const auto* number = value.as_int()) return *number;
  throw Complaint{fmt::format("{} needs ints and got {}", what, value.a_type())};
}

template <bool kGreatest>
Value extreme(const Value& input, const Value*, Budget& budget) {
  constexpr std::string_view filter = kGreatest ? "max" : "min";
  const List& items = list_of(filter, input, budget);
  if (items.empty()) throw Complaint{fmt::format("the filter {} got an empty list", filter)};
  const std::string what = fmt::format("the filter {}", filter);
  std::int64_t best = integer_of(what, items[0]);
  for (const Value& item : items) {
    const std::int64_t number = integer_of(what, item);
    best = kGreatest ? std::max(best, number) : std::min(best, number);
  }
  return best;
}

constexpr Filter kFilters[] = {{"length", false, length},
                               {"join", true, join},
                               {"min", false, extreme<false>},
                               {"max", false, extreme<true>}};

}  // namespace

const Filter* find_filter(std::string_view name) {
  for (const Filter& filter : kFilters) {
    if (filter.name == name) return &filter;
  }
  return nullptr;
}

Value range(const List& bounds, Budget& budget) {
  const std::int64_t begin = bounds.size() > 1 ? integer_of("range", bounds[0]) : 0;
  const std::int64_t end = integer_of("range", bounds[bounds.size() > 1 ? 1 : 0]);
  const std::int64_t step = bounds.size() > 2 ? integer_of("range", bounds[2]) : 1;
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

}  // namespace tilewright::jinja
