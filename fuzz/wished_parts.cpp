#include "fuzz/wished_parts.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace tilewright::verify::fuzz {

template <typename UseInteger, typename UseTruth, typename UseNumber>
void WishedParts::use_locals(const UseInteger& use_integer, const UseTruth& use_truth,
                             const UseNumber& use_number) {
  if (!expressions_.locals.integers.empty()) use_integer(expressions_.locals.integers.back());
  if (!expressions_.locals.truths.empty()) use_truth(expressions_.locals.truths.back());
  if (!expressions_.locals.numbers.empty()) use_number(expressions_.locals.numbers.back());
}

std::vector<Expression> WishedParts::truths() {
  std::vector<Expression> parts;
  const auto compare = [&](const TrackedInteger& x, std::int64_t limit) {
    parts.push_back(apply(expressions_.comparison(), {x.expression, integer(below(limit))}));
  };
  if (is_wanted(wish_, Factor::mask_scope, 2)) {
    parts.push_back(
        apply(Op::less_equal, {variable("b"), remainder(absolute(difference()), 4).expression}));
  }
  if (is_wanted(wish_, Factor::mask_scope, 3)) {
    parts.push_back(apply(Op::greater_equal, {remainder(absolute(difference()), 7).expression,
                                              variable(one_of({"h", "h_kv"}))}));
  }
  for (const bool is_floating_buffer : {false, true}) {
    const std::vector<std::string> names = declared_.buffers(is_floating_buffer);
    if (names.empty() || bits(wish_.features, Factor::buffer) <= 1) continue;
    if (is_floating_buffer) {
      parts.push_back(apply(
          Op::less, {expressions_.floating_read(one_of(names), 1).expression, floating(0.5)}));
    } else {
      compare(expressions_.integer_read(one_of(names), 1), 6);
    }
  }
  if (const auto name = declared_.scalar(DType::i32); name && is_wanted(wish_, Factor::scalar, 2)) {
    parts.push_back(apply(Op::less_equal, {absolute(difference()).expression, variable(*name)}));
  }
  if (const auto name = declared_.scalar(DType::f32); name && is_wanted(wish_, Factor::scalar, 1)) {
    parts.push_back(apply(
        Op::less, {expressions_.exact_number(1).expression, variable(*name, Type::floating)}));
  }
  for (const TrackedInteger& token : wanted_tokens()) {
    compare(fuzz::remainder(token, 11), 9);
  }
  if (is_wanted(wish_, Factor::integers, 1)) compare(difference(), 50);
  if (is_wanted(wish_, Factor::integers, 2))
    compare(expressions_.remainder_of(difference(), 1), 20);
  if (is_wanted(wish_, Factor::integers, 3))
    compare(expressions_.bitwise(difference(), expressions_.constant()), 50);
  if (is_wanted(wish_, Factor::functions, 1)) compare(absolute(difference()), 60);
  if (is_wanted(wish_, Factor::choice, 1)) {
    compare(choose(Op::select, expressions_.truth(1), difference(), expressions_.constant()), 40);
  }
  if (is_wanted(wish_, Factor::choice, 2)) {
    parts.push_back(apply(Op::conditional, {expressions_.truth(1), expressions_.known_mask(),
                                            expressions_.truth(1)}));
  }
  use_locals([&](const TrackedInteger& x) { compare(x, 100); },
             [&](const Expression& x) { parts.push_back(x); }, [](const TrackedNumber&) {});
  return parts;
}

std::vector<TrackedNumber> WishedParts::terms() {
  std::vector<TrackedNumber> terms;
  const auto add_integer = [&](TrackedInteger x) {
    x = ExpressionMaker::limited(x, 512);
    terms.push_back({apply(Op::multiply, {floating(0.015625), x.expression}),
                     static_cast<double>(x.bound()) / 64, 0, false});
  };
  if (bits(wish_.features, Factor::buffer) > 1) {
    const std::vector<std::string> floats = declared_.buffers(true);
    const std::vector<std::string> ints = declared_.buffers(false);
    if (!floats.empty()) terms.push_back(expressions_.floating_read(one_of(floats), 1));
    if (!ints.empty()) add_integer(expressions_.integer_read(one_of(ints), 1));
  }
  if (const auto name = declared_.scalar(DType::f32); name && is_wanted(wish_, Factor::scalar, 1)) {
    terms.push_back(
        ExpressionMaker::product({variable(*name, Type::floating), 2, 0, true}, tanh_of_score()));
  }
  if (const auto name = declared_.scalar(DType::i32); name && is_wanted(wish_, Factor::scalar, 2)) {
    add_integer({variable(*name), 1, kMaxIntegerScalar});
  }
  for (const TrackedInteger& token : wanted_tokens()) add_integer(fuzz::remainder(token, 32));
  if (is_wanted(wish_, Factor::integers, 1)) add_integer(difference());
  if (is_wanted(wish_, Factor::integers, 2))
    add_integer(expressions_.remainder_of(difference(), 1));
  if (is_wanted(wish_, Factor::integers, 3))
    add_integer(expressions_.bitwise(difference(), expressions_.constant()));
  if (is_wanted(wish_, Factor::functions, 1)) add_integer(absolute(difference()));
  if (is_wanted(wish_, Factor::functions, 2)) terms.push_back(tanh_of_score());
  if (is_wanted(wish_, Factor::functions, 3)) {
    const Expression size = apply(Op::absolute, {variable("score", Type::floating)});
    terms.push_back({apply(Op::sqrt, {apply(Op::add, {size, floating(0.25)})}), 6.4, 1, false});
  }
  if (is_wanted(wish_, Factor::choice, 1)) {
    terms.push_back({apply(Op::select, {expressions_.truth(1), floating(0.75), floating(-0.5)}),
                     0.75, 0, true});
  }
  if (is_wanted(wish_, Factor::choice, 2)) {
    add_integer(
        choose(Op::conditional, expressions_.truth(1), difference(), expressions_.constant()));
  }
  use_locals(
      [&](const TrackedInteger& x) { add_integer(x); },
      [&](const Expression& x) {
        terms.push_back({apply(Op::select, {x, floating(0.5), floating(-0.25)}), 0.5, 0, true});
      },
      [&](const TrackedNumber& x) { terms.push_back(x); });
  return terms;
}

std::vector<TrackedInteger> WishedParts::wanted_tokens() {
  std::vector<TrackedInteger> tokens;
  for (const auto& [value, name] : {std::pair{1, "q_token"}, std::pair{2, "kv_token"}}) {
    if (!is_wanted(wish_, Factor::tokens, value)) continue;
    tokens.push_back({variable(name), 0, kMaxIndex});
  }
  return tokens;
}

TrackedInteger WishedParts::difference() {
  return subtract({variable("q_idx"), -kMaxIndex, kMaxIndex},
                  {variable("kv_idx"), -kMaxIndex, kMaxIndex});
}

TrackedNumber WishedParts::tanh_of_score() {
  const Expression scaled = apply(Op::multiply, {variable("score", Type::floating), floating(0.5)});
  return {apply(Op::tanh, {scaled}), 1, 0.5, false};
}

TrackedNumber plus(const TrackedNumber& a, const TrackedNumber& b) {
  return {apply(Op::add, {a.expression, b.expression}), a.bound + b.bound, a.slope + b.slope,
          false};
}

}  // namespace tilewright::verify::fuzz
