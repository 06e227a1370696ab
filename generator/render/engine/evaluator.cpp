#include "generator/render/engine/evaluator.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "generator/render/engine/bound_arguments.hpp"
#include "generator/render/engine/filters.hpp"
#include "generator/render/engine/literals.hpp"
#include "generator/render/engine/operators.hpp"
#include "generator/render/engine/value_tests.hpp"

namespace tilewright::jinja {
namespace {

template <typename T>
constexpr bool kMayBeUndefined = std::is_same_v<T, Name> || std::is_same_v<T, Attribute> ||
                                 std::is_same_v<T, Index> || std::is_same_v<T, InlineIf>;

// Values nested deeper would overflow the stack where they are compared or destroyed.
Value checked(Value value) {
  if (value.depth() > kMaxValueDepth) {
    throw Complaint{fmt::format("lists and maps nest deeper than {} levels", kMaxValueDepth)};
  }
  return value;
}

std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

// The nearest name, or all of them where they are few.
std::string hint_among(std::string_view name, const std::vector<std::string>& names,
                       std::string_view what) {
  constexpr std::size_t kFew = 12;
  std::string hint = did_you_mean(name, names);
  if (hint.empty() && !names.empty() && names.size() <= kFew) {
    hint = fmt::format("{} are {}", what, fmt::join(names, ", "));
  }
  return hint;
}

// An index into `size` items, from the end where it is negative; nothing where it lies outside.
std::optional<std::size_t> position(std::int64_t index, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size);
  if (index < -count || index >= count) return std::nullopt;
  return static_cast<std::size_t>(index < 0 ? index + count : index);
}

}  // namespace

Value Evaluator::evaluate(const Expression& expression) {
  Complaint why;
  std::optional<Value> value = evaluate_or_undefined(expression, &why);
  if (!value) throw PlacedComplaint{expression.offset, std::move(why)};
  return std::move(*value);
}

bool Evaluator::is_true(const Expression& expression) {
  return jinja::is_true(evaluate(expression));
}

std::optional<Value> Evaluator::evaluate_or_undefined(const Expression& expression,
                                                      Complaint* why) {
  try {
    budget_.charge();
    return std::visit(
        [&](const auto& node) -> std::optional<Value> {
          if constexpr (kMayBeUndefined<std::decay_t<decltype(node)>>) {
            return lookup(node, why);
          } else {
            return compute(node);
          }
        },
        expression.node);
  } catch (Complaint& complaint) {
    throw PlacedComplaint{expression.offset, std::move(complaint)};
  }
}

// Copying a string costs time, so that it counts.
Value Evaluator::copy(const Value& value) {
  if (const auto* text = value.as_string()) budget_.charge_bytes(text->size());
  return value;
}

std::optional<Value> Evaluator::lookup(const Name& name, Complaint* why) {
  if (const Value* value = scopes_.find(name.name)) return copy(*value);
  if (name.name == "loop" && !loops_.empty()) return loops_.back().as_map();
  const auto found = context_.find(std::string(name.name));
  if (found != context_.end()) {
    variables_read_.insert(found->first);
    return copy(found->second);
  }
  if (why) {
    *why = {fmt::format("\"{}\" is undefined", name.name),
            name.name == "range" ? "range is called: range(8)"
            : name.name == "loop"
                ? "`loop` exists inside {% for %}, and not in a template included there"
                : hint_among(name.name, names_in_sight(), "variables")};
  }
  return std::nullopt;
}

const LoopState* Evaluator::loop_of(const Expression& expression) const {
  const auto* name = std::get_if<Name>(&expression.node);
  return name && name->name == "loop" && !loops_.empty() ? &loops_.back() : nullptr;
}

std::optional<Value> Evaluator::lookup(const Attribute& attribute, Complaint* why) {
  if (const LoopState* loop = loop_of(*attribute.object)) {
    if (auto value = loop->attribute(attribute.name)) return value;
  }
  const Value object = evaluate(*attribute.object);
  const Map* const map = object.as_map();
  if (!map) {
    throw Complaint{fmt::format("{} has no attribute \"{}\"", a_type(object), attribute.name)};
  }
  const auto found = map->find(std::string(attribute.name));
  if (found != map->end()) return copy(found->second);
  if (why) {
    *why = {fmt::format("the map has no \"{}\"", attribute.name),
            hint_among(attribute.name, keys_of(*map), "its keys")};
  }
  return std::nullopt;
}

std::optional<Value> Evaluator::lookup(const Index& index, Complaint* why) {
  const Value object = evaluate(*index.object);
  const Value key = evaluate(*index.index);
  if (const List* list = object.as_list(); list && key.as_int()) {
    if (const auto i = position(*key.as_int(), list->size())) return copy((*list)[*i]);
    if (why) {
      *why = {fmt::format("index {} is outside a list of {}", *key.as_int(), list->size())};
    }
    return std::nullopt;
  }
  if (const Map* map = object.as_map(); map && key.as_string()) {
    const auto found = map->find(*key.as_string());
    if (found != map->end()) return copy(found->second);
    if (why) {
      *why = {fmt::format("the map has no {}", quoted(*key.as_string())),
              hint_among(*key.as_string(), keys_of(*map), "its keys")};
    }
    return std::nullopt;
  }
  throw Complaint{fmt::format("{} cannot be indexed by {}", a_type(object), a_type(key)),
                  "a list takes an int, a map a string"};
}

std::optional<Value> Evaluator::lookup(const InlineIf& inline_if, Complaint* why) {
  if (is_true(*inline_if.condition)) return evaluate_or_undefined(*inline_if.then, why);
  if (inline_if.otherwise) return evaluate_or_undefined(*inline_if.otherwise, why);
  if (why) {
    *why = {"the condition of this inline `if` is false and it has no `else`",
            "add an `else`, for example: else \"\""};
  }
  return std::nullopt;
}

Value Evaluator::compute(const Literal& literal) {
  return copy(literal.value);
}

Value Evaluator::compute(const ListLiteral& list) {
  List items;
  items.reserve(list.items.size());
  for (const ExpressionPtr& item : list.items) items.push_back(evaluate(*item));
  return checked(std::move(items));
}

Value Evaluator::compute(const MapLiteral& map) {
  Map items;
  for (const auto& [key, value] : map.items) {
    const Value name = evaluate(*key);
    if (!name.as_string()) {
      throw PlacedComplaint{key->offset,
                            {fmt::format("a map's key is a string and not {}", a_type(name)),
                             "for C++ braces put a space between them: { {"}};
    }
    items.insert_or_assign(*name.as_string(), evaluate(*value));
  }
  return checked(std::move(items));
}

Value Evaluator::compute(const Slice& slice) {
  const Value object = evaluate(*slice.object);
  const List* const list = object.as_list();
  if (!list) throw Complaint{fmt::format("{} cannot be sliced", a_type(object)), "a list can"};
  const auto count = static_cast<std::int64_t>(list->size());
  const auto bound = [&](const ExpressionPtr& expression, std::int64_t otherwise) {
    if (!expression) return otherwise;
    const Value value = evaluate(*expression);
    if (!value.as_int())
      throw Complaint{fmt::format("a slice takes ints and not {}", a_type(value))};
    const std::int64_t index = *value.as_int();
    return std::clamp(index < 0 ? std::max(index, -count) + count : index, std::int64_t{0}, count);
  };
  const std::int64_t begin = bound(slice.begin, 0);
  const std::int64_t end = std::max(begin, bound(slice.end, count));
  budget_.charge(end - begin);
  return List(list->begin() + begin, list->begin() + end);
}

Arguments Evaluator::evaluate(const CallArguments& arguments) {
  Arguments result;
  for (const ExpressionPtr& value : arguments.positional) {
    result.positional.push_back(evaluate(*value));
  }
  for (const auto& [name, value] : arguments.named) {
    result.named.emplace(std::string(name), evaluate(*value));
  }
  return result;
}

Value Evaluator::compute(const Call& call) {
  const auto* name = std::get_if<Name>(&call.callee->node);
  if (name && name->name == "range" && !scopes_.find("range") && !context_.count("range")) {
    return range(evaluate(call.arguments), budget_);
  }
  // object.method(): what the object holds under that name comes first.
  if (const auto* attribute = std::get_if<Attribute>(&call.callee->node)) {
    const Value object = evaluate(*attribute->object);
    const Map* const map = object.as_map();
    const auto found = map ? map->find(std::string(attribute->name)) : Map::const_iterator();
    if (!map || found == map->end()) {
      return checked(call_method(object, attribute->name, evaluate(call.arguments), budget_));
    }
    if (const Function* function = found->second.as_function()) {
      return call_function(*function, evaluate(call.arguments));
    }
  }
  const Value callee = evaluate(*call.callee);
  const Function* const function = callee.as_function();
  if (!function) throw Complaint{fmt::format("{} cannot be called", a_type(callee))};
  return call_function(*function, evaluate(call.arguments));
}

Value Evaluator::call_function(const Function& function, const Arguments& arguments) {
  try {
    return checked(function(arguments));
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& exception) {
    throw Complaint{exception.what()};
  }
}

Value Evaluator::compute(const FilterCall& filter) {
  if (!filter.filter->apply) return compute_default(filter);
  const Value input = evaluate(*filter.input);
  return checked(filter.filter->apply(input, evaluate(filter.arguments), budget_));
}

Value Evaluator::compute_default(const FilterCall& filter) {
  const std::optional<Value> input = evaluate_or_undefined(*filter.input, nullptr);
  const Arguments arguments = evaluate(filter.arguments);
  const BoundArguments bound("the filter default", arguments, {"default_value", "boolean"});
  const bool replaces_false = bound.boolean_or(1, false);
  if (input && (!replaces_false || jinja::is_true(*input))) return *input;
  return bound.find(0) ? *bound.find(0) : Value("");
}

Value Evaluator::compute(const TestCall& test) {
  const bool asks_defined = !test.test->apply;
  if (asks_defined) {
    const bool defined = evaluate_or_undefined(*test.input, nullptr).has_value();
    return (test.test->name == "defined") == (defined != test.negated);
  }
  const Value input = evaluate(*test.input);
  if (!test.argument) return test.test->apply(input, nullptr, budget_) != test.negated;
  const Value argument = evaluate(*test.argument);
  return test.test->apply(input, &argument, budget_) != test.negated;
}

Value Evaluator::compute(const Unary& unary) {
  return apply_unary(unary.op, evaluate(*unary.operand));
}

Value Evaluator::compute(const Binary& binary) {
  const Value left = evaluate(*binary.left);
  return apply_binary(binary.op, left, evaluate(*binary.right), budget_);
}

Value Evaluator::compute(const Logical& logical) {
  Value left = evaluate(*logical.left);
  return jinja::is_true(left) == logical.is_and ? evaluate(*logical.right) : left;
}

Value Evaluator::compute(const Compare& compare) {
  Value left = evaluate(*compare.first);
  for (const Compare::Link& link : compare.links) {
    Value right = evaluate(*link.right);
    try {
      if (!apply_comparison(link.op, left, right, budget_)) return false;
    } catch (Complaint& complaint) {
      throw PlacedComplaint{link.offset, std::move(complaint)};
    }
    left = std::move(right);
  }
  return true;
}

Value Evaluator::compute(const Concatenation& concatenation) {
  std::string text;
  for (const ExpressionPtr& part : concatenation.parts) {
    const Value value = evaluate(*part);
    try {
      text += to_text(value);
    } catch (Complaint& complaint) {
      throw PlacedComplaint{part->offset, std::move(complaint)};
    }
    if (text.size() > kMaxStringBytes) throw Complaint{"a string is longer than 16 MiB"};
  }
  budget_.charge_bytes(text.size());
  return text;
}

std::vector<std::string> Evaluator::names_in_sight() const {
  std::vector<std::string> names = keys_of(context_);
  scopes_.append_names(names);
  return names;
}

}  // namespace tilewright::jinja
