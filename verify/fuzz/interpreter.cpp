#include "verify/fuzz/interpreter.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/float16.hpp"

namespace tilewright::verify::fuzz {
namespace {

// Where values that every snippet sees lie in a frame.
enum Slot : int {
  kB,
  kH,
  kHKv,
  kQIdx,
  kKvIdx,
  kQLen,
  kKvLen,
  kQHeads,
  kKvHeads,
  kScore,
  kFirstFree
};

constexpr std::pair<const char*, Slot> kVariables[] = {{"b", kB},
                                                       {"h", kH},
                                                       {"h_kv", kHKv},
                                                       {"q_idx", kQIdx},
                                                       {"kv_idx", kKvIdx},
                                                       {"q_len", kQLen},
                                                       {"kv_len", kKvLen},
                                                       {"num_q_heads", kQHeads},
                                                       {"num_kv_heads", kKvHeads},
                                                       {"score", kScore}};

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::internal, "the tree of a snippet " + message);
}

BufferValues copy_buffer(const TensorView& view) {
  BufferValues values;
  values.extents.assign(view.extents().begin(), view.extents().end());
  const std::int64_t count = view.numel();
  values.elements.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t offset = 0;
    std::int64_t rest = i;
    for (std::size_t d = values.extents.size(); d-- > 0;) {
      offset += rest % values.extents[d] * view.strides[d];
      rest /= values.extents[d];
    }
    values.elements.push_back(read_element(view.data, view.dtype, offset));
  }
  return values;
}

std::int64_t checked_int(std::int64_t value) {
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max()) {
    fail(fmt::format("overflows: {}", value));
  }
  return value;
}

std::int64_t shifted_left(std::int64_t value, std::int64_t distance) {
  if (distance < 0 || distance > 31) fail(fmt::format("shifts by {}", distance));
  return checked_int(value * (std::int64_t{1} << distance));
}

std::int64_t shifted_right(std::int64_t value, std::int64_t distance) {
  if (distance < 0 || distance > 31) fail(fmt::format("shifts by {}", distance));
  return value >> distance;
}

// docs/math.md: the greatest error in units of 2^-24 of the result; 0: exact.
double units_of_error(Op op) {
  switch (op) {
    case Op::exp:
    case Op::exp2:
    case Op::log:
    case Op::sin:
    case Op::cos:
      return 2;
    case Op::log2:
    case Op::rsqrt:
      return 4;
    case Op::tanh:
      return 6;
    default:
      return 0;
  }
}

}  // namespace

CallValues::CallValues(const Spec& spec, const Shape& call_shape, const SnippetInputs& inputs)
    : shape(call_shape) {
  for (const auto& [name, view] : inputs.buffers) buffers.emplace(name, copy_buffer(view));
  for (const auto& [name, scalar] : spec.scalars) {
    const auto given = inputs.scalars.find(name);
    if (given == inputs.scalars.end() && !scalar.default_value) {
      throw Error(ErrorCode::usage, fmt::format("scalar \"{}\" has no value", name));
    }
    const double value = given != inputs.scalars.end() ? given->second : *scalar.default_value;
    scalars.emplace(name, ScalarValue{is_floating(scalar.dtype) ? Type::floating : Type::integer,
                                      round_to(scalar.dtype, value)});
  }
}

// The tree with every name resolved to a slot of a frame or a buffer.
template <typename Score>
class Interpreter<Score>::Program {
 public:
  Program(const SnippetTree& tree, const CallValues& values, const FunctionErrors& errors)
      : values_(values), errors_(errors) {
    Scope scope;
    for (const auto& [name, slot] : kVariables) {
      const bool is_score = slot == kScore;
      if (is_score && tree.kind == SnippetKind::mask_mod) continue;
      scope.slots[name] = {slot, is_score ? Type::floating : Type::integer};
    }
    for (const auto& [name, scalar] : values.scalars) {
      const int slot = slots_++;
      constants_.emplace_back(slot, scalar.type == Type::floating
                                        ? number_value(static_cast<Score>(scalar.value))
                                        : integer_value(static_cast<std::int64_t>(scalar.value)));
      scope.slots[name] = {slot, scalar.type};
    }
    body_ = resolve(tree.statements, scope);
  }

  // One result for each column, given to `take(column, value)`.
  template <typename Take>
  void run(const RowPlace& place, const Score* scores, const Take& take) const {
    std::vector<Value> frame = frame_of(place);
    const Shape& shape = values_.shape;
    for (std::int64_t column = 0; column < shape.kv_len; ++column) {
      frame[kKvIdx] = integer_value(column + shape.kv_offset);
      frame[kScore] = number_value(scores ? scores[column] : 0);
      const std::optional<Value> result = execute(body_, frame);
      if (!result) fail("ends without a result");
      take(column, *result);
    }
  }

  struct Value {
    Type type = Type::integer;
    std::int64_t integer = 0;  // of an integer or a truth
    Score number = 0;

    Score as_number() const {
      return type == Type::floating ? number : static_cast<Score>(integer);
    }
  };

 private:
  struct Node {
    Op op = Op::integer_literal;
    Type type = Type::integer;
    Value literal = {};
    int slot = 0;                          // of a variable
    std::size_t lambda = 0;                // of a call
    const BufferValues* buffer = nullptr;  // of a read or a size
    std::vector<Node> operands = {};
  };

  struct Step {
    Statement::Kind kind;
    Node value;
    int slot = 0;  // of what is declared or assigned
    Type type = Type::integer;
    std::size_t lambda = 0;
    std::vector<Step> body = {};
    std::vector<Step> otherwise = {};
  };

  // Captures by value: its body reads copies made where the lambda stands.
  struct Lambda {
    std::vector<std::pair<int, int>> captures;  // from, to
    std::vector<int> parameters;
    std::vector<Type> types;
    Node body;
  };

  struct Variable {
    int slot = 0;
    Type type = Type::integer;
  };

  struct Scope {
    std::map<std::string, Variable> slots;
    std::map<std::string, std::size_t> lambdas;
  };

  static Value integer_value(std::int64_t value) {
    return {.type = Type::integer, .integer = value};
  }
  static Value truth_value(bool value) { return {.type = Type::truth, .integer = value ? 1 : 0}; }
  static Value number_value(Score value) { return {.type = Type::floating, .number = value}; }

  static Value converted(const Value& value, Type type) {
    if (type == Type::floating) return number_value(value.as_number());
    if (type == value.type) return value;
    if (value.type == Type::floating) fail("turns a number into an integer");
    return type == Type::truth ? truth_value(value.integer != 0) : integer_value(value.integer);
  }

  // ---- resolving

  Node resolve(const Expression& expression, const Scope& scope) {
    Node node{.op = expression.op, .type = expression.type};
    for (const Expression& operand : expression.operands) {
      node.operands.push_back(resolve(operand, scope));
    }
    switch (expression.op) {
      case Op::integer_literal:
        node.literal = integer_value(expression.integer);
        break;
      case Op::truth_literal:
        node.literal = truth_value(expression.integer != 0);
        break;
      case Op::floating_literal:
        node.literal = number_value(static_cast<Score>(expression.number));
        break;
      case Op::variable:
        node.slot = find(scope.slots, expression.name).slot;
        if (find(scope.slots, expression.name).type != expression.type) {
          fail("takes " + expression.name + " for another type");
        }
        break;
      case Op::call:
        node.lambda = find(scope.lambdas, expression.name);
        if (lambdas_[node.lambda].parameters.size() != node.operands.size()) {
          fail("calls " + expression.name + " with a wrong number of arguments");
        }
        break;
      case Op::read:
        node.buffer = &find(values_.buffers, expression.name);
        if (node.buffer->extents.size() != node.operands.size()) {
          fail("reads " + expression.name + " with a wrong number of indices");
        }
        break;
      case Op::size: {
        const BufferValues& buffer = find(values_.buffers, expression.name);
        node.op = Op::integer_literal;
        node.literal =
            integer_value(buffer.extents.at(static_cast<std::size_t>(expression.integer)));
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
      case Statement::Kind::lambda:
        step.lambda = lambdas_.size();
        lambdas_.push_back(resolve_lambda(statement, scope));
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
      step.slot = slots_++;
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
      const int copy = slots_++;
      lambda.captures.emplace_back(variable.slot, copy);
      inner.slots[name] = {copy, variable.type};
    }
    for (const Parameter& parameter : statement.parameters) {
      lambda.parameters.push_back(slots_++);
      lambda.types.push_back(parameter.type);
      inner.slots[parameter.name] = {lambda.parameters.back(), parameter.type};
    }
    lambda.body = resolve(statement.value, inner);
    return lambda;
  }

  template <typename T>
  static const T& find(const std::map<std::string, T>& table, const std::string& name) {
    const auto found = table.find(name);
    if (found == table.end()) fail("mentions \"" + name + "\", which is not there");
    return found->second;
  }

  // ---- running

  std::vector<Value> frame_of(const RowPlace& place) const {
    std::vector<Value> frame(static_cast<std::size_t>(slots_));
    const Shape& shape = values_.shape;
    frame[kB] = integer_value(place.b);
    frame[kH] = integer_value(place.h);
    frame[kHKv] = integer_value(place.h / (shape.num_q_heads / shape.num_kv_heads));
    frame[kQIdx] = integer_value(place.row + shape.q_offset);
    frame[kQLen] = integer_value(shape.q_len);
    frame[kKvLen] = integer_value(shape.kv_len);
    frame[kQHeads] = integer_value(shape.num_q_heads);
    frame[kKvHeads] = integer_value(shape.num_kv_heads);
    for (const auto& [slot, value] : constants_) frame[static_cast<std::size_t>(slot)] = value;
    return frame;
  }

  std::optional<Value> execute(const std::vector<Step>& steps, std::vector<Value>& frame) const {
    for (const Step& step : steps) {
      switch (step.kind) {
        case Statement::Kind::declare:
        case Statement::Kind::assign:
          frame[static_cast<std::size_t>(step.slot)] =
              converted(evaluate(step.value, frame), step.type);
          break;
        case Statement::Kind::lambda:
          for (const auto& [from, to] : lambdas_[step.lambda].captures) {
            frame[static_cast<std::size_t>(to)] = frame[static_cast<std::size_t>(from)];
          }
          break;
        case Statement::Kind::branch: {
          const bool taken = evaluate(step.value, frame).integer != 0;
          const auto result = execute(taken ? step.body : step.otherwise, frame);
          if (result) return result;
          break;
        }
        case Statement::Kind::result:
          return evaluate(step.value, frame);
      }
    }
    return std::nullopt;
  }

  Value evaluate(const Node& node, std::vector<Value>& frame) const {
    switch (node.op) {
      case Op::integer_literal:
      case Op::floating_literal:
      case Op::truth_literal:
        return node.literal;
      case Op::variable:
        return frame[static_cast<std::size_t>(node.slot)];
      case Op::read:
        return read(node, frame);
      case Op::call:
        return call(node, frame);
      case Op::logical_and:
        return truth_value(evaluate(node.operands[0], frame).integer != 0 &&
                           evaluate(node.operands[1], frame).integer != 0);
      case Op::logical_or:
        return truth_value(evaluate(node.operands[0], frame).integer != 0 ||
                           evaluate(node.operands[1], frame).integer != 0);
      case Op::conditional: {
        const bool first = evaluate(node.operands[0], frame).integer != 0;
        return converted(evaluate(node.operands[first ? 1 : 2], frame), node.type);
      }
      default:
        break;
    }
    Value operands[3];
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      operands[i] = evaluate(node.operands[i], frame);
    }
    return apply(node, operands, node.operands.size());
  }

  Value read(const Node& node, std::vector<Value>& frame) const {
    const BufferValues& buffer = *node.buffer;
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < node.operands.size(); ++d) {
      const std::int64_t index = evaluate(node.operands[d], frame).integer;
      offset =
          offset * buffer.extents[d] + std::clamp<std::int64_t>(index, 0, buffer.extents[d] - 1);
    }
    const double element = buffer.elements[static_cast<std::size_t>(offset)];
    return node.type == Type::floating ? number_value(static_cast<Score>(element))
                                       : integer_value(static_cast<std::int64_t>(element));
  }

  Value call(const Node& node, std::vector<Value>& frame) const {
    const Lambda& lambda = lambdas_[node.lambda];
    std::vector<Value> arguments;
    for (const Node& operand : node.operands) arguments.push_back(evaluate(operand, frame));
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      frame[static_cast<std::size_t>(lambda.parameters[i])] =
          converted(arguments[i], lambda.types[i]);
    }
    return evaluate(lambda.body, frame);
  }

  Value apply(const Node& node, const Value* x, std::size_t count) const {
    switch (node.op) {
      case Op::logical_not:
        return truth_value(x[0].integer == 0);
      case Op::select:
        return converted(x[0].integer != 0 ? x[1] : x[2], node.type);
      case Op::to_floating:
        return number_value(x[0].as_number());
      case Op::to_integer:
        return converted(x[0], Type::integer);
      default:
        break;
    }
    const bool any_number =
        std::any_of(x, x + count, [](const Value& value) { return value.type == Type::floating; });
    if (node.op >= Op::less && node.op <= Op::not_equal) {
      return truth_value(any_number ? compare(node.op, x[0].as_number(), x[1].as_number())
                                    : compare(node.op, x[0].integer, x[1].integer));
    }
    if (node.type == Type::floating) return number_value(of_numbers(node.op, x));
    return integer_value(checked_int(of_integers(node.op, x)));
  }

  template <typename T>
  static bool compare(Op op, T a, T b) {
    switch (op) {
      case Op::less:
        return a < b;
      case Op::less_equal:
        return a <= b;
      case Op::greater:
        return a > b;
      case Op::greater_equal:
        return a >= b;
      case Op::equal:
        return a == b;
      default:
        return a != b;
    }
  }

  static std::int64_t of_integers(Op op, const Value* x) {
    const std::int64_t a = x[0].integer;
    const std::int64_t b = x[1].integer;
    switch (op) {
      case Op::add:
        return a + b;
      case Op::subtract:
        return a - b;
      case Op::multiply:
        return a * b;
      case Op::divide:
      case Op::remainder:
        if (b == 0) fail("divides by 0");
        return op == Op::divide ? a / b : a % b;
      case Op::negate:
        return -a;
      case Op::shift_left:
        return shifted_left(a, b);
      case Op::shift_right:
        return shifted_right(a, b);
      case Op::bit_and:
        return a & b;
      case Op::bit_or:
        return a | b;
      case Op::bit_xor:
        return a ^ b;
      case Op::minimum:
        return std::min(a, b);
      case Op::maximum:
        return std::max(a, b);
      case Op::absolute:
        return a < 0 ? -a : a;
      case Op::clamp:
        return std::min(std::max(a, b), x[2].integer);
      default:
        fail("does " + std::string(to_string(op)) + " with integers");
    }
  }

  // Where one is NaN, the other, as C's fmin and fmax.
  static Score smaller(Score a, Score b) { return std::isnan(a) || b < a ? b : a; }
  static Score greater(Score a, Score b) { return std::isnan(a) || b > a ? b : a; }

  Score of_numbers(Op op, const Value* x) const {
    const Score a = x[0].as_number();
    switch (op) {
      case Op::add:
        return a + x[1].as_number();
      case Op::subtract:
        return a - x[1].as_number();
      case Op::multiply:
        return a * x[1].as_number();
      case Op::divide:
        return a / x[1].as_number();
      case Op::negate:
        return -a;
      case Op::minimum:
        return smaller(a, x[1].as_number());
      case Op::maximum:
        return greater(a, x[1].as_number());
      case Op::absolute:
        return std::fabs(a);
      case Op::clamp:
        return smaller(greater(a, x[1].as_number()), x[2].as_number());
      case Op::sqrt:
        return std::sqrt(a);
      case Op::floor:
        return std::floor(a);
      case Op::ceil:
        return std::ceil(a);
      default:
        return with_error(op, a, function(op, a));
    }
  }

  static Score function(Op op, Score a) {
    switch (op) {
      case Op::tanh:
        return std::tanh(a);
      case Op::exp:
        return std::exp(a);
      case Op::exp2:
        return std::exp2(a);
      case Op::log:
        return std::log(a);
      case Op::log2:
        return std::log2(a);
      case Op::rsqrt:
        return 1 / std::sqrt(a);
      case Op::sin:
        return std::sin(a);
      case Op::cos:
        return std::cos(a);
      default:
        fail("does " + std::string(to_string(op)) + " with numbers");
    }
  }

  // The error depends on the argument alone, as a function's does.
  Score with_error(Op op, Score argument, Score result) const {
    if (errors_.factor == 0) return result;
    std::uint64_t hash = std::bit_cast<std::uint64_t>(static_cast<double>(argument)) ^
                         (errors_.seed + static_cast<std::uint64_t>(op)) * 0x9e3779b97f4a7c15;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
    hash ^= hash >> 31;
    const double share = static_cast<double>(hash >> 11) * 0x1p-52 - 1;
    const double units = errors_.factor * units_of_error(op) * share;
    return static_cast<Score>(static_cast<double>(result) * (1 + units * 0x1p-24));
  }

  const CallValues& values_;
  FunctionErrors errors_;
  int slots_ = kFirstFree;
  std::vector<std::pair<int, Value>> constants_;  // scalars
  std::vector<Lambda> lambdas_;
  std::vector<Step> body_;
};

template <typename Score>
Interpreter<Score>::Interpreter(const SnippetTree& tree, const CallValues& values,
                                const FunctionErrors& errors)
    : program_(std::make_unique<const Program>(tree, values, errors)) {}

template <typename Score>
Interpreter<Score>::Interpreter(Interpreter&&) noexcept = default;
template <typename Score>
Interpreter<Score>::~Interpreter() = default;

template <typename Score>
void Interpreter<Score>::modify(const RowPlace& place, const Score* scores, Score* modified) const {
  program_->run(place, scores, [&](std::int64_t column, const auto& value) {
    modified[column] = value.as_number();
  });
}

template <typename Score>
void Interpreter<Score>::keep(const RowPlace& place, unsigned char* keep) const {
  program_->run(place, nullptr, [&](std::int64_t column, const auto& value) {
    keep[column] = value.as_number() != 0 ? 1 : 0;
  });
}

template class Interpreter<float>;
template class Interpreter<double>;

}  // namespace tilewright::verify::fuzz
