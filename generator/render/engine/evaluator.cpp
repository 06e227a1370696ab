#include "generator/render/engine/evaluator.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/nearest_name.hpp"
#include "generator/render/engine/filters.hpp"
#include "generator/render/engine/operators.hpp"

namespace tilewright::jinja {
namespace {

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

}  // namespace

Value Evaluator::evaluate(const Expression& expression) {
  try {
    budget_.charge();
    return std::visit([&](const auto& node) { return compute(node); }, expression.node);
  } catch (Complaint& complaint) {
    throw PlacedComplaint{expression.offset, std::move(complaint)};
  }
}

// Copying a string costs time, so that it counts.
Value Evaluator::copy(const Value& value) {
  if (const auto* text = value.as_string()) budget_.charge_bytes(text->size());
  return value;
}

Value Evaluator::compute(const Literal& literal) {
  return copy(literal.value);
}

Value Evaluator::compute(const Name& name) {
  if (const Value* value = scopes_.find(name.name)) return copy(*value);
  const auto found = context_.find(std::string(name.name));
  if (found != context_.end()) {
    variables_read_.insert(found->first);
    return copy(found->second);
  }
  throw Complaint{fmt::format("\"{}\" is undefined", name.name),
                  name.name == "range" ? "range is called: range(8)"
                                       : hint_among(name.name, names_in_sight(), "variables")};
}

Value Evaluator::compute(const ListLiteral& list) {
  List items = evaluate_all(list.items);
  for (const Value& item : items) {
    // Values that nest without bound would overflow the stack where they are destroyed.
    if (item.as_list()) throw Complaint{"a list cannot hold a list"};
  }
  return items;
}

Value Evaluator::compute(const Attribute& attribute) {
  const Value object = evaluate(*attribute.object);
  const Map* const map = object.as_map();
  if (!map) {
    throw Complaint{fmt::format("{} has no attribute \"{}\"", object.a_type(), attribute.name)};
  }
  const auto found = map->find(std::string(attribute.name));
  if (found != map->end()) return copy(found->second);
  throw Complaint{fmt::format("the map has no \"{}\"", attribute.name),
                  hint_among(attribute.name, keys_of(*map), "its keys")};
}

Value Evaluator::compute(const Index& index) {
  const Value object = evaluate(*index.object);
  const Value position = evaluate(*index.index);
  const List* const list = object.as_list();
  if (!list || !position.as_int()) {
    throw Complaint{fmt::format("{} cannot be indexed by {}", object.a_type(), position.a_type()),
                    "a list takes an int, from 0"};
  }
  const std::int64_t i = *position.as_int();
  if (i < 0 || i >= static_cast<std::int64_t>(list->size())) {
    throw Complaint{fmt::format("index {} is outside a list of {}", i, list->size())};
  }
  return copy((*list)[static_cast<std::size_t>(i)]);
}

List Evaluator::evaluate_all(const std::vector<ExpressionPtr>& expressions) {
  List values;
  values.reserve(expressions.size());
  for (const ExpressionPtr& expression : expressions) values.push_back(evaluate(*expression));
  return values;
}

Value Evaluator::compute(const Range& range) {
  return jinja::range(evaluate_all(range.bounds), budget_);
}

Value Evaluator::compute(const FilterCall& filter) {
  const Value input = evaluate(*filter.input);
  if (!filter.argument) return filter.filter->apply(input, nullptr, budget_);
  const Value argument = evaluate(*filter.argument);
  return filter.filter->apply(input, &argument, budget_);
}

Value Evaluator::compute(const IsNone& test) {
  return evaluate(*test.input).is_none() != test.negated;
}

Value Evaluator::compute(const Not& negation) {
  return !evaluate(*negation.operand).is_true();
}

// `and` and `or` give one of their operands, as in Jinja, and compute the second only if it counts.
Value Evaluator::compute(const Binary& binary) {
  Value left = evaluate(*binary.left);
  if (binary.op == "and" || binary.op == "or") {
    return left.is_true() == (binary.op == "and") ? evaluate(*binary.right) : left;
  }
  return apply_operator(binary.op, left, evaluate(*binary.right), budget_);
}

Value Evaluator::compute(const InlineIf& inline_if) {
  return evaluate(evaluate(*inline_if.condition).is_true() ? *inline_if.then
                                                           : *inline_if.otherwise);
}

std::vector<std::string> Evaluator::names_in_sight() const {
  std::vector<std::string> names = keys_of(context_);
  for (const Scopes::Variables& scope : scopes_.all()) {
    for (const auto& [name, value] : scope) names.emplace_back(name);
  }
  return names;
}

}  // namespace tilewright::jinja
