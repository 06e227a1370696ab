#include "fuzz/tree_program.hpp"

#include <map>
#include <string>

namespace tilewright::verify::fuzz {
namespace {

constexpr std::pair<const char*, TreeSlot::Index> kVariables[] = {
    {"b", TreeSlot::kB},
    {"h", TreeSlot::kH},
    {"h_kv", TreeSlot::kHKv},
    {"q_idx", TreeSlot::kQIdx},
    {"kv_idx", TreeSlot::kKvIdx},
    {"q_len", TreeSlot::kQLen},
    {"kv_len", TreeSlot::kKvLen},
    {"num_q_heads", TreeSlot::kQHeads},
    {"num_kv_heads", TreeSlot::kKvHeads},
    {"q_token", TreeSlot::kQToken},
    {"kv_token", TreeSlot::kKvToken},
    {"score", TreeSlot::kScore}};

template <typename Score>
class TreeResolver {
 public:
  TreeResolver(const SnippetTree& tree, const CallValues& values) : values_(values) {
    Scope scope;
    for (const auto& [name, slot] : kVariables) {
      const bool is_score = slot == TreeSlot::kScore;
      if (is_score && tree.kind == SnippetKind::mask_mod) continue;
      scope.slots[name] = {slot, is_score ? Type::floating : Type::integer};
    }
    for (const auto& [name, scalar] : values.scalars) {
      const int slot = program_.slots++;
      program_.constants.emplace_back(
          slot, scalar.type == Type::floating
                    ? Value::of_number(static_cast<Score>(scalar.value))
                    : Value::of_integer(static_cast<std::int64_t>(scalar.value)));
      scope.slots[name] = {slot, scalar.type};
    }
    program_.body = resolve(tree.statements, scope);
  }

  TreeProgram<Score> take() { return std::move(program_); }

 private:
  using Value = TreeValue<Score>;
  using Node = typename TreeProgram<Score>::Node;
  using Step = typename TreeProgram<Score>::Step;
  using Lambda = typename TreeProgram<Score>::Lambda;

  struct Variable {
    int slot = 0;
    Type type = Type::integer;
  };

  struct Scope {
    std::map<std::string, Variable> slots;
    std::map<std::string, std::size_t> lambdas;
  };

  Node resolve(const Expression& expression, const Scope& scope) {
    Node node{.op = expression.op, .type = expression.type};
    for (const Expression& operand : expression.operands) {
      node.operands.push_back(resolve(operand, scope));
    }
    switch (expression.op) {
      case Op::integer_literal:
        node.literal = Value::of_integer(expression.integer);
        break;
      case Op::truth_literal:
        node.literal = Value::of_truth(expression.integer != 0);
        break;
      case Op::floating_literal:
        node.literal = Value::of_number(static_cast<Score>(expression.number));
        break;
      case Op::variable:
        node.slot = find(scope.slots, expression.name).slot;
        if (find(scope.slots, expression.name).type != expression.type) {
          fail_tree("takes " + expression.name + " for another type");
        }
        break;
      case Op::call:
        node.lambda = find(scope.lambdas, expression.name);
        if (program_.lambdas[node.lambda].parameters.size() != node.operands.size()) {
          fail_tree("calls " + expression.name + " with a wrong number of arguments");
        }
        break;
      case Op::read:
        node.buffer = &find(*values_.buffers, expression.name);
        if (node.buffer->extents.size() != node.operands.size()) {
          fail_tree("reads " + expression.name + " with a wrong number of indices");
        }
        break;
      case Op::size: {
        const BufferValues& buffer = find(*values_.buffers, expression.name);
        node.op = Op::integer_literal;
        node.literal =
            Value::of_integer(buffer.extents.at(static_cast<std::size_t>(expression.integer)));
        break;
      }
      default:
        break;
    }
    return node;
  }

  std::vector<Step> resolve(const std::vector<Statement>& statements, Scope scope) {
    std::vector<Step> steps;
    for (const Statement& statement : statements) steps.push_back(resolve(statement, scope));
    return steps;
  }

  Step resolve(const Statement& statement, Scope& scope) {
    Step step{.kind = statement.kind, .value = {}};
    switch (statement.kind) {
      case Statement::Kind::opaque:
        fail_tree("is opaque: " + statement.name);
      case Statement::Kind::leave:
        fail_tree("leaves a loop by break");
      case Statement::Kind::lambda:
        if (statement.captures_references) fail_tree("captures references");
        step.lambda = program_.lambdas.size();
        program_.lambdas.push_back(resolve_lambda(statement, scope));
        scope.lambdas[statement.name] = step.lambda;
        return step;
      case Statement::Kind::assign:
        step.slot = find(scope.slots, statement.name).slot;
        step.type = find(scope.slots, statement.name).type;
        break;
      default:
        break;
    }
    step.value = resolve(statement.value, scope);
    if (statement.kind == Statement::Kind::declare) {
      step.slot = program_.slots++;
      step.type = statement.value.type;
      scope.slots[statement.name] = {step.slot, step.type};
    }
    step.body = resolve(statement.body, scope);
    step.otherwise = resolve(statement.otherwise, scope);
    return step;
  }

  Lambda resolve_lambda(const Statement& statement, const Scope& scope) {
    Lambda lambda;
    Scope inner{.slots = {}, .lambdas = scope.lambdas};
    for (const auto& [name, variable] : scope.slots) {
      const int copy = program_.slots++;
      lambda.captures.emplace_back(variable.slot, copy);
      inner.slots[name] = {copy, variable.type};
    }
    for (const Expression& parameter : statement.parameters) {
      lambda.parameters.push_back(program_.slots++);
      lambda.types.push_back(parameter.type);
      inner.slots[parameter.name] = {lambda.parameters.back(), parameter.type};
    }
    lambda.body = resolve(statement.value, inner);
    return lambda;
  }

  template <typename T>
  static const T& find(const std::map<std::string, T>& table, const std::string& name) {
    const auto found = table.find(name);
    if (found == table.end()) fail_tree("mentions \"" + name + "\", which is not there");
    return found->second;
  }

  const CallValues& values_;
  TreeProgram<Score> program_ = {};
};

}  // namespace

template <typename Score>
TreeProgram<Score> resolve_tree(const SnippetTree& tree, const CallValues& values) {
  return TreeResolver<Score>(tree, values).take();
}

template TreeProgram<float> resolve_tree(const SnippetTree&, const CallValues&);
template TreeProgram<double> resolve_tree(const SnippetTree&, const CallValues&);

}  // namespace tilewright::verify::fuzz
