#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "value.hpp"

namespace tilewright::jinja {

/// Arguments of a call matched with the names of its parameters, as Python does it.
class BoundArguments {
 public:
  /// @param what the callee, for messages: "the filter indent"
  /// @throws Complaint for too many arguments, an unknown name, or one given twice
  BoundArguments(std::string_view what, const Arguments& arguments,
                 std::initializer_list<std::string_view> names);

  /// The value, or nullptr where it was not given.
  const Value* find(std::size_t parameter) const { return values_[parameter]; }

  // @throws Complaint where the argument is missing (and has no default) or of another type
  const Value& required(std::size_t parameter) const;
  std::int64_t integer(std::size_t parameter) const;
  std::int64_t integer_or(std::size_t parameter, std::int64_t otherwise) const;
  bool boolean_or(std::size_t parameter, bool otherwise) const;
  const std::string& string(std::size_t parameter) const;
  std::string string_or(std::size_t parameter, std::string_view otherwise) const;

 private:
  [[noreturn]] void fail_type(std::size_t parameter, std::string_view expected) const;

  std::string what_;
  std::vector<std::string> names_;
  std::vector<const Value*> values_;
};

}  // namespace tilewright::jinja
