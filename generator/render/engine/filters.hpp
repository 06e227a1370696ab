#pragma once

#include <string_view>

#include "complaint.hpp"
#include "value.hpp"

namespace tilewright::jinja {

/// What may stand after `|`.
struct Filter {
  std::string_view name;
  bool takes_argument;
  /// @param argument null if the filter takes none
  /// @throws Complaint if types or limits do not fit
  Value (*apply)(const Value& input, const Value* argument, Budget& budget);
};

/// The filter, or nullptr.
const Filter* find_filter(std::string_view name);

/// The numbers of range(end), range(begin, end) or range(begin, end, step).
/// @param bounds one to three values
/// @throws Complaint if one is not an int, or for more than kMaxItems numbers
Value range(const List& bounds, Budget& budget);

}  // namespace tilewright::jinja
