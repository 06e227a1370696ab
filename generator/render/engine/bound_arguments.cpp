#include "generator/render/engine/bound_arguments.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/nearest_name.hpp"
#include "generator/render/engine/complaint.hpp"
#include "generator/render/engine/operators.hpp"

namespace tilewright::jinja {

BoundArguments::BoundArguments(std::string_view what, const Arguments& arguments,
                               std::initializer_list<std::string_view> names)
    : what_(what), names_(names.begin(), names.end()), values_(names.size()) {
  if (arguments.positional.size() > names_.size()) {
    throw Complaint{fmt::format("{} takes at most {} argument{} and got {}", what_, names_.size(),
                                names_.size() == 1 ? "" : "s", arguments.positional.size())};
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      std::string hint = did_you_mean(name, names_);
      if (hint.empty() && !names_.empty()) hint = "its parameters are " + one_of(names_);
      throw Complaint{fmt::format("{} has no parameter \"{}\"", what_, name), hint};
    }
    const Value*& slot = values_[static_cast<std::size_t>(found - names_.begin())];
    if (slot) throw Complaint{fmt::format("{} got \"{}\" twice", what_, name)};
    slot = &value;
  }
}

const Value& BoundArguments::required(std::size_t parameter) const {
  if (values_[parameter]) return *values_[parameter];
  throw Complaint{fmt::format("{} needs \"{}\"", what_, names_[parameter])};
}

std::int64_t BoundArguments::integer(std::size_t parameter) const {
  if (const auto* number = required(parameter).as_int()) return *number;
  fail_type(parameter, "an int");
}

std::int64_t BoundArguments::integer_or(std::size_t parameter, std::int64_t otherwise) const {
  return values_[parameter] ? integer(parameter) : otherwise;
}

bool BoundArguments::boolean_or(std::size_t parameter, bool otherwise) const {
  if (!values_[parameter]) return otherwise;
  if (const auto* truth = values_[parameter]->as_bool()) return *truth;
  fail_type(parameter, "a bool");
}

const std::string& BoundArguments::string(std::size_t parameter) const {
  if (const auto* text = required(parameter).as_string()) return *text;
  fail_type(parameter, "a string");
}

std::string BoundArguments::string_or(std::size_t parameter, std::string_view otherwise) const {
  return values_[parameter] ? string(parameter) : std::string(otherwise);
}

void BoundArguments::fail_type(std::size_t parameter, std::string_view expected) const {
  throw Complaint{fmt::format("{} needs {} as \"{}\" and got {}", what_, expected,
                              names_[parameter], a_type(*values_[parameter]))};
}

}  // namespace tilewright::jinja
