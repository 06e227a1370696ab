#include "verify/fuzz/random_snippet.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "verify/fuzz/tracked.hpp"

namespace tilewright::verify::fuzz {
namespace {

constexpr std::int64_t kHalfOfInt = std::int64_t{1} << 29;
constexpr double kMaxBound = 80;
constexpr double kMaxSlope = 4;

bool is_wanted(const SnippetWish& wish, Factor factor, int value) {
  return (bits(wish.features, factor) >> value & 1) != 0;
}

// One snippet in the making.
class Maker {
 public:
  Maker(Spec& spec, Random& random, SnippetKind kind, const SnippetWish& wish)
      : spec_(spec), random_(random), kind_(kind), wish_(wish) {}

  SnippetTree make() {
    declare_wanted();
    Expression result = kind_ == SnippetKind::mask_mod ? whole_mask() : whole_score();
    if (wish_.is_body && statements_.empty() && below(2) == 0) declare_result(result);
    statements_.push_back({.kind = Statement::Kind::result, .value = std::move(result)});
    if (wish_.is_body && statements_.size() == 1) {
      Statement branch{.kind = Statement::Kind::branch, .value = truth(1)};
      branch.body.push_back(statements_.back());
      statements_.insert(statements_.begin(), std::move(branch));
    }
    return {.kind = kind_, .statements = std::move(statements_)};
  }

 private:
  // ---- dice

  std::int64_t below(std::int64_t count) { return random_.integer(0, count - 1); }
  bool one_in(std::int64_t count) { return below(count) == 0; }

  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }
  template <typename T>
  const T& one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<std::int64_t>(values.size())))];
  }

  // ---- buffers and scalars

  std::string new_name(const char* stem) {
    for (int i = 0;; ++i) {
      std::string name = fmt::format("{}{}", stem, i);
      if (!spec_.buffers.contains(name) && !spec_.scalars.contains(name)) return name;
    }
  }

  DType wanted_buffer_dtype() {
    std::vector<DType> dtypes;
    if (is_wanted(wish_, Factor::buffer, 1)) dtypes.push_back(DType::f32);
    if (is_wanted(wish_, Factor::buffer, 2)) dtypes.push_back(one_of({DType::f16, DType::bf16}));
    if (is_wanted(wish_, Factor::buffer, 3)) dtypes.push_back(DType::i32);
    if (is_wanted(wish_, Factor::buffer, 4)) dtypes.push_back(DType::i64);
    if (is_wanted(wish_, Factor::buffer, 5)) dtypes.push_back(one_of({DType::u8, DType::boolean}));
    return dtypes.empty() ? one_of({DType::f32, DType::i32}) : one_of(dtypes);
  }

  std::size_t wanted_rank() {
    for (int rank = 1; rank <= 4; ++rank) {
      if (is_wanted(wish_, Factor::rank, rank)) return static_cast<std::size_t>(rank);
    }
    return static_cast<std::size_t>(1 + below(2));
  }

  // Few of a buffer's dimensions are lengths, or it would fill the memory.
  std::vector<BufferDim> random_dims(std::size_t rank) {
    std::vector<BufferDim> dims;
    std::size_t lengths_left = rank <= 2 ? 2 : 1;
    for (std::size_t d = 0; d < rank; ++d) {
      if (d == 0 && is_wanted(wish_, Factor::buffer_sharing, 1)) {
        dims.emplace_back(one_of({NamedDim::batch, NamedDim::num_q_heads}));
      } else if (lengths_left > 0 && below(10) < 6) {
        --lengths_left;
        dims.push_back(random_length());
      } else {
        dims.push_back(random_short_dim());
      }
    }
    return dims;
  }

  BufferDim random_length() {
    switch (below(6)) {
      case 0:
      case 1:
        return NamedDim::q_len;
      case 2:
        return FreeDim{};
      default:
        return NamedDim::kv_len;
    }
  }

  // A mask that heads and batches share reads nothing of theirs.
  BufferDim random_short_dim() {
    switch (is_wanted(wish_, Factor::mask_scope, 1) ? 3 : below(4)) {
      case 0:
        return NamedDim::batch;
      case 1:
        return NamedDim::num_q_heads;
      case 2:
        return NamedDim::num_kv_heads;
      default:
        return std::int64_t{1} << below(5);
    }
  }

  static std::array<double, 2> range_of(DType dtype, Random& random) {
    switch (dtype) {
      case DType::f32:
      case DType::f16:
      case DType::bf16:
        return {-1.5, 1.5};
      case DType::i32:
        return random.integer(0, 1) == 0 ? std::array<double, 2>{0, 7}
                                         : std::array<double, 2>{-100, 100};
      case DType::i64:
        return {-1000, 1000};
      case DType::u8:
        return {0, 9};
      case DType::boolean:
        return {0, 1};
    }
    return {0, 1};
  }

  std::string declare_buffer(DType dtype, std::size_t rank) {
    const std::string name = new_name(is_floating(dtype) ? "bias" : "table");
    BufferSpec buffer{
        .dtype = dtype, .shape = random_dims(rank), .range = range_of(dtype, random_)};
    const bool may_trust = is_wanted(wish_, Factor::bounds, 2);
    if (may_trust) buffer.bounds = Bounds::trusted;
    buffer.sorted = one_in(3);
    spec_.buffers.emplace(name, std::move(buffer));
    return name;
  }

  // What the wish asks for, as far as neither snippet has declared it yet.
  void declare_wanted() {
    if (bits(wish_.features, Factor::buffer) > 1 && spec_.buffers.empty()) {
      declare_buffer(wanted_buffer_dtype(), wanted_rank());
    }
    if (is_wanted(wish_, Factor::scalar, 1)) declare_scalar(DType::f32);
    if (is_wanted(wish_, Factor::scalar, 2)) declare_scalar(DType::i32);
  }

  std::string declare_scalar(DType dtype) {
    for (const auto& [name, scalar] : spec_.scalars) {
      if (scalar.dtype == dtype) return name;
    }
    const std::string name = new_name(dtype == DType::f32 ? "gain" : "width");
    ScalarSpec scalar{.dtype = dtype};
    if (one_in(2)) scalar.default_value = dtype == DType::f32 ? 1.25 : 7;
    spec_.scalars.emplace(name, scalar);
    return name;
  }

  std::vector<std::string> buffers(bool floating) const {
    std::vector<std::string> names;
    for (const auto& [name, buffer] : spec_.buffers) {
      if (is_floating(buffer.dtype) == floating) names.push_back(name);
    }
    return names;
  }

  std::optional<std::string> scalar(DType dtype) const {
    for (const auto& [name, scalar] : spec_.scalars) {
      if (scalar.dtype == dtype) return name;
    }
    return std::nullopt;
  }

  // ---- indices

  Expression last_of(const std::string& buffer, std::size_t dim) {
    Expression size{.op = Op::size, .integer = static_cast<std::int64_t>(dim), .name = buffer};
    return apply(Op::subtract, {std::move(size), integer(1)});
  }

  // Inside the dimension of a buffer whatever the call.
  Expression index_for(const std::string& buffer, std::size_t dim, int depth) {
    const BufferDim& declared = spec_.buffers.at(buffer).shape[dim];
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
    return apply(Op::clamp,
                 {integer_value(depth - 1).expression, integer(0), last_of(buffer, dim)});
  }

  Expression index_value(const char* usual, int depth) {
    return one_in(3) && depth > 0 ? integer_value(depth - 1).expression : variable(usual);
  }

  Expression read_of(const std::string& buffer, Type type, int depth) {
    std::vector<Expression> indices;
    for (std::size_t d = 0; d < spec_.buffers.at(buffer).shape.size(); ++d) {
      indices.push_back(index_for(buffer, d, depth));
    }
    return read(buffer, type, std::move(indices));
  }

  // ---- integers

  TrackedInteger integer_read(const std::string& buffer, int depth) {
    const std::array<double, 2> range = *spec_.buffers.at(buffer).range;
    return {read_of(buffer, Type::integer, depth), static_cast<std::int64_t>(range[0]),
            static_cast<std::int64_t>(range[1])};
  }

  TrackedInteger constant() {
    const std::int64_t value = one_in(3) ? below(500) : below(20);
    return one_in(5) ? TrackedInteger{integer(-value), -value, -value}
                     : TrackedInteger{integer(value), value, value};
  }

  TrackedInteger index_or_length() {
    const std::int64_t low = wish_.no_offsets ? 0 : -kMaxIndex;
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

  TrackedInteger index_of_mask_or_score() {
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

  TrackedInteger integer_leaf(int depth) {
    if (!integers_.empty() && one_in(3)) return one_of(integers_);
    switch (below(8)) {
      case 0:
        return constant();
      case 1:
        if (const auto name = scalar(DType::i32)) return {variable(*name), 1, kMaxIntegerScalar};
        return constant();
      case 2:
      case 3: {
        const std::vector<std::string> names = buffers(false);
        if (!names.empty() && depth > 0) return integer_read(one_of(names), depth);
        return index_of_mask_or_score();
      }
      default:
        return index_of_mask_or_score();
    }
  }

  TrackedInteger limited(const TrackedInteger& x, std::int64_t limit) {
    return x.bound() <= limit ? x : remainder(x, limit);
  }

  TrackedInteger integer_value(int depth) {
    if (depth <= 0 || one_in(4)) return integer_leaf(depth);
    const TrackedInteger a = integer_value(depth - 1);
    switch (below(18)) {
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
        return choose(Op::conditional, truth(depth - 1), a, integer_value(depth - 1));
      default:
        return {apply(Op::negate, {a.expression}), -a.greatest, -a.least};
    }
  }

  TrackedInteger quotient(const TrackedInteger& a, int depth) {
    if (one_in(3)) {
      const TrackedInteger b = integer_value(depth - 1);
      return {apply(Op::divide, {a.expression, apply(Op::maximum, {integer(1), b.expression})}),
              -a.bound(), a.bound()};
    }
    const std::int64_t divisor = one_of<std::int64_t>({2, 3, 7, 16, 100, 128, -3});
    return {apply(Op::divide, {a.expression, integer(divisor)}),
            divisor > 0 && a.least >= 0 ? 0 : -a.bound(), a.bound()};
  }

  TrackedInteger remainder_of(const TrackedInteger& a, int depth) {
    if (!one_in(3)) return remainder(a, 2 + below(one_in(2) ? 7 : 200));
    const TrackedInteger b = absolute(limited(integer_value(depth - 1), kHalfOfInt));
    const TrackedInteger divisor = add({integer(1), 1, 1}, b);
    return {apply(Op::remainder, {a.expression, divisor.expression}), -a.bound(), a.bound()};
  }

  TrackedInteger shifted(const TrackedInteger& a) {
    if (one_in(2)) {
      return {apply(Op::shift_right, {a.expression, integer(below(7))}), -a.bound() - 1, a.bound()};
    }
    // Before C++20 only what is not negative may be shifted to the left, and the checked reading
    // says so.
    const std::int64_t distance = below(5);
    const TrackedInteger b = limited(absolute(a), kHalfOfInt >> 5);
    return {apply(Op::shift_left, {b.expression, integer(distance)}), 0, b.greatest << distance};
  }

  // The bits of a negative number reach up to a power of two above its size.
  TrackedInteger bitwise(const TrackedInteger& a, const TrackedInteger& b) {
    const std::int64_t bound = 2 * std::max(a.bound(), b.bound()) + 2;
    return {apply(one_of({Op::bit_and, Op::bit_or, Op::bit_xor}), {a.expression, b.expression}),
            -bound, bound};
  }

  // ---- truths

  Op comparison() {
    return one_of({Op::less, Op::less_equal, Op::greater, Op::greater_equal, Op::greater_equal,
                   Op::less, Op::equal, Op::not_equal});
  }

  Expression known_mask() {
    const Expression q = variable("q_idx");
    const Expression kv = variable("kv_idx");
    const Expression distance = apply(Op::subtract, {q, kv});
    const Expression causal = apply(Op::greater_equal, {q, kv});
    const std::int64_t width = 1 + below(100);
    const auto width_scalar = scalar(DType::i32);
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

  Expression integer_comparison(int depth) {
    const TrackedInteger a = integer_value(depth);
    TrackedInteger b = integer_value(depth);
    // Equal by chance is rare; of small remainders it is not.
    const Op op = comparison();
    if ((op == Op::equal || op == Op::not_equal) && one_in(2)) {
      return apply(op, {remainder(a, 3).expression, integer(below(3))});
    }
    return apply(op, {a.expression, b.expression});
  }

  Expression exact_comparison(int depth) {
    return apply(one_of({Op::less, Op::greater, Op::less_equal, Op::greater_equal}),
                 {exact_number(depth).expression, exact_number(depth).expression});
  }

  bool has_exact_numbers() const {
    return !buffers(true).empty() || scalar(DType::f32).has_value();
  }

  Expression truth(int depth) {
    if (!truths_.empty() && one_in(4)) return one_of(truths_);
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

  // ---- floats

  // Eighths: the same in float and in double.
  TrackedNumber dyadic() {
    const double value = static_cast<double>(random_.integer(-12, 12)) / 8;
    return {floating(value), std::fabs(value), 0, true};
  }

  TrackedNumber literal() {
    const double value = static_cast<double>(random_.integer(-150, 150)) / 100;
    return {floating(value), std::fabs(value), 0, false};
  }

  TrackedNumber floating_read(const std::string& buffer, int depth) {
    return {read_of(buffer, Type::floating, depth), 1.5, 0, true};
  }

  TrackedNumber exact_leaf(int depth) {
    const std::vector<std::string> names = buffers(true);
    const auto name = scalar(DType::f32);
    if (!names.empty() && !one_in(3)) return floating_read(one_of(names), depth);
    if (name && !one_in(4)) return {variable(*name, Type::floating), 2, 0, true};
    return dyadic();
  }

  TrackedNumber exact_number(int depth) {
    const TrackedNumber a = exact_leaf(depth);
    switch (depth > 0 ? below(8) : 7) {
      case 0:
        return {apply(Op::absolute, {a.expression}), a.bound, 0, true};
      case 1:
        return {apply(Op::negate, {a.expression}), a.bound, 0, true};
      case 2: {
        const TrackedNumber b = exact_leaf(depth);
        return {apply(one_of({Op::minimum, Op::maximum}), {a.expression, b.expression}),
                std::max(a.bound, b.bound), 0, true};
      }
      case 3:
        return {apply(one_of({Op::floor, Op::ceil}), {a.expression}), a.bound + 1, 0, true};
      default:
        return a;
    }
  }

  // A small number out of an integer: some are large, and an error of the slope grows with them.
  TrackedNumber number_of_integer(int depth) {
    TrackedInteger x = integer_value(depth - 1);
    if (x.bound() > 2 * kMaxIndex) x = remainder(x, 2 * kMaxIndex);
    const double slope = std::ldexp(1.0, -static_cast<int>(std::ceil(std::log2(static_cast<double>(
                                             std::max<std::int64_t>(x.bound(), 1)))))) *
                         static_cast<double>(1 + below(4));
    const Expression factor = floating(one_in(2) ? slope : -slope);
    const Expression product =
        one_in(2) ? apply(Op::multiply, {factor, x.expression})
                  : apply(Op::multiply, {apply(Op::to_floating, {x.expression}), factor});
    return {product, slope * static_cast<double>(x.bound()), 0, false};
  }

  TrackedNumber score() {
    if (kind_ == SnippetKind::mask_mod) return dyadic();
    return {variable("score", Type::floating), kScoreBound, 1, false};
  }

  TrackedNumber number_leaf(int depth) {
    if (!numbers_.empty() && one_in(3)) return one_of(numbers_);
    switch (below(8)) {
      case 0:
      case 1:
      case 2:
        return score();
      case 3:
        return literal();
      case 4:
        if (depth > 0) return number_of_integer(depth);
        return literal();
      default:
        return exact_leaf(depth);
    }
  }

  TrackedNumber number(int depth) {
    if (depth <= 0 || one_in(5)) return number_leaf(depth);
    const TrackedNumber value = composed_number(depth);
    if (value.bound <= kMaxBound && value.slope <= kMaxSlope) return value;
    return number_leaf(depth);
  }

  TrackedNumber composed_number(int depth) {
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return sum(number(depth - 1), number(depth - 1));
      case 4:
      case 5:
      case 6:
        return product(number(depth - 1), number(depth - 1));
      case 7:
        return ratio(number(depth - 1), depth);
      case 8:
      case 9:
      case 10:
        return of_function(number(depth - 1));
      case 11: {
        const TrackedNumber a = number(depth - 1), b = number(depth - 1);
        return {apply(one_of({Op::minimum, Op::maximum}), {a.expression, b.expression}),
                std::max(a.bound, b.bound), std::max(a.slope, b.slope), a.exact && b.exact};
      }
      case 12: {
        const TrackedNumber a = number(depth - 1);
        return one_in(2)
                   ? TrackedNumber{apply(Op::absolute, {a.expression}), a.bound, a.slope, a.exact}
                   : TrackedNumber{apply(Op::negate, {a.expression}), a.bound, a.slope, a.exact};
      }
      case 13: {
        const double limit = static_cast<double>(1 + below(40));
        const TrackedNumber a = number(depth - 1);
        return {apply(Op::clamp, {a.expression, floating(-limit), floating(limit)}), limit, a.slope,
                a.exact};
      }
      case 14:
        return chosen(Op::select, depth);
      default:
        return chosen(Op::conditional, depth);
    }
  }

  TrackedNumber chosen(Op op, int depth) {
    const TrackedNumber a = number(depth - 1), b = number(depth - 1);
    return {apply(op, {truth(depth - 1), a.expression, b.expression}), std::max(a.bound, b.bound),
            std::max(a.slope, b.slope), a.exact && b.exact};
  }

  TrackedNumber sum(const TrackedNumber& a, const TrackedNumber& b) {
    return {apply(one_of({Op::add, Op::subtract}), {a.expression, b.expression}), a.bound + b.bound,
            a.slope + b.slope, false};
  }

  TrackedNumber product(const TrackedNumber& a, const TrackedNumber& b) {
    return {apply(Op::multiply, {a.expression, b.expression}), a.bound * b.bound,
            a.bound * b.slope + b.bound * a.slope, false};
  }

  // By what is at least a half and does not depend on the score.
  TrackedNumber ratio(const TrackedNumber& a, int depth) {
    const TrackedNumber b = exact_number(depth - 1);
    const Expression divisor = apply(Op::add, {apply(Op::absolute, {b.expression}), floating(0.5)});
    return {apply(Op::divide, {a.expression, divisor}), 2 * a.bound, 2 * a.slope, false};
  }

  // Arguments are kept to where the function is defined and not steep.
  TrackedNumber of_function(const TrackedNumber& a) {
    const Expression size = apply(Op::absolute, {a.expression});
    switch (below(11)) {
      case 0:
      case 1:
        return {apply(Op::tanh, {a.expression}), 1, a.slope, false};
      case 2:
        return {apply(Op::exp, {apply(Op::minimum, {a.expression, floating(1)})}), 2.72,
                2.72 * a.slope, false};
      case 3:
        return {apply(Op::exp, {apply(Op::negate, {size})}), 1, a.slope, false};
      case 4:
        return {apply(Op::exp2, {apply(Op::minimum, {a.expression, floating(1.5)})}), 2.83,
                1.97 * a.slope, false};
      case 5:
        return {apply(Op::log, {apply(Op::add, {size, floating(0.5)})}),
                std::log(a.bound + 1) + 0.7, 2 * a.slope, false};
      case 6:
        return {apply(Op::log2, {apply(Op::add, {floating(1), size})}), std::log2(a.bound + 1),
                1.45 * a.slope, false};
      case 7:
        return {apply(Op::sqrt, {apply(Op::add, {size, floating(0.25)})}),
                std::sqrt(a.bound + 0.25), a.slope, false};
      case 8:
        return {apply(Op::rsqrt, {apply(Op::add, {floating(1), size})}), 1, a.slope, false};
      case 9:
        return {apply(one_of({Op::sin, Op::cos}), {a.expression}), 1, a.slope, false};
      default: {
        const TrackedNumber b = exact_number(1);
        return sum(a, {apply(one_of({Op::floor, Op::ceil}), {b.expression}), b.bound + 1, 0, true});
      }
    }
  }

  // ---- statements

  std::string local_name() { return fmt::format("x{}", locals_++); }

  void declare_result(Expression& result) {
    const std::string name = local_name();
    const Type type = result.type;
    statements_.push_back(
        {.kind = Statement::Kind::declare, .name = name, .value = std::move(result)});
    result = variable(name, type);
  }

  void declare_local() {
    const std::string name = local_name();
    Statement statement{.kind = Statement::Kind::declare, .name = name};
    const std::int64_t kind = below(kind_ == SnippetKind::mask_mod ? 2 : 4);
    if (kind == 0) {
      TrackedInteger value = integer_value(2);
      statement.value = std::move(value.expression);
      value.expression = variable(name);
      integers_.push_back(std::move(value));
    } else if (kind == 1) {
      statement.value = truth(2);
      truths_.push_back(variable(name, Type::truth));
    } else {
      TrackedNumber value = number(2);
      statement.value = std::move(value.expression);
      value.expression = variable(name, Type::floating);
      numbers_.push_back(std::move(value));
    }
    statements_.push_back(std::move(statement));
  }

  // int x = a; if (condition) { x = b; } else { x = c; }
  void assign_local() {
    const std::string name = local_name();
    Statement declaration{.kind = Statement::Kind::declare, .name = name};
    Statement first{.kind = Statement::Kind::assign, .name = name};
    Statement second = first;
    if (kind_ == SnippetKind::mask_mod || one_in(3)) {
      TrackedInteger a = integer_value(1), b = integer_value(1), c = integer_value(1);
      integers_.push_back({variable(name), std::min({a.least, b.least, c.least}),
                           std::max({a.greatest, b.greatest, c.greatest})});
      declaration.value = std::move(a.expression);
      first.value = std::move(b.expression);
      second.value = std::move(c.expression);
    } else {
      // A literal alone would make it an int in nobody's eyes, but keep it a float for sure.
      TrackedNumber a = number(1), b = number(1), c = number(1);
      numbers_.push_back({variable(name, Type::floating), std::max({a.bound, b.bound, c.bound}),
                          std::max({a.slope, b.slope, c.slope}), false});
      declaration.value = std::move(a.expression);
      first.value = std::move(b.expression);
      second.value = std::move(c.expression);
    }
    Statement branch{.kind = Statement::Kind::branch, .value = truth(1)};
    branch.body.push_back(std::move(first));
    if (one_in(2)) branch.otherwise.push_back(std::move(second));
    statements_.push_back(std::move(declaration));
    statements_.push_back(std::move(branch));
  }

  void declare_lambda() {
    const std::string name = fmt::format("f{}", locals_++);
    const std::string parameter = local_name();
    Statement lambda{.kind = Statement::Kind::lambda, .name = name};
    if (kind_ == SnippetKind::mask_mod) {
      const TrackedInteger argument = limited(integer_value(1), 1000);
      const TrackedInteger value =
          with_integer({variable(parameter), argument.least, argument.greatest});
      lambda.parameters = {{parameter, Type::integer}};
      lambda.value = value.expression;
      integers_.push_back(
          {call(name, Type::integer, argument.expression), value.least, value.greatest});
    } else {
      const TrackedNumber argument = number(1);
      TrackedNumber value =
          with_number({variable(parameter, Type::floating), argument.bound, argument.slope, false});
      lambda.parameters = {{parameter, Type::floating}};
      lambda.value = std::move(value.expression);
      value.expression = call(name, Type::floating, argument.expression);
      numbers_.push_back(std::move(value));
    }
    statements_.push_back(std::move(lambda));
  }

  static Expression call(const std::string& name, Type type, const Expression& argument) {
    return {.op = Op::call, .type = type, .name = name, .operands = {argument}};
  }

  TrackedInteger with_integer(const TrackedInteger& parameter) {
    integers_.push_back(parameter);
    TrackedInteger value = add(limited(integer_value(1), kHalfOfInt), parameter);
    integers_.pop_back();
    return value;
  }

  TrackedNumber with_number(const TrackedNumber& parameter) {
    numbers_.push_back(parameter);
    const TrackedNumber value = sum(product(parameter, dyadic_below_one()), number(1));
    numbers_.pop_back();
    return value.slope <= kMaxSlope && value.bound <= kMaxBound
               ? value
               : product(parameter, dyadic_below_one());
  }

  TrackedNumber dyadic_below_one() {
    const double value = static_cast<double>(random_.integer(1, 8)) / 8;
    return {floating(value), value, 0, true};
  }

  void return_early() {
    Statement branch{.kind = Statement::Kind::branch, .value = truth(2)};
    Expression value = kind_ == SnippetKind::mask_mod
                           ? (one_in(2) ? tilewright::verify::fuzz::truth(one_in(2)) : truth(1))
                           : (one_in(4) ? minus_infinity() : number(1).expression);
    if (value.type == Type::integer) value = apply(Op::to_floating, {std::move(value)});
    branch.body.push_back({.kind = Statement::Kind::result, .value = std::move(value)});
    statements_.push_back(std::move(branch));
  }

  static Expression minus_infinity() { return floating(-std::numeric_limits<double>::infinity()); }

  // ---- the whole

  void add_statements() {
    if (!wish_.is_body) return;
    if (is_wanted(wish_, Factor::local, 1) || one_in(3)) declare_local();
    if (is_wanted(wish_, Factor::local, 2) || one_in(6)) assign_local();
    if (is_wanted(wish_, Factor::local, 3) || one_in(6)) declare_lambda();
    if (is_wanted(wish_, Factor::choice, 3) || one_in(5)) return_early();
  }

  Expression whole_mask() {
    add_statements();
    std::vector<Expression> parts;
    parts.push_back(one_in(2) ? known_mask() : truth(2 + static_cast<int>(below(2))));
    for (Expression& part : wanted_truths()) parts.push_back(std::move(part));
    Expression mask = std::move(parts.front());
    for (std::size_t i = 1; i < parts.size(); ++i) {
      mask = apply(one_in(2) ? Op::logical_and : Op::logical_or,
                   {std::move(mask), std::move(parts[i])});
    }
    return mask;
  }

  // A truth for each wish that nothing else would answer.
  std::vector<Expression> wanted_truths() {
    std::vector<Expression> parts;
    const auto compare = [&](const TrackedInteger& x, std::int64_t limit) {
      parts.push_back(apply(comparison(), {x.expression, integer(below(limit))}));
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
      const std::vector<std::string> names = buffers(is_floating_buffer);
      if (names.empty() || bits(wish_.features, Factor::buffer) <= 1) continue;
      if (is_floating_buffer) {
        parts.push_back(
            apply(Op::less, {floating_read(one_of(names), 1).expression, floating(0.5)}));
      } else {
        compare(integer_read(one_of(names), 1), 6);
      }
    }
    if (const auto name = scalar(DType::i32); name && is_wanted(wish_, Factor::scalar, 2)) {
      parts.push_back(apply(Op::less_equal, {absolute(difference()).expression, variable(*name)}));
    }
    if (const auto name = scalar(DType::f32); name && is_wanted(wish_, Factor::scalar, 1)) {
      parts.push_back(
          apply(Op::less, {exact_number(1).expression, variable(*name, Type::floating)}));
    }
    if (is_wanted(wish_, Factor::integers, 1)) compare(difference(), 50);
    if (is_wanted(wish_, Factor::integers, 2)) compare(remainder_of(difference(), 1), 20);
    if (is_wanted(wish_, Factor::integers, 3)) compare(bitwise(difference(), constant()), 50);
    if (is_wanted(wish_, Factor::functions, 1)) compare(absolute(difference()), 60);
    if (is_wanted(wish_, Factor::choice, 1)) {
      compare(choose(Op::select, truth(1), difference(), constant()), 40);
    }
    if (is_wanted(wish_, Factor::choice, 2)) {
      parts.push_back(apply(Op::conditional, {truth(1), known_mask(), truth(1)}));
    }
    use_locals([&](const TrackedInteger& x) { compare(x, 100); },
               [&](const Expression& x) { parts.push_back(x); }, [](const TrackedNumber&) {});
    return parts;
  }

  TrackedInteger difference() {
    return subtract({variable("q_idx"), -kMaxIndex, kMaxIndex},
                    {variable("kv_idx"), -kMaxIndex, kMaxIndex});
  }

  // A local variable that nothing reads tests little.
  template <typename UseInteger, typename UseTruth, typename UseNumber>
  void use_locals(const UseInteger& use_integer, const UseTruth& use_truth,
                  const UseNumber& use_number) {
    if (!integers_.empty()) use_integer(integers_.back());
    if (!truths_.empty()) use_truth(truths_.back());
    if (!numbers_.empty()) use_number(numbers_.back());
  }

  Expression whole_score() {
    add_statements();
    TrackedNumber result = number(3 + static_cast<int>(below(2)));
    if (!result.depends_on_score() && !one_in(8)) result = plus(result, score());
    for (const TrackedNumber& term : wanted_terms()) result = plus(result, term);
    if (one_in(8)) {
      return apply(one_of({Op::select, Op::conditional}),
                   {truth(2), result.expression, minus_infinity()});
    }
    return result.expression;
  }

  static TrackedNumber plus(const TrackedNumber& a, const TrackedNumber& b) {
    return {apply(Op::add, {a.expression, b.expression}), a.bound + b.bound, a.slope + b.slope,
            false};
  }

  // A small term for each wish.
  std::vector<TrackedNumber> wanted_terms() {
    std::vector<TrackedNumber> terms;
    const auto add_integer = [&](TrackedInteger x) {
      x = limited(x, 512);
      terms.push_back({apply(Op::multiply, {floating(0.015625), x.expression}),
                       static_cast<double>(x.bound()) / 64, 0, false});
    };
    if (bits(wish_.features, Factor::buffer) > 1) {
      const std::vector<std::string> floats = buffers(true);
      const std::vector<std::string> ints = buffers(false);
      if (!floats.empty()) terms.push_back(floating_read(one_of(floats), 1));
      if (!ints.empty()) add_integer(integer_read(one_of(ints), 1));
    }
    if (const auto name = scalar(DType::f32); name && is_wanted(wish_, Factor::scalar, 1)) {
      terms.push_back(product({variable(*name, Type::floating), 2, 0, true}, tanh_of_score()));
    }
    if (const auto name = scalar(DType::i32); name && is_wanted(wish_, Factor::scalar, 2)) {
      add_integer({variable(*name), 1, kMaxIntegerScalar});
    }
    if (is_wanted(wish_, Factor::integers, 1)) add_integer(difference());
    if (is_wanted(wish_, Factor::integers, 2)) add_integer(remainder_of(difference(), 1));
    if (is_wanted(wish_, Factor::integers, 3)) add_integer(bitwise(difference(), constant()));
    if (is_wanted(wish_, Factor::functions, 1)) add_integer(absolute(difference()));
    if (is_wanted(wish_, Factor::functions, 2)) terms.push_back(tanh_of_score());
    if (is_wanted(wish_, Factor::functions, 3)) {
      const Expression size = apply(Op::absolute, {variable("score", Type::floating)});
      terms.push_back({apply(Op::sqrt, {apply(Op::add, {size, floating(0.25)})}), 6.4, 1, false});
    }
    if (is_wanted(wish_, Factor::choice, 1)) {
      terms.push_back(
          {apply(Op::select, {truth(1), floating(0.75), floating(-0.5)}), 0.75, 0, true});
    }
    if (is_wanted(wish_, Factor::choice, 2)) {
      add_integer(choose(Op::conditional, truth(1), difference(), constant()));
    }
    use_locals(
        [&](const TrackedInteger& x) { add_integer(x); },
        [&](const Expression& x) {
          terms.push_back({apply(Op::select, {x, floating(0.5), floating(-0.25)}), 0.5, 0, true});
        },
        [&](const TrackedNumber& x) { terms.push_back(x); });
    return terms;
  }

  TrackedNumber tanh_of_score() {
    const Expression scaled =
        apply(Op::multiply, {variable("score", Type::floating), floating(0.5)});
    return {apply(Op::tanh, {scaled}), 1, 0.5, false};
  }

  Spec& spec_;
  Random& random_;
  SnippetKind kind_;
  const SnippetWish& wish_;
  std::vector<Statement> statements_;
  int locals_ = 0;
  // In sight: local variables, and calls of lambdas.
  std::vector<TrackedInteger> integers_;
  std::vector<TrackedNumber> numbers_;
  std::vector<Expression> truths_;
};

}  // namespace

SnippetTree SnippetMaker::score_mod(const SnippetWish& wish) {
  return Maker(spec_, random_, SnippetKind::score_mod, wish).make();
}

SnippetTree SnippetMaker::mask_mod(const SnippetWish& wish) {
  return Maker(spec_, random_, SnippetKind::mask_mod, wish).make();
}

}  // namespace tilewright::verify::fuzz
