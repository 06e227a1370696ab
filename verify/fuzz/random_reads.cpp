#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "verify/fuzz/expression_maker.hpp"

namespace tilewright::verify::fuzz {

// Indices are inside the buffer whatever the call.
Expression ExpressionMaker::read_of(const std::string& buffer, Type type, int depth) {
  std::vector<Expression> indices;
  for (std::size_t d = 0; d < declared_.buffer(buffer).shape.size(); ++d) {
    indices.push_back(index_for(buffer, d, depth));
  }
  return read(buffer, type, std::move(indices));
}

Expression ExpressionMaker::index_for(const std::string& buffer, std::size_t dim, int depth) {
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
    }
  }
  if (one_in(2)) {
    return apply(Op::minimum,
                 {absolute(integer_value(depth - 1)).expression, last_of(buffer, dim)});
  }
  return apply(Op::clamp, {integer_value(depth - 1).expression, integer(0), last_of(buffer, dim)});
}

Expression ExpressionMaker::index_value(const char* usual, int depth) {
  return one_in(3) && depth > 0 ? integer_value(depth - 1).expression : variable(usual);
}

Expression ExpressionMaker::last_of(const std::string& buffer, std::size_t dim) {
  Expression size{.op = Op::size, .integer = static_cast<std::int64_t>(dim), .name = buffer};
  return apply(Op::subtract, {std::move(size), integer(1)});
}

}  // namespace tilewright::verify::fuzz
