#include "fuzz/interpreter.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "fuzz/tree_program.hpp"
#include "fuzz/tree_value.hpp"

namespace tilewright::verify::fuzz {

// A resolved tree with the call that it is evaluated for.
template <typename Score>
class Interpreter<Score>::Program {
 public:
  Program(const SnippetTree& tree, const CallValues& values, const FunctionErrors& errors)
      : values_(values), arithmetic_(errors), program_(resolve_tree<Score>(tree, values)) {}

  // One result for each column, given to `take(column, value)`.
  template <typename Take>
  void run(const RowPlace& place, const Score* scores, const Take& take) const {
    std::vector<Value> frame = frame_of(place);
    const Shape& shape = values_.shape;
    for (std::int64_t column = 0; column < shape.kv_len; ++column) {
      frame[TreeSlot::kKvIdx] = Value::of_integer(column + shape.kv_offset);
      frame[TreeSlot::kKvToken] =
          Value::of_integer(column + shape.kv_offset + values_.kv_token_offset);
      frame[TreeSlot::kScore] = Value::of_number(scores ? scores[column] : 0);
      const std::optional<Value> result = execute(program_.body, frame);
      if (!result) fail_tree("ends without a result");
      take(column, *result);
    }
  }

 private:
  using Value = TreeValue<Score>;
  using Node = typename TreeProgram<Score>::Node;
  using Step = typename TreeProgram<Score>::Step;
  using Lambda = typename TreeProgram<Score>::Lambda;

  std::vector<Value> frame_of(const RowPlace& place) const {
    std::vector<Value> frame(static_cast<std::size_t>(program_.slots));
    const Shape& shape = values_.shape;
    frame[TreeSlot::kB] = Value::of_integer(values_.first_b + place.b);
    frame[TreeSlot::kH] = Value::of_integer(place.h);
    frame[TreeSlot::kHKv] = Value::of_integer(place.h / (shape.num_q_heads / shape.num_kv_heads));
    frame[TreeSlot::kQIdx] = Value::of_integer(place.row + shape.q_offset);
    frame[TreeSlot::kQToken] =
        Value::of_integer(place.row + shape.q_offset + values_.q_token_offset);
    frame[TreeSlot::kQLen] = Value::of_integer(shape.q_len);
    frame[TreeSlot::kKvLen] = Value::of_integer(shape.kv_len);
    frame[TreeSlot::kQHeads] = Value::of_integer(shape.num_q_heads);
    frame[TreeSlot::kKvHeads] = Value::of_integer(shape.num_kv_heads);
    for (const auto& [slot, value] : program_.constants)
      frame[static_cast<std::size_t>(slot)] = value;
    return frame;
  }

  std::optional<Value> execute(const std::vector<Step>& steps, std::vector<Value>& frame) const {
    for (const Step& step : steps) {
      switch (step.kind) {
        case Statement::Kind::declare:
        case Statement::Kind::assign:
          frame[static_cast<std::size_t>(step.slot)] =
              evaluate(step.value, frame).converted_to(step.type);
          break;
        case Statement::Kind::lambda:
          for (const auto& [from, to] : program_.lambdas[step.lambda].captures) {
            frame[static_cast<std::size_t>(to)] = frame[static_cast<std::size_t>(from)];
          }
          break;
        case Statement::Kind::branch: {
          const bool taken = evaluate(step.value, frame).integer != 0;
          const auto result = execute(taken ? step.body : step.otherwise, frame);
          if (result) return result;
          break;
        }
        case Statement::Kind::loop:
          while (evaluate(step.value, frame).integer != 0) {
            if (const auto result = execute(step.body, frame)) return result;
          }
          break;
        case Statement::Kind::leave:
        case Statement::Kind::opaque:
          fail_tree("holds what has no step");
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
        return Value::of_truth(evaluate(node.operands[0], frame).integer != 0 &&
                               evaluate(node.operands[1], frame).integer != 0);
      case Op::logical_or:
        return Value::of_truth(evaluate(node.operands[0], frame).integer != 0 ||
                               evaluate(node.operands[1], frame).integer != 0);
      case Op::conditional: {
        const bool first = evaluate(node.operands[0], frame).integer != 0;
        return evaluate(node.operands[first ? 1 : 2], frame).converted_to(node.type);
      }
      default:
        break;
    }
    Value operands[3];
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      operands[i] = evaluate(node.operands[i], frame);
    }
    return arithmetic_.apply(node.op, node.type, operands, node.operands.size());
  }

  Value read(const Node& node, std::vector<Value>& frame) const {
    const BufferValues& buffer = *node.buffer;
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < node.operands.size(); ++d) {
      offset = offset * buffer.extents[d] +
               cell(evaluate(node.operands[d], frame), buffer.extents[d] - 1);
    }
    const double element = buffer.elements[static_cast<std::size_t>(offset)];
    return node.type == Type::floating ? Value::of_number(static_cast<Score>(element))
                                       : Value::of_integer(static_cast<std::int64_t>(element));
  }

  // The nearest of 0 to `last`, and 0 for a NaN; a float's fraction is dropped.
  static std::int64_t cell(const Value& index, std::int64_t last) {
    if (index.type != Type::floating) return std::clamp<std::int64_t>(index.integer, 0, last);
    if (!(index.number > 0)) return 0;
    return index.number >= static_cast<Score>(last) ? last
                                                    : static_cast<std::int64_t>(index.number);
  }

  Value call(const Node& node, std::vector<Value>& frame) const {
    const Lambda& lambda = program_.lambdas[node.lambda];
    std::vector<Value> arguments;
    for (const Node& operand : node.operands) arguments.push_back(evaluate(operand, frame));
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      frame[static_cast<std::size_t>(lambda.parameters[i])] =
          arguments[i].converted_to(lambda.types[i]);
    }
    return evaluate(lambda.body, frame);
  }

  const CallValues& values_;
  TreeArithmetic<Score> arithmetic_;
  TreeProgram<Score> program_;
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
