#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fuzz/expression_maker.hpp"

namespace tilewright::verify::fuzz {

// Indices are inside the buffer whatever the call, but for some of a buffer that clamps them.
Expression ExpressionMaker::read_of(const std::string& buffer, Type type, int depth) {
  std::vector<Expression> indices;
  for (std::size_t d = 0; d < declared_.buffer(buffer).shape.size(); ++d) {
    indices.push_back(index_for(buffer, d, depth));
  }
  return read(buffer, type, std::move(indices));
}

Expression ExpressionMaker::index_for(const std::string& buffer, std::size_t dim, int depth) {
  const bool is_clamped = declared_.buffer(buffer).bounds == Bounds::clamped;
  if (is_clamped && depth > 0 && one_in(6)) return wild_index(depth);
  const BufferDim& declared = declared_.buffer(buffer).shape[dim];
  if (const auto* size = std::get_if<std::int64_t>(&declared)) {
    if (*size == 1) return integer(0);
    return remainder(absolute(integer_value(depth - 1)), *size).expression;
  }
  if (const auto* named = std::get_if<NamedDim>(&declared)) {
    switch (*named) {
      case NamedDim::batch:
        return variable("b");
      case NamedDim::num_q_heads:
        return variable("h");
      case NamedDim::num_kv_heads:
        return variable("h_kv");
      case NamedDim::q_len:
        if (wish_.no_offsets && !one_in(4)) return variable("q_idx");
        return apply(Op::clamp, {index_value("q_idx", depth), integer(0),
                                 apply(Op::subtract, {variable("q_len"), integer(1)})});
      case NamedDim::kv_len:
        if (wish_.no_offsets && !one_in(4)) return variable("kv_idx");
        return apply(Op::clamp, {index_value("kv_idx", depth), integer(0),
                                 apply(Op::subtract, {variable("kv_len"), integer(1)})});
      case NamedDim::total_q:
        return variable("q_token");
      case NamedDim::total_kv:
        return variable("kv_token");
    }
  }
  if (one_in(2)) {
    return apply(Op::minimum,
                 {absolute(integer_value(depth - 1)).expression, last_of(buffer, dim)});
  }
  return apply(Op::clamp, {integer_value(depth - 1).expression, integer(0), last_of(buffer, dim)});
}

// Anywhere, and of any type. Masks are not proved where there are unsigned integers.
Expression ExpressionMaker::wild_index(int depth) {
  const Expression value = limited(integer_value(depth - 1), kHalfOfInt).expression;
  switch (below(kind_ == SnippetKind::mask_mod ? 6 : 8)) {
    case 0:
      return value;
    case 1:
      return apply(Op::times_2_to_32, {value});
    case 6:
      return apply(Op::to_unsigned, {value});
    case 7:
      return apply(Op::to_wide_unsigned, {value});
    case 2:
      return truth(depth - 1);
    default:
      return floating_index(depth);
  }
}

// All interpretations must read the same cell, so a number that is rounded stays away from whole
// ones: of an integer n, 3.5 / n, n + 1/2 over an integer, and log2, 4 sqrt and 2.5 tanh of n +
// 1/2. Some numbers are infinite or NaN.
Expression ExpressionMaker::floating_index(int depth) {
  const TrackedInteger n = limited(integer_value(depth - 1), 2000);
  const Expression between = apply(Op::add, {n.expression, floating(0.5)});
  switch (below(9)) {
    case 0:
      return apply(Op::log2, {between});
    case 1:
      return apply(Op::multiply, {floating(4), apply(Op::sqrt, {between})});
    case 2:
      return apply(Op::multiply, {floating(2.5), apply(Op::tanh, {between})});
    case 3:
      return apply(Op::divide, {between, floating(static_cast<double>(1 + below(9)))});
    case 4:
      return apply(Op::divide,
                   {floating(one_of({3.5, -3.5})), apply(Op::to_floating, {n.expression})});
    case 5:
      return apply(Op::divide, {apply(Op::to_floating, {n.expression}), floating(0)});
    case 6:
      return floating(one_of({1.0, -1.0}) * std::numeric_limits<double>::infinity());
    case 7:
      return apply(Op::multiply, {n.expression, floating(one_of({0.25, 1.0, 1048576.0, 1e30}))});
    default:
      return exact_number(depth - 1).expression;
  }
}

Expression ExpressionMaker::index_value(const char* usual, int depth) {
  return one_in(3) && depth > 0 ? integer_value(depth - 1).expression : variable(usual);
}

Expression ExpressionMaker::last_of(const std::string& buffer, std::size_t dim) {
  Expression size{.op = Op::size, .integer = static_cast<std::int64_t>(dim), .name = buffer};
  return apply(Op::subtract, {std::move(size), integer(1)});
}

}  // namespace tilewright::verify::fuzz
