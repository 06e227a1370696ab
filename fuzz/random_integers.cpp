#include <algorithm>
#include <array>

#include "fuzz/expression_maker.hpp"

namespace tilewright::verify::fuzz {

TrackedInteger ExpressionMaker::integer_value(int depth) {
  if (depth <= 0 || one_in(4)) return integer_leaf(depth);
  const TrackedInteger a = integer_value(depth - 1);
  switch (below(20)) {
    case 0:
    case 1:
    case 2:
      return add(limited(a, kHalfOfInt), limited(integer_value(depth - 1), kHalfOfInt));
    case 3:
    case 4:
      return subtract(limited(a, kHalfOfInt), limited(integer_value(depth - 1), kHalfOfInt));
    case 5:
      return multiply(limited(a, 40000), limited(integer_value(depth - 1), 40000));
    case 6:
    case 7:
      return quotient(a, depth);
    case 8:
    case 9:
      return remainder_of(a, depth);
    case 10:
      return shifted(a);
    case 11:
      return bitwise(limited(a, 1 << 28), limited(integer_value(depth - 1), 1 << 28));
    case 12: {
      const TrackedInteger b = integer_value(depth - 1);
      const bool least = one_in(2);
      return {apply(least ? Op::minimum : Op::maximum, {a.expression, b.expression}),
              least ? std::min(a.least, b.least) : std::max(a.least, b.least),
              least ? std::min(a.greatest, b.greatest) : std::max(a.greatest, b.greatest)};
    }
    case 13:
      return absolute(a);
    case 14: {
      const std::int64_t low = below(100);
      return clamp(a, low, low + below(100));
    }
    case 15:
      return choose(Op::select, truth(depth - 1), a, integer_value(depth - 1));
    case 16:
      return rounded_down(a);
    case 17:
      return {apply(Op::sign, {a.expression}), -1, 1};
    case 18:
      return choose(Op::conditional, truth(depth - 1), a, integer_value(depth - 1));
    default:
      return {apply(Op::negate, {a.expression}), -a.greatest, -a.least};
  }
}

TrackedInteger ExpressionMaker::integer_leaf(int depth) {
  if (!locals.integers.empty() && one_in(3)) return one_of(locals.integers);
  switch (below(8)) {
    case 0:
      return constant();
    case 1:
      if (const auto name = declared_.scalar(DType::i32))
        return {variable(*name), 1, kMaxIntegerScalar};
      return constant();
    case 2:
    case 3: {
      const std::vector<std::string> names = declared_.buffers(false);
      if (!names.empty() && depth > 0) return integer_read(one_of(names), depth);
      return index_of_mask_or_score();
    }
    default:
      return index_of_mask_or_score();
  }
}

TrackedInteger ExpressionMaker::constant() {
  const std::int64_t value = one_in(3) ? below(500) : below(20);
  return one_in(5) ? TrackedInteger{integer(-value), -value, -value}
                   : TrackedInteger{integer(value), value, value};
}

TrackedInteger ExpressionMaker::integer_read(const std::string& buffer, int depth) {
  const std::array<double, 2> range = *declared_.buffer(buffer).range;
  return {read_of(buffer, Type::integer, depth), static_cast<std::int64_t>(range[0]),
          static_cast<std::int64_t>(range[1])};
}

TrackedInteger ExpressionMaker::index_of_mask_or_score() {
  TrackedInteger value = index_or_length();
  // Most masks are shared by heads and batches; only some must not be.
  const bool per_batch = is_wanted(wish_, Factor::mask_scope, 2);
  const bool per_head = is_wanted(wish_, Factor::mask_scope, 3);
  while (kind_ == SnippetKind::mask_mod &&
         ((value.expression.name == "b" && !per_batch) ||
          ((value.expression.name == "h" || value.expression.name == "h_kv") && !per_head))) {
    value = index_or_length();
  }
  return value;
}

TrackedInteger ExpressionMaker::index_or_length() {
  const std::int64_t low = wish_.no_offsets ? 0 : -kMaxIndex;
  if (wish_.is_packed && one_in(8)) {
    return {variable(one_of({"q_token", "kv_token"})), 0, kMaxIndex};
  }
  switch (below(14)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return {variable("q_idx"), low, kMaxIndex};
    case 4:
    case 5:
    case 6:
    case 7:
      return {variable("kv_idx"), low, kMaxIndex};
    case 8:
      return {variable(one_of({"q_len", "kv_len"})), 1, kMaxLength};
    case 9:
      return {variable(one_of({"num_q_heads", "num_kv_heads"})), 1, kMaxHeads};
    case 10:
      return {variable("b"), 0, kMaxHeads};
    case 11:
      return {variable("h_kv"), 0, kMaxHeads};
    default:
      return {variable("h"), 0, kMaxHeads};
  }
}

TrackedInteger ExpressionMaker::limited(const TrackedInteger& x, std::int64_t limit) {
  return x.bound() <= limit ? x : remainder(x, limit);
}

TrackedInteger ExpressionMaker::quotient(const TrackedInteger& a, int depth) {
  if (one_in(3)) {
    const TrackedInteger b = integer_value(depth - 1);
    return {apply(Op::divide, {a.expression, apply(Op::maximum, {integer(1), b.expression})}),
            -a.bound(), a.bound()};
  }
  const std::int64_t divisor = one_of<std::int64_t>({2, 3, 7, 16, 100, 128, -3});
  return {apply(Op::divide, {a.expression, integer(divisor)}),
          divisor > 0 && a.least >= 0 ? 0 : -a.bound(), a.bound()};
}

TrackedInteger ExpressionMaker::remainder_of(const TrackedInteger& a, int depth) {
  if (!one_in(3)) return remainder(a, 2 + below(one_in(2) ? 7 : 200));
  const TrackedInteger b = absolute(limited(integer_value(depth - 1), kHalfOfInt));
  const TrackedInteger divisor = add({integer(1), 1, 1}, b);
  return {apply(Op::remainder, {a.expression, divisor.expression}), -a.bound(), a.bound()};
}

TrackedInteger ExpressionMaker::rounded_down(const TrackedInteger& a) {
  const std::int64_t divisor = one_of<std::int64_t>({2, 3, 7, 16, 100, -2, -5});
  if (one_in(2)) {
    return {apply(Op::floor_quotient, {a.expression, integer(divisor)}), -a.bound(), a.bound()};
  }
  return {apply(Op::floor_remainder, {a.expression, integer(divisor)}),
          divisor < 0 ? divisor + 1 : 0, divisor < 0 ? 0 : divisor - 1};
}

TrackedInteger ExpressionMaker::shifted(const TrackedInteger& a) {
  if (one_in(2)) {
    return {apply(Op::shift_right, {a.expression, integer(below(7))}), -a.bound() - 1, a.bound()};
  }
  // Before C++20 only what is not negative may be shifted to the left, and the checked
  // interpretation says so.
  const std::int64_t distance = below(5);
  const TrackedInteger b = limited(absolute(a), kHalfOfInt >> 5);
  return {apply(Op::shift_left, {b.expression, integer(distance)}), 0, b.greatest << distance};
}

// The bits of a negative number reach up to a power of two above its size.
TrackedInteger ExpressionMaker::bitwise(const TrackedInteger& a, const TrackedInteger& b) {
  const std::int64_t bound = 2 * std::max(a.bound(), b.bound()) + 2;
  return {apply(one_of({Op::bit_and, Op::bit_or, Op::bit_xor}), {a.expression, b.expression}),
          -bound, bound};
}

}  // namespace tilewright::verify::fuzz
