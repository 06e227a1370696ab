#pragma once

#include "kernel/language.hpp"
#include "kernel/undecided.hpp"

// The interval interpretation: one evaluation stands for all elements of a tile. An int is the interval of
// its values there, a truth is true, false or undecided, and a float is not known at all.
//
// What must hold is that nothing is proved that is not so: an interval holds every value that the
// exact interpretation computes for an element of the tile, and a truth is decided only where the exact one
// is the same for all of them. Overflow, and division by an interval that holds 0, give an interval
// that is not known, of which nothing follows. A condition that is not decided (of `if`, `?:`, a
// loop) makes the whole tile undecided, as only one of its branches is followed; `&&` and `||` are
// functions here and evaluate both sides.
//
// Unsigned integers and conversions to C++'s own integers (switch, the bounds of an array) do not
// compile; the mask is then built by evaluation alone.
//
// tw_undecided() marks the tile and returns the branch that is followed: not always the same one, or
// `while (true) { if (x > 0) break; }` would never end.

namespace tw_proved {

template <typename T>
struct tw_Interval;
struct tw_Truth;
struct tw_Real;

// The types of integers that are understood, as values of the exact interpretation have them.
template <typename T>
struct tw_IsInteger {
  static constexpr bool value = false;
};
template <>
struct tw_IsInteger<bool> {
  static constexpr bool value = true;
};
template <>
struct tw_IsInteger<signed char> {
  static constexpr bool value = true;
};
template <>
struct tw_IsInteger<char> {
  static constexpr bool value = static_cast<char>(-1) < 0;
};
template <>
struct tw_IsInteger<short> {
  static constexpr bool value = true;
};
template <>
struct tw_IsInteger<int> {
  static constexpr bool value = true;
};
template <>
struct tw_IsInteger<long> {
  static constexpr bool value = true;
};
template <>
struct tw_IsInteger<long long> {
  static constexpr bool value = true;
};

template <typename T>
struct tw_IsFloating {
  static constexpr bool value = false;
};
template <>
struct tw_IsFloating<float> {
  static constexpr bool value = true;
};
template <>
struct tw_IsFloating<double> {
  static constexpr bool value = true;
};

template <bool kWide>
struct tw_Width {
  using Type = int;
};
template <>
struct tw_Width<true> {
  using Type = long long;
};

// What an operand is: `Number` is the type that it has in arithmetic, int or long long.
template <typename T>
struct tw_Operand {
  static constexpr bool is_native = true;
  static constexpr bool is_truth = false;
  static constexpr bool is_integer = tw_IsInteger<T>::value;
  static constexpr bool is_real = tw_IsFloating<T>::value;
  using Number = typename tw_Width<(sizeof(T) > sizeof(int))>::Type;
};
// What a comparison of constants gives is a truth, too.
template <>
struct tw_Operand<bool> {
  static constexpr bool is_native = true;
  static constexpr bool is_truth = true;
  static constexpr bool is_integer = true;
  static constexpr bool is_real = false;
  using Number = int;
};
template <typename T>
struct tw_Operand<tw_Interval<T>> {
  static constexpr bool is_native = false;
  static constexpr bool is_truth = false;
  static constexpr bool is_integer = true;
  static constexpr bool is_real = false;
  using Number = T;
};
template <>
struct tw_Operand<tw_Truth> {
  static constexpr bool is_native = false;
  static constexpr bool is_truth = true;
  static constexpr bool is_integer = true;
  static constexpr bool is_real = false;
  using Number = int;
};
template <>
struct tw_Operand<tw_Real> {
  static constexpr bool is_native = false;
  static constexpr bool is_truth = false;
  static constexpr bool is_integer = false;
  static constexpr bool is_real = true;
  using Number = int;
};

// Two operands of which at least one is ours: integers both, or one of them a float.
template <typename A, typename B>
concept tw_IntegerPair = tw_Operand<A>::is_integer && tw_Operand<B>::is_integer &&
                         !(tw_Operand<A>::is_native && tw_Operand<B>::is_native);
template <typename A, typename B>
concept tw_RealPair = !tw_IntegerPair<A, B> &&
                      (tw_Operand<A>::is_integer || tw_Operand<A>::is_real) &&
                      (tw_Operand<B>::is_integer || tw_Operand<B>::is_real) &&
                      !(tw_Operand<A>::is_native && tw_Operand<B>::is_native);
template <typename A, typename B>
concept tw_Pair = tw_IntegerPair<A, B> || tw_RealPair<A, B>;

template <typename A, typename B>
using tw_Common = typename tw_Width<(sizeof(typename tw_Operand<A>::Number) > sizeof(int) ||
                                     sizeof(typename tw_Operand<B>::Number) > sizeof(int))>::Type;

// A type that holds the sum, difference and product of any two values of T.
template <typename T>
struct tw_Wider {
  using Type = long long;
};
template <>
struct tw_Wider<long long> {
  using Type = __int128;
};

template <typename T>
struct tw_Limits {
  static constexpr T kMax = static_cast<T>(~(1ull << 63) >> (64 - 8 * sizeof(T)));
  static constexpr T kMin = -kMax - 1;
};

template <typename T>
TW_INLINE constexpr T tw_lesser(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
TW_INLINE constexpr T tw_greater(T a, T b) {
  return a < b ? b : a;
}

// True, false, or one of them for some elements of the tile and the other for others.
struct tw_Truth {
  bool may_hold;
  bool may_fail;

  TW_MEMBER constexpr tw_Truth() : may_hold(false), may_fail(true) {}
  TW_MEMBER constexpr tw_Truth(bool value) : may_hold(value), may_fail(!value) {}
  TW_MEMBER constexpr tw_Truth(bool hold, bool fail) : may_hold(hold), may_fail(fail) {}
  template <typename T>
    requires(tw_IsInteger<T>::value || tw_IsFloating<T>::value)
  TW_MEMBER constexpr tw_Truth(T value) : tw_Truth(value != 0) {}
  template <typename T>
  TW_MEMBER constexpr tw_Truth(tw_Interval<T> x);
  TW_MEMBER constexpr tw_Truth(tw_Real);

  TW_MEMBER constexpr bool is_decided() const { return may_hold != may_fail; }
  // A condition.
  TW_MEMBER constexpr explicit operator bool() const {
    return is_decided() ? may_hold : tw_undecided();
  }
};

TW_INLINE constexpr tw_Truth tw_either() {
  return {true, true};
}

// Nothing is known of a float, and nothing follows from it.
struct tw_Real {
  TW_MEMBER constexpr tw_Real() {}
  template <typename T>
    requires(tw_Operand<T>::is_integer || tw_Operand<T>::is_real)
  TW_MEMBER constexpr tw_Real(T) {}
  TW_MEMBER explicit operator bool() const { return tw_undecided(); }
};

// The integers from lo to hi; where it is not known, any value at all.
template <typename T>
struct tw_Interval {
  T lo;
  T hi;
  bool is_known;

  TW_MEMBER constexpr tw_Interval() : lo(0), hi(0), is_known(false) {}
  TW_MEMBER constexpr tw_Interval(T low, T high, bool known) : lo(low), hi(high), is_known(known) {}
  TW_MEMBER constexpr tw_Interval(tw_Truth x)
      : lo(x.may_fail ? 0 : 1), hi(x.may_hold ? 1 : 0), is_known(true) {}
  TW_MEMBER constexpr tw_Interval(tw_Real) : tw_Interval() {}
  // A value that does not fit is not known, though C++ would wrap it.
  template <typename U>
    requires(tw_IsInteger<U>::value)
  TW_MEMBER constexpr tw_Interval(U value)
      : tw_Interval(of<typename tw_Operand<U>::Number>(value, value, true)) {}
  template <typename U>
    requires(tw_IsFloating<U>::value)
  TW_MEMBER constexpr tw_Interval(U) : tw_Interval() {}
  template <typename U>
    requires(sizeof(U) != sizeof(T))
  TW_MEMBER constexpr tw_Interval(tw_Interval<U> x) : tw_Interval(of(x.lo, x.hi, x.is_known)) {}

  // Bounds of a wider type.
  template <typename Wide>
  TW_MEMBER static constexpr tw_Interval of(Wide low, Wide high, bool known) {
    const bool fits = known && low >= tw_Limits<T>::kMin && high <= tw_Limits<T>::kMax;
    return fits ? tw_Interval(static_cast<T>(low), static_cast<T>(high), true) : tw_Interval();
  }

  TW_MEMBER constexpr bool is_one() const { return is_known && lo == hi; }
  TW_MEMBER constexpr explicit operator bool() const { return static_cast<bool>(tw_Truth(*this)); }
};

template <typename T>
constexpr tw_Truth::tw_Truth(tw_Interval<T> x)
    : may_hold(!x.is_known || x.lo != 0 || x.hi != 0),
      may_fail(!x.is_known || (x.lo <= 0 && x.hi >= 0)) {}
constexpr tw_Truth::tw_Truth(tw_Real) : may_hold(true), may_fail(true) {}

// An operand as an interval of T.
template <typename T, typename A>
TW_INLINE constexpr tw_Interval<T> tw_as(A x) {
  return tw_Interval<T>(x);
}

// ---- integers ----

namespace tw_interval {

template <typename T>
TW_INLINE constexpr tw_Interval<T> add(tw_Interval<T> a, tw_Interval<T> b) {
  using Wide = typename tw_Wider<T>::Type;
  return tw_Interval<T>::of(Wide{a.lo} + b.lo, Wide{a.hi} + b.hi, a.is_known && b.is_known);
}

template <typename T>
TW_INLINE constexpr tw_Interval<T> subtract(tw_Interval<T> a, tw_Interval<T> b) {
  using Wide = typename tw_Wider<T>::Type;
  return tw_Interval<T>::of(Wide{a.lo} - b.hi, Wide{a.hi} - b.lo, a.is_known && b.is_known);
}

// The hull of four values, one for each pair of bounds.
template <typename T, typename Wide>
TW_INLINE constexpr tw_Interval<T> hull(Wide p, Wide q, Wide r, Wide s, bool known) {
  return tw_Interval<T>::of(tw_lesser(tw_lesser(p, q), tw_lesser(r, s)),
                            tw_greater(tw_greater(p, q), tw_greater(r, s)), known);
}

template <typename T>
TW_INLINE constexpr tw_Interval<T> multiply(tw_Interval<T> a, tw_Interval<T> b) {
  using Wide = typename tw_Wider<T>::Type;
  return hull<T>(Wide{a.lo} * b.lo, Wide{a.lo} * b.hi, Wide{a.hi} * b.lo, Wide{a.hi} * b.hi,
                 a.is_known && b.is_known);
}

template <typename T>
TW_INLINE constexpr bool may_divide(tw_Interval<T> a, tw_Interval<T> b) {
  const bool holds_zero = b.lo <= 0 && b.hi >= 0;
  const bool may_overflow = a.lo == tw_Limits<T>::kMin && b.lo <= -1 && b.hi >= -1;
  return a.is_known && b.is_known && !holds_zero && !may_overflow;
}

// Truncates: for a divisor of one sign the quotient is monotone in both operands.
template <typename T>
TW_INLINE constexpr tw_Interval<T> divide(tw_Interval<T> a, tw_Interval<T> b) {
  if (!may_divide(a, b)) return {};
  return hull<T, T>(a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi, true);
}

// Takes the sign of the dividend, and is smaller than the divisor.
template <typename T>
TW_INLINE constexpr tw_Interval<T> remainder(tw_Interval<T> a, tw_Interval<T> b) {
  if (!may_divide(a, b)) return {};
  // One multiple of one divisor below all of a: the remainder rises with it.
  if (b.lo == b.hi && a.lo / b.lo == a.hi / b.lo && (a.lo >= 0) == (a.hi >= 0)) {
    return {a.lo % b.lo, a.hi % b.lo, true};
  }
  // -1 - x, as -x may not exist.
  const T greatest = b.lo > 0 ? b.hi - 1 : -1 - b.lo;
  const T least = b.lo > 0 ? b.lo - 1 : -1 - b.hi;
  if (a.lo >= -least && a.hi <= least) return a;
  return {a.lo < 0 ? tw_greater(a.lo, -greatest) : T{0},
          a.hi > 0 ? tw_lesser(a.hi, greatest) : T{0}, true};
}

// Rounds down: monotone, too.
template <typename T>
TW_INLINE constexpr T exact_floor_div(T a, T b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
template <typename T>
TW_INLINE constexpr T exact_floor_mod(T a, T b) {
  const T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

template <typename T>
TW_INLINE constexpr tw_Interval<T> floor_divide(tw_Interval<T> a, tw_Interval<T> b) {
  if (!may_divide(a, b)) return {};
  return hull<T, T>(exact_floor_div(a.lo, b.lo), exact_floor_div(a.lo, b.hi),
                    exact_floor_div(a.hi, b.lo), exact_floor_div(a.hi, b.hi), true);
}

// Takes the sign of the divisor, and is smaller.
template <typename T>
TW_INLINE constexpr tw_Interval<T> floor_remainder(tw_Interval<T> a, tw_Interval<T> b) {
  if (!may_divide(a, b)) return {};
  // One multiple of one divisor below all of a: the remainder rises with it.
  if (b.lo == b.hi && exact_floor_div(a.lo, b.lo) == exact_floor_div(a.hi, b.lo)) {
    return {exact_floor_mod(a.lo, b.lo), exact_floor_mod(a.hi, b.lo), true};
  }
  const bool is_inside = b.lo > 0 ? a.lo >= 0 && a.hi < b.lo : a.hi <= 0 && a.lo > b.hi;
  if (is_inside) return a;
  if (b.lo > 0) return {0, a.lo >= 0 ? tw_lesser(a.hi, b.hi - 1) : b.hi - 1, true};
  return {a.hi <= 0 ? tw_greater(a.lo, b.lo + 1) : b.lo + 1, 0, true};
}

template <typename T>
TW_INLINE constexpr T exact_sign(T a) {
  return (a > 0) - (a < 0);
}

template <typename T>
TW_INLINE constexpr tw_Interval<T> negate(tw_Interval<T> a) {
  return subtract(tw_Interval<T>(0, 0, true), a);
}

template <typename T>
TW_INLINE constexpr tw_Interval<T> complement(tw_Interval<T> a) {
  return {~a.hi, ~a.lo, a.is_known};
}

template <typename T>
TW_INLINE constexpr tw_Interval<T> absolute(tw_Interval<T> a) {
  if (!a.is_known || a.lo == tw_Limits<T>::kMin) return {};
  if (a.lo >= 0) return a;
  return a.hi <= 0 ? tw_Interval<T>(-a.hi, -a.lo, true)
                   : tw_Interval<T>(0, tw_greater(-a.lo, a.hi), true);
}

template <typename T>
TW_INLINE constexpr tw_Interval<T> least(tw_Interval<T> a, tw_Interval<T> b) {
  return {tw_lesser(a.lo, b.lo), tw_lesser(a.hi, b.hi), a.is_known && b.is_known};
}

template <typename T>
TW_INLINE constexpr tw_Interval<T> greatest(tw_Interval<T> a, tw_Interval<T> b) {
  return {tw_greater(a.lo, b.lo), tw_greater(a.hi, b.hi), a.is_known && b.is_known};
}

// Distances are those that C++ allows.
template <typename T, typename D>
TW_INLINE constexpr bool may_shift(tw_Interval<T> a, tw_Interval<D> distance) {
  return a.is_known && distance.is_known && distance.lo >= 0 &&
         distance.hi < static_cast<D>(8 * sizeof(T));
}

template <typename T, typename D>
TW_INLINE constexpr tw_Interval<T> shift_left(tw_Interval<T> a, tw_Interval<D> distance) {
  if (!may_shift(a, distance)) return {};
  using Wide = typename tw_Wider<T>::Type;
  const Wide least = Wide{1} << distance.lo;
  const Wide greatest = Wide{1} << distance.hi;
  return hull<T>(a.lo * least, a.lo * greatest, a.hi * least, a.hi * greatest, true);
}

template <typename T, typename D>
TW_INLINE constexpr tw_Interval<T> shift_right(tw_Interval<T> a, tw_Interval<D> distance) {
  if (!may_shift(a, distance)) return {};
  return hull<T, T>(a.lo >> distance.lo, a.lo >> distance.hi, a.hi >> distance.lo,
                    a.hi >> distance.hi, true);
}

// The bits that all values of an interval share: those above the highest in which its bounds
// differ.
template <typename T>
struct Bits {
  T ones;     // set in all values
  T unknown;  // set in some, or not known
};

template <typename T>
TW_INLINE constexpr Bits<T> bits_of(tw_Interval<T> a) {
  unsigned long long differ = static_cast<unsigned long long>(a.lo ^ a.hi);
  for (int distance = 1; distance < 64; distance *= 2) differ |= differ >> distance;
  const T unknown = static_cast<T>(differ);
  return {static_cast<T>(a.lo & ~unknown), unknown};
}

// From the least to the greatest value with these bits; the sign counts downwards.
template <typename T>
TW_INLINE constexpr tw_Interval<T> from_bits(T ones, T unknown) {
  return {static_cast<T>(ones | (unknown & tw_Limits<T>::kMin)),
          static_cast<T>(ones | (unknown & tw_Limits<T>::kMax)), true};
}

template <typename T>
TW_INLINE constexpr tw_Interval<T> bit_and(tw_Interval<T> a, tw_Interval<T> b) {
  if (!a.is_known || !b.is_known) return {};
  const Bits<T> p = bits_of(a), q = bits_of(b);
  const T unknown = (p.unknown | q.unknown) & (p.ones | p.unknown) & (q.ones | q.unknown);
  tw_Interval<T> both = from_bits<T>(p.ones & q.ones, unknown);
  if (a.lo >= 0) both.hi = tw_lesser(both.hi, a.hi);
  if (b.lo >= 0) both.hi = tw_lesser(both.hi, b.hi);
  return both;
}

template <typename T>
TW_INLINE constexpr tw_Interval<T> bit_or(tw_Interval<T> a, tw_Interval<T> b) {
  if (!a.is_known || !b.is_known) return {};
  const Bits<T> p = bits_of(a), q = bits_of(b);
  const T ones = p.ones | q.ones;
  tw_Interval<T> either = from_bits<T>(ones, (p.unknown | q.unknown) & ~ones);
  if (a.lo >= 0 && b.lo >= 0) either.lo = tw_greater(either.lo, tw_greater(a.lo, b.lo));
  return either;
}

template <typename T>
TW_INLINE constexpr tw_Interval<T> bit_xor(tw_Interval<T> a, tw_Interval<T> b) {
  if (!a.is_known || !b.is_known) return {};
  const Bits<T> p = bits_of(a), q = bits_of(b);
  const T unknown = p.unknown | q.unknown;
  return from_bits<T>((p.ones ^ q.ones) & ~unknown, unknown);
}

template <typename T>
TW_INLINE constexpr tw_Truth less(tw_Interval<T> a, tw_Interval<T> b) {
  const bool known = a.is_known && b.is_known;
  return {!known || a.lo < b.hi, !known || a.hi >= b.lo};
}

template <typename T>
TW_INLINE constexpr tw_Truth equal(tw_Interval<T> a, tw_Interval<T> b) {
  const bool known = a.is_known && b.is_known;
  return {!known || (a.lo <= b.hi && b.lo <= a.hi),
          !known || a.lo != a.hi || b.lo != b.hi || a.lo != b.lo};
}

}  // namespace tw_interval

// ---- operators ----

#define TW_ARITHMETIC(op, function)                                       \
  template <typename A, typename B>                                       \
    requires(tw_IntegerPair<A, B>)                                        \
  TW_INLINE constexpr auto operator op(A a, B b) {                        \
    using T = tw_Common<A, B>;                                            \
    return tw_interval::function(tw_as<T>(a), tw_as<T>(b));               \
  }
#define TW_REAL_ARITHMETIC(op)                                            \
  template <typename A, typename B>                                       \
    requires(tw_RealPair<A, B>)                                           \
  TW_INLINE constexpr tw_Real operator op(A, B) {                         \
    return {};                                                            \
  }
#define TW_ASSIGNMENT(op)                                                 \
  template <typename T, typename B>                                       \
    requires(tw_Pair<tw_Interval<T>, B>)                                  \
  TW_INLINE constexpr tw_Interval<T>& operator op##=(tw_Interval<T>& a, B b) { \
    return a = static_cast<tw_Interval<T>>(a op b);                       \
  }
#define TW_REAL_ASSIGNMENT(op)                                            \
  template <typename B>                                                   \
    requires(tw_Pair<tw_Real, B>)                                         \
  TW_INLINE constexpr tw_Real& operator op##=(tw_Real& a, B) {            \
    return a;                                                             \
  }
TW_ARITHMETIC(+, add)
TW_ARITHMETIC(-, subtract)
TW_ARITHMETIC(*, multiply)
TW_ARITHMETIC(/, divide)
TW_ARITHMETIC(%, remainder)
TW_REAL_ARITHMETIC(+)
TW_REAL_ARITHMETIC(-)
TW_REAL_ARITHMETIC(*)
TW_REAL_ARITHMETIC(/)
TW_ASSIGNMENT(+)
TW_ASSIGNMENT(-)
TW_ASSIGNMENT(*)
TW_ASSIGNMENT(/)
TW_ASSIGNMENT(%)
TW_ASSIGNMENT(&)
TW_ASSIGNMENT(|)
TW_ASSIGNMENT(^)
TW_ASSIGNMENT(<<)
TW_ASSIGNMENT(>>)
TW_REAL_ASSIGNMENT(+)
TW_REAL_ASSIGNMENT(-)
TW_REAL_ASSIGNMENT(*)
TW_REAL_ASSIGNMENT(/)
#undef TW_ARITHMETIC
#undef TW_REAL_ARITHMETIC
#undef TW_ASSIGNMENT
#undef TW_REAL_ASSIGNMENT

// Bits of two truths are 0 or 1, and so stay a truth, though in C++ they are an int.
#define TW_BITWISE(op, function)                                          \
  template <typename A, typename B>                                       \
    requires(tw_IntegerPair<A, B>)                                        \
  TW_INLINE constexpr auto operator op(A a, B b) {                        \
    using T = tw_Common<A, B>;                                            \
    const tw_Interval<T> bits = tw_interval::function(tw_as<T>(a), tw_as<T>(b)); \
    if constexpr (tw_Operand<A>::is_truth && tw_Operand<B>::is_truth) {   \
      return tw_Truth(bits);                                              \
    } else {                                                              \
      return bits;                                                        \
    }                                                                     \
  }
TW_BITWISE(&, bit_and)
TW_BITWISE(|, bit_or)
TW_BITWISE(^, bit_xor)
#undef TW_BITWISE

// A shift has the type of what is shifted.
template <typename A, typename B>
  requires(tw_IntegerPair<A, B>)
TW_INLINE constexpr auto operator<<(A a, B distance) {
  return tw_interval::shift_left(tw_as<typename tw_Operand<A>::Number>(a),
                                 tw_as<typename tw_Operand<B>::Number>(distance));
}
template <typename A, typename B>
  requires(tw_IntegerPair<A, B>)
TW_INLINE constexpr auto operator>>(A a, B distance) {
  return tw_interval::shift_right(tw_as<typename tw_Operand<A>::Number>(a),
                                  tw_as<typename tw_Operand<B>::Number>(distance));
}

template <typename T>
TW_INLINE constexpr tw_Interval<T> operator+(tw_Interval<T> a) {
  return a;
}
template <typename T>
TW_INLINE constexpr tw_Interval<T> operator-(tw_Interval<T> a) {
  return tw_interval::negate(a);
}
template <typename T>
TW_INLINE constexpr tw_Interval<T> operator~(tw_Interval<T> a) {
  return tw_interval::complement(a);
}
TW_INLINE constexpr tw_Interval<int> operator+(tw_Truth a) {
  return a;
}
TW_INLINE constexpr tw_Interval<int> operator-(tw_Truth a) {
  return tw_interval::negate<int>(a);
}
TW_INLINE constexpr tw_Interval<int> operator~(tw_Truth a) {
  return tw_interval::complement<int>(a);
}
TW_INLINE constexpr tw_Real operator+(tw_Real) {
  return {};
}
TW_INLINE constexpr tw_Real operator-(tw_Real) {
  return {};
}

template <typename T>
TW_INLINE constexpr tw_Interval<T>& operator++(tw_Interval<T>& a) {
  return a = a + 1;
}
template <typename T>
TW_INLINE constexpr tw_Interval<T>& operator--(tw_Interval<T>& a) {
  return a = a - 1;
}
template <typename T>
TW_INLINE constexpr tw_Interval<T> operator++(tw_Interval<T>& a, int) {
  const tw_Interval<T> before = a;
  ++a;
  return before;
}
template <typename T>
TW_INLINE constexpr tw_Interval<T> operator--(tw_Interval<T>& a, int) {
  const tw_Interval<T> before = a;
  --a;
  return before;
}

TW_INLINE constexpr tw_Real& operator++(tw_Real& a) {
  return a;
}
TW_INLINE constexpr tw_Real& operator--(tw_Real& a) {
  return a;
}
TW_INLINE constexpr tw_Real operator++(tw_Real&, int) {
  return {};
}
TW_INLINE constexpr tw_Real operator--(tw_Real&, int) {
  return {};
}

// ---- truths ----

TW_INLINE constexpr tw_Truth tw_and(tw_Truth a, tw_Truth b) {
  return {a.may_hold && b.may_hold, a.may_fail || b.may_fail};
}
TW_INLINE constexpr tw_Truth tw_or(tw_Truth a, tw_Truth b) {
  return {a.may_hold || b.may_hold, a.may_fail && b.may_fail};
}
TW_INLINE constexpr tw_Truth tw_not(tw_Truth a) {
  return {a.may_fail, a.may_hold};
}

template <typename A, typename B>
  requires(tw_Pair<A, B>)
TW_INLINE constexpr tw_Truth operator&&(A a, B b) {
  return tw_and(tw_Truth(a), tw_Truth(b));
}
template <typename A, typename B>
  requires(tw_Pair<A, B>)
TW_INLINE constexpr tw_Truth operator||(A a, B b) {
  return tw_or(tw_Truth(a), tw_Truth(b));
}
template <typename A>
  requires(!tw_Operand<A>::is_native)
TW_INLINE constexpr tw_Truth operator!(A a) {
  return tw_not(tw_Truth(a));
}

template <typename B>
  requires(tw_Pair<tw_Truth, B>)
TW_INLINE constexpr tw_Truth& operator&=(tw_Truth& a, B b) {
  return a = tw_Truth(a & b);
}
template <typename B>
  requires(tw_Pair<tw_Truth, B>)
TW_INLINE constexpr tw_Truth& operator|=(tw_Truth& a, B b) {
  return a = tw_Truth(a | b);
}
template <typename B>
  requires(tw_Pair<tw_Truth, B>)
TW_INLINE constexpr tw_Truth& operator^=(tw_Truth& a, B b) {
  return a = tw_Truth(a ^ b);
}

#define TW_COMPARISON(op, truth)                                          \
  template <typename A, typename B>                                       \
    requires(tw_IntegerPair<A, B>)                                        \
  TW_INLINE constexpr tw_Truth operator op(A left, B right) {             \
    using T = tw_Common<A, B>;                                            \
    const tw_Interval<T> a = tw_as<T>(left), b = tw_as<T>(right);         \
    return truth;                                                         \
  }                                                                       \
  template <typename A, typename B>                                       \
    requires(tw_RealPair<A, B>)                                           \
  TW_INLINE constexpr tw_Truth operator op(A, B) {                        \
    return tw_either();                                                   \
  }
TW_COMPARISON(<, tw_interval::less(a, b))
TW_COMPARISON(>, tw_interval::less(b, a))
TW_COMPARISON(<=, tw_not(tw_interval::less(b, a)))
TW_COMPARISON(>=, tw_not(tw_interval::less(a, b)))
TW_COMPARISON(==, tw_interval::equal(a, b))
TW_COMPARISON(!=, tw_not(tw_interval::equal(a, b)))
#undef TW_COMPARISON

// ---- functions ----

#define TW_TWO_NUMBERS(name, function)                                    \
  template <typename A, typename B>                                       \
    requires(tw_IntegerPair<A, B>)                                        \
  TW_INLINE constexpr auto name(A a, B b) {                               \
    using T = tw_Common<A, B>;                                            \
    return tw_interval::function(tw_as<T>(a), tw_as<T>(b));               \
  }                                                                       \
  template <typename A, typename B>                                       \
    requires(tw_RealPair<A, B>)                                           \
  TW_INLINE constexpr tw_Real name(A, B) {                                \
    return {};                                                            \
  }
TW_TWO_NUMBERS(min, least)
TW_TWO_NUMBERS(max, greatest)
TW_TWO_NUMBERS(floor_div, floor_divide)
TW_TWO_NUMBERS(floor_mod, floor_remainder)
#undef TW_TWO_NUMBERS

// Of C++'s own numbers, as in every interpretation.
template <typename A, typename B>
  requires(tw_Operand<A>::is_native && tw_Operand<B>::is_native)
TW_INLINE constexpr auto min(A a, B b) {
  return b < a || a != a ? b : a;
}
template <typename A, typename B>
  requires(tw_Operand<A>::is_native && tw_Operand<B>::is_native)
TW_INLINE constexpr auto max(A a, B b) {
  return a < b || a != a ? b : a;
}

// A float among them proves nothing.
template <typename A, typename B>
  requires(tw_Operand<A>::is_native && tw_Operand<B>::is_native)
TW_INLINE constexpr auto floor_div(A a, B b) {
  using T = tw_Common<A, B>;
  if constexpr (tw_IsFloating<A>::value || tw_IsFloating<B>::value) {
    return tw_Real();
  } else {
    return tw_interval::floor_divide(tw_as<T>(a), tw_as<T>(b));
  }
}
template <typename A, typename B>
  requires(tw_Operand<A>::is_native && tw_Operand<B>::is_native)
TW_INLINE constexpr auto floor_mod(A a, B b) {
  using T = tw_Common<A, B>;
  if constexpr (tw_IsFloating<A>::value || tw_IsFloating<B>::value) {
    return tw_Real();
  } else {
    return tw_interval::floor_remainder(tw_as<T>(a), tw_as<T>(b));
  }
}

template <typename A>
  requires(tw_Operand<A>::is_integer)
TW_INLINE constexpr auto sign(A x) {
  using T = typename tw_Operand<A>::Number;
  const tw_Interval<T> a = tw_as<T>(x);
  return tw_Interval<T>(tw_interval::exact_sign(a.lo), tw_interval::exact_sign(a.hi), a.is_known);
}
template <typename A>
  requires(tw_Operand<A>::is_real)
TW_INLINE constexpr tw_Real sign(A) {
  return {};
}

template <typename T>
TW_INLINE constexpr tw_Interval<T> abs(tw_Interval<T> a) {
  return tw_interval::absolute(a);
}
TW_INLINE constexpr tw_Interval<int> abs(tw_Truth a) {
  return a;
}
TW_INLINE constexpr tw_Real abs(tw_Real) {
  return {};
}
template <typename A>
  requires(tw_IsFloating<A>::value)
TW_INLINE constexpr tw_Real abs(A) {
  return {};
}
TW_INLINE constexpr int abs(int a) {
  return a < 0 ? -a : a;
}
TW_INLINE constexpr long long abs(long long a) {
  return a < 0 ? -a : a;
}

template <typename A, typename B, typename C>
TW_INLINE constexpr auto clamp(A x, B low, C high) {
  return min(max(x, low), high);
}

// Both values exist, so an undecided condition gives what holds both.
template <typename A, typename B>
  requires(tw_IntegerPair<A, B>)
TW_INLINE constexpr auto select(tw_Truth condition, A left, B right) {
  using T = tw_Common<A, B>;
  const tw_Interval<T> a = tw_as<T>(left), b = tw_as<T>(right);
  if (condition.is_decided()) return condition.may_hold ? a : b;
  return tw_Interval<T>(tw_lesser(a.lo, b.lo), tw_greater(a.hi, b.hi), a.is_known && b.is_known);
}
template <typename A, typename B>
  requires(tw_RealPair<A, B>)
TW_INLINE constexpr tw_Real select(tw_Truth, A, B) {
  return {};
}
template <typename A, typename B>
  requires(tw_Operand<A>::is_native && tw_Operand<B>::is_native)
TW_INLINE constexpr auto select(tw_Truth condition, A a, B b) {
  return static_cast<bool>(condition) ? a : b;
}

#define TW_REAL_FUNCTION(name)                                            \
  TW_INLINE constexpr tw_Real name(tw_Real) {                             \
    return {};                                                            \
  }                                                                       \
  TW_INLINE constexpr tw_Real name##f(tw_Real) {                          \
    return {};                                                            \
  }
#define TW_REAL_FUNCTION_OF_TWO(name)                                     \
  TW_INLINE constexpr tw_Real name(tw_Real, tw_Real) {                    \
    return {};                                                            \
  }                                                                       \
  TW_INLINE constexpr tw_Real name##f(tw_Real, tw_Real) {                 \
    return {};                                                            \
  }
TW_REAL_FUNCTION(exp)
TW_REAL_FUNCTION(exp2)
TW_REAL_FUNCTION(log)
TW_REAL_FUNCTION(log2)
TW_REAL_FUNCTION(tanh)
TW_REAL_FUNCTION(sqrt)
TW_REAL_FUNCTION(rsqrt)
TW_REAL_FUNCTION(sin)
TW_REAL_FUNCTION(cos)
TW_REAL_FUNCTION(tan)
TW_REAL_FUNCTION(erf)
TW_REAL_FUNCTION(erfc)
TW_REAL_FUNCTION(log1p)
TW_REAL_FUNCTION(expm1)
TW_REAL_FUNCTION(fabs)
TW_REAL_FUNCTION(floor)
TW_REAL_FUNCTION(ceil)
TW_REAL_FUNCTION_OF_TWO(pow)
TW_REAL_FUNCTION_OF_TWO(fmin)
TW_REAL_FUNCTION_OF_TWO(fmax)
#undef TW_REAL_FUNCTION
#undef TW_REAL_FUNCTION_OF_TWO

constexpr tw_Real INFINITY = {};
constexpr tw_Real NAN = {};

}  // namespace tw_proved
