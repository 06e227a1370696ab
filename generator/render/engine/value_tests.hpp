#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "complaint.hpp"
#include "value.hpp"

namespace tilewright::jinja {

/// What may stand after `is`. `defined` and `undefined` have no function: they ask the interpreter.
struct ValueTest {
  std::string_view name;
  bool takes_argument;
  /// @param argument null where the test takes none
  /// @throws Complaint where the types do not fit
  bool (*apply)(const Value& value, const Value* argument, Budget& budget);
};

/// The test, or nullptr.
const ValueTest* find_value_test(std::string_view name);
std::vector<std::string> value_test_names();

}  // namespace tilewright::jinja
