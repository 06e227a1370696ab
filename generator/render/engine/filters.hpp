#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "complaint.hpp"
#include "value.hpp"

namespace tilewright::jinja {

/// What may stand after `|`. `default` has no function: it asks the interpreter what is undefined.
struct Filter {
  std::string_view name;
  /// @throws Complaint where types, arguments or limits do not fit
  Value (*apply)(const Value& input, const Arguments& arguments, Budget& budget);
};

/// The filter, or nullptr.
const Filter* find_filter(std::string_view name);
std::vector<std::string> filter_names();

/// `value.name(...)`: items, keys, values and get of a map, startswith and endswith of a string.
/// @throws Complaint where the value has no such method
Value call_method(const Value& object, std::string_view name, const Arguments& arguments,
                  Budget& budget);

/// range(end), range(begin, end), range(begin, end, step)
/// @throws Complaint for more than kMaxItems numbers
Value range(const Arguments& arguments, Budget& budget);

// The filters by theme: text_filters.cpp, number_filters.cpp, list_filters.cpp.
using FilterFunction = decltype(Filter::apply);
namespace filters {

Value upper(const Value&, const Arguments&, Budget&);
Value lower(const Value&, const Arguments&, Budget&);
Value trim(const Value&, const Arguments&, Budget&);
Value replace(const Value&, const Arguments&, Budget&);
Value indent(const Value&, const Arguments&, Budget&);
Value quote(const Value&, const Arguments&, Budget&);
Value string(const Value&, const Arguments&, Budget&);

Value to_int(const Value&, const Arguments&, Budget&);
Value to_float(const Value&, const Arguments&, Budget&);
Value cpp_float(const Value&, const Arguments&, Budget&);
Value round(const Value&, const Arguments&, Budget&);
Value absolute(const Value&, const Arguments&, Budget&);
Value hex(const Value&, const Arguments&, Budget&);
Value pow2(const Value&, const Arguments&, Budget&);
Value ceil_div(const Value&, const Arguments&, Budget&);

Value length(const Value&, const Arguments&, Budget&);
Value join(const Value&, const Arguments&, Budget&);
Value first(const Value&, const Arguments&, Budget&);
Value last(const Value&, const Arguments&, Budget&);
Value list(const Value&, const Arguments&, Budget&);
Value items(const Value&, const Arguments&, Budget&);
Value sort(const Value&, const Arguments&, Budget&);
Value sum(const Value&, const Arguments&, Budget&);
Value least(const Value&, const Arguments&, Budget&);
Value greatest(const Value&, const Arguments&, Budget&);

// Shared by the above.
/// @throws Complaint where the input is no string
const std::string& text_of(std::string_view filter, const Value& input);
/// The items of a list, or the keys of a map. @throws Complaint for anything else
List items_of(std::string_view filter, const Value& input, Budget& budget);

}  // namespace filters
}  // namespace tilewright::jinja
