#include "fuzz/expression_json.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace tilewright::verify::fuzz {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse_tree(const std::string& what) {
  throw Error(ErrorCode::file, "the tree of a snippet: " + what,
              "take the tree out to run the snippet's text alone");
}

const Json& element(const Json& json, std::size_t index) {
  if (!json.is_array() || index >= json.size()) refuse_tree("a list is too short: " + json.dump());
  return json[index];
}

std::string text_at(const Json& json, std::size_t index) {
  const Json& value = element(json, index);
  if (!value.is_string()) refuse_tree("a name is expected in " + json.dump());
  return value.get<std::string>();
}

std::int64_t integer_at(const Json& json, std::size_t index) {
  const Json& value = element(json, index);
  if (!value.is_number_integer()) refuse_tree("a whole number is expected in " + json.dump());
  return value.get<std::int64_t>();
}

// JSON has no infinity: "inf" and "-inf" stand for it.
Json number_to_json(double value) {
  if (!std::isinf(value)) return value;
  return value > 0 ? "inf" : "-inf";
}

double number_at(const Json& json, std::size_t index) {
  const Json& value = element(json, index);
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  if (!value.is_number()) refuse_tree("a number is expected in " + json.dump());
  return value.get<double>();
}

const snippet::Operation& operation_at(const Json& json, std::size_t index) {
  const std::string name = text_at(json, index);
  for (const snippet::Operation& operation : snippet::operations()) {
    if (operation.name == name) return operation;
  }
  refuse_tree(fmt::format("\"{}\" is no operation", name));
}

Type type_at(const Json& json, std::size_t index) {
  const std::string name = text_at(json, index);
  for (const Type type : {Type::integer, Type::floating, Type::truth, Type::wide, Type::unknown}) {
    if (to_string(type) == name) return type;
  }
  refuse_tree(fmt::format("\"{}\" is no type, write int, float or bool", name));
}

Json to_json(const Expression& expression) {
  Json json = Json::array({to_string(expression.op)});
  switch (expression.op) {
    case Op::integer_literal:
      json.push_back(expression.integer);
      return json;
    case Op::truth_literal:
      json.push_back(expression.integer != 0);
      return json;
    case Op::floating_literal:
      json.push_back(number_to_json(expression.number));
      return json;
    case Op::size:
      json.push_back(expression.name);
      json.push_back(expression.integer);
      return json;
    case Op::variable:
    case Op::read:
    case Op::call:
      json.push_back(to_string(expression.type));
      json.push_back(expression.name);
      break;
    default:
      break;
  }
  for (const Expression& operand : expression.operands) json.push_back(to_json(operand));
  return json;
}

std::vector<Expression> operands_from(const Json& json, std::size_t first);

Expression expression_from(const Json& json) {
  const snippet::Operation& operation = operation_at(json, 0);
  const Op op = operation.op;
  switch (op) {
    case Op::integer_literal:
      return integer(integer_at(json, 1));
    case Op::truth_literal:
      if (!element(json, 1).is_boolean())
        refuse_tree("true or false is expected in " + json.dump());
      return truth(json[1].get<bool>());
    case Op::floating_literal:
      return floating(number_at(json, 1));
    case Op::size:
      return {.op = op, .integer = integer_at(json, 2), .name = text_at(json, 1)};
    case Op::variable:
    case Op::read:
    case Op::call:
      return {.op = op,
              .type = type_at(json, 1),
              .name = text_at(json, 2),
              .operands = operands_from(json, 3)};
    default:
      break;
  }
  std::vector<Expression> operands = operands_from(json, 1);
  if (operands.size() != operation.operands)
    refuse_tree("a wrong number of operands in " + json.dump());
  return apply(op, std::move(operands));
}

std::vector<Expression> operands_from(const Json& json, std::size_t first) {
  std::vector<Expression> operands;
  for (std::size_t i = first; i < json.size(); ++i) operands.push_back(expression_from(json[i]));
  return operands;
}

Json to_json(const std::vector<Statement>& statements);

Json to_json(const Statement& statement) {
  switch (statement.kind) {
    case Statement::Kind::declare:
      return Json::array({"declare", statement.name, to_json(statement.value)});
    case Statement::Kind::lambda: {
      Json parameters = Json::array();
      for (const Expression& parameter : statement.parameters) {
        parameters.push_back(Json::array({to_string(parameter.type), parameter.name}));
      }
      return Json::array({"lambda", statement.name, parameters, to_json(statement.value)});
    }
    case Statement::Kind::assign:
      return Json::array({"assign", statement.name, to_json(statement.value)});
    case Statement::Kind::branch:
      return Json::array(
          {"if", to_json(statement.value), to_json(statement.body), to_json(statement.otherwise)});
    case Statement::Kind::result:
      return Json::array({"return", to_json(statement.value)});
    case Statement::Kind::loop:
    case Statement::Kind::leave:
    case Statement::Kind::opaque:
      break;
  }
  throw Error(ErrorCode::internal, "random snippets hold no blocks, loops or opaque statements");
}

Json to_json(const std::vector<Statement>& statements) {
  Json json = Json::array();
  for (const Statement& statement : statements) json.push_back(to_json(statement));
  return json;
}

std::vector<Statement> statements_from(const Json& json);

Statement statement_from(const Json& json) {
  const std::string kind = text_at(json, 0);
  using Kind = Statement::Kind;
  if (kind == "return") {
    return {.kind = Kind::result, .value = expression_from(element(json, 1))};
  }
  if (kind == "declare" || kind == "assign") {
    return {.kind = kind == "declare" ? Kind::declare : Kind::assign,
            .name = text_at(json, 1),
            .value = expression_from(element(json, 2))};
  }
  if (kind == "if") {
    return {.kind = Kind::branch,
            .value = expression_from(element(json, 1)),
            .body = statements_from(element(json, 2)),
            .otherwise = statements_from(element(json, 3))};
  }
  if (kind != "lambda") refuse_tree("\"" + kind + "\" is no statement");
  Statement lambda{
      .kind = Kind::lambda, .name = text_at(json, 1), .value = expression_from(element(json, 3))};
  for (const Json& parameter : json[2]) {
    lambda.parameters.push_back(variable(text_at(parameter, 1), type_at(parameter, 0)));
  }
  return lambda;
}

std::vector<Statement> statements_from(const Json& json) {
  if (!json.is_array()) refuse_tree("a list of statements is expected instead of " + json.dump());
  std::vector<Statement> statements;
  for (const Json& statement : json) statements.push_back(statement_from(statement));
  return statements;
}

}  // namespace

std::string tree_to_json(const SnippetTree& tree) {
  return to_json(tree.statements).dump();
}

SnippetTree tree_from_json(SnippetKind kind, std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) refuse_tree("it is no JSON");
  SnippetTree tree{.kind = kind, .statements = statements_from(json)};
  if (tree.statements.empty()) refuse_tree("it has no statement");
  return tree;
}

}  // namespace tilewright::verify::fuzz
