#include "fuzz/expression_maker.hpp"

namespace tilewright::verify::fuzz {

Expression ExpressionMaker::truth(int depth) {
  if (!locals.truths.empty() && one_in(4)) return one_of(locals.truths);
  if (depth <= 0 || one_in(5)) {
    if (one_in(3)) return known_mask();
    return integer_comparison(depth > 0 ? 1 : 0);
  }
  switch (below(9)) {
    case 0:
    case 1:
      return apply(Op::logical_and, {truth(depth - 1), truth(depth - 1)});
    case 2:
    case 3:
      return apply(Op::logical_or, {truth(depth - 1), truth(depth - 1)});
    case 4:
      return apply(Op::logical_not, {truth(depth - 1)});
    case 5:
      return apply(one_of({Op::equal, Op::not_equal}), {truth(depth - 1), truth(depth - 1)});
    case 6:
      if (has_exact_numbers()) return exact_comparison(depth - 1);
      [[fallthrough]];
    case 7:
      return apply(one_of({Op::conditional, Op::select}),
                   {truth(depth - 1), truth(depth - 1), truth(depth - 1)});
    default:
      return integer_comparison(depth - 1);
  }
}

Op ExpressionMaker::comparison() {
  return one_of({Op::less, Op::less_equal, Op::greater, Op::greater_equal, Op::greater_equal,
                 Op::less, Op::equal, Op::not_equal});
}

Expression ExpressionMaker::known_mask() {
  const Expression q = variable("q_idx");
  const Expression kv = variable("kv_idx");
  const Expression distance = apply(Op::subtract, {q, kv});
  const Expression causal = apply(Op::greater_equal, {q, kv});
  const std::int64_t width = 1 + below(100);
  const auto width_scalar = declared_.scalar(DType::i32);
  const Expression window = width_scalar ? variable(*width_scalar) : integer(width);
  switch (below(8)) {
    case 0:
    case 1:
      return causal;
    case 2:
      return apply(Op::logical_and, {causal, apply(Op::less, {distance, window})});
    case 3:
      return apply(Op::less_equal, {apply(Op::absolute, {distance}), window});
    case 4:
      return apply(Op::equal, {apply(Op::divide, {q, integer(width)}),
                               apply(Op::divide, {kv, integer(width)})});
    case 5:
      return apply(Op::logical_or, {apply(Op::less, {kv, window}), causal});
    case 6:
      return apply(Op::equal,
                   {apply(Op::remainder, {distance, integer(2 + below(4))}), integer(0)});
    default:
      return apply(Op::less, {kv, apply(Op::subtract, {variable("kv_len"), window})});
  }
}

Expression ExpressionMaker::integer_comparison(int depth) {
  const TrackedInteger a = integer_value(depth);
  TrackedInteger b = integer_value(depth);
  // Equal by chance is rare; of small remainders it is not.
  const Op op = comparison();
  if ((op == Op::equal || op == Op::not_equal) && one_in(2)) {
    return apply(op, {remainder(a, 3).expression, integer(below(3))});
  }
  return apply(op, {a.expression, b.expression});
}

Expression ExpressionMaker::exact_comparison(int depth) {
  return apply(one_of({Op::less, Op::greater, Op::less_equal, Op::greater_equal}),
               {exact_number(depth).expression, exact_number(depth).expression});
}

bool ExpressionMaker::has_exact_numbers() const {
  return !declared_.buffers(true).empty() || declared_.scalar(DType::f32).has_value();
}

}  // namespace tilewright::verify::fuzz
