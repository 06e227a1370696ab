// The interval type against brute force: an interval of a result holds the result of every pair of
// values, and where C++ defines none for one of them, nothing is known.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/support/catch.hpp"

#undef INFINITY
#undef NAN
#define TW_INLINE [[maybe_unused]] static inline
#define TW_MEMBER

namespace {

int g_undecided = 0;

bool tw_undecided() {
  return ++g_undecided % 2 == 0;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"  // __int128
#pragma GCC diagnostic ignored "-Wshadow"
#include "interpretations/interval.hpp"

using namespace tw_proved;

using Wide = __int128;
#pragma GCC diagnostic pop

// What C++ computes, or none where it defines nothing.
using Operation = std::optional<Wide> (*)(Wide a, Wide b, Wide least, Wide greatest);

template <typename T>
struct Binary {
  const char* name;
  tw_Interval<T> (*on_intervals)(tw_Interval<T>, tw_Interval<T>);
  Operation exact;
};

std::optional<Wide> within(Wide x, Wide least, Wide greatest) {
  return x < least || x > greatest ? std::nullopt : std::optional(x);
}

Wide rounded_down(Wide a, Wide b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

template <typename T>
std::vector<Binary<T>> binaries() {
  using I = tw_Interval<T>;
  return {
      {"+", [](I a, I b) { return a + b; },
       [](Wide a, Wide b, Wide lo, Wide hi) { return within(a + b, lo, hi); }},
      {"-", [](I a, I b) { return a - b; },
       [](Wide a, Wide b, Wide lo, Wide hi) { return within(a - b, lo, hi); }},
      {"*", [](I a, I b) { return a * b; },
       [](Wide a, Wide b, Wide lo, Wide hi) { return within(a * b, lo, hi); }},
      {"/", [](I a, I b) { return a / b; },
       [](Wide a, Wide b, Wide lo, Wide hi) {
         return b == 0 ? std::nullopt : within(a / b, lo, hi);
       }},
      {"%", [](I a, I b) { return a % b; },
       [](Wide a, Wide b, Wide lo, Wide hi) {
         return b == 0 || !within(a / b, lo, hi) ? std::nullopt : std::optional(a % b);
       }},
      {"floor_div", [](I a, I b) { return floor_div(a, b); },
       [](Wide a, Wide b, Wide lo, Wide hi) {
         return b == 0 ? std::nullopt : within(rounded_down(a, b), lo, hi);
       }},
      {"floor_mod", [](I a, I b) { return floor_mod(a, b); },
       [](Wide a, Wide b, Wide lo, Wide hi) {
         const bool is_defined = b != 0 && within(a / b, lo, hi);
         return is_defined ? std::optional(a - rounded_down(a, b) * b) : std::nullopt;
       }},
      {"sign", [](I a, I) { return sign(a); },
       [](Wide a, Wide, Wide, Wide) { return std::optional(Wide{a > 0} - Wide{a < 0}); }},
      {"&", [](I a, I b) { return a & b; },
       [](Wide a, Wide b, Wide, Wide) { return std::optional(a & b); }},
      {"|", [](I a, I b) { return a | b; },
       [](Wide a, Wide b, Wide, Wide) { return std::optional(a | b); }},
      {"^", [](I a, I b) { return a ^ b; },
       [](Wide a, Wide b, Wide, Wide) { return std::optional(a ^ b); }},
      // Where the shifted value does not fit, C++ 20 wraps; nothing is known then.
      {"<<", [](I a, I b) { return a << b; },
       [](Wide a, Wide b, Wide lo, Wide hi) {
         if (b < 0 || b >= static_cast<Wide>(8 * sizeof(T))) return std::optional<Wide>();
         return within(a * (Wide{1} << static_cast<int>(b)), lo, hi);
       }},
      {">>", [](I a, I b) { return a >> b; },
       [](Wide a, Wide b, Wide, Wide) {
         if (b < 0 || b >= static_cast<Wide>(8 * sizeof(T))) return std::optional<Wide>();
         return std::optional(a >> static_cast<int>(b));
       }},
      {"min", [](I a, I b) { return min(a, b); },
       [](Wide a, Wide b, Wide, Wide) { return std::optional(std::min(a, b)); }},
      {"max", [](I a, I b) { return max(a, b); },
       [](Wide a, Wide b, Wide, Wide) { return std::optional(std::max(a, b)); }},
      {"unary -", [](I a, I) { return -a; },
       [](Wide a, Wide, Wide lo, Wide hi) { return within(-a, lo, hi); }},
      {"~", [](I a, I) { return ~a; }, [](Wide a, Wide, Wide, Wide) { return std::optional(~a); }},
      {"abs", [](I a, I) { return abs(a); },
       [](Wide a, Wide, Wide lo, Wide hi) { return within(a < 0 ? -a : a, lo, hi); }},
      {"clamp", [](I a, I b) { return clamp(a, b, 5); },
       [](Wide a, Wide b, Wide, Wide) { return std::optional(std::min(std::max(a, b), Wide{5})); }},
      {"==", [](I a, I b) { return I(a == b); },
       [](Wide a, Wide b, Wide, Wide) { return std::optional(Wide{a == b}); }},
      {"!=", [](I a, I b) { return I(a != b); },
       [](Wide a, Wide b, Wide, Wide) { return std::optional(Wide{a != b}); }},
      {"<", [](I a, I b) { return I(a < b); },
       [](Wide a, Wide b, Wide, Wide) { return std::optional(Wide{a < b}); }},
      {"<=", [](I a, I b) { return I(a <= b); },
       [](Wide a, Wide b, Wide, Wide) { return std::optional(Wide{a <= b}); }},
      {">", [](I a, I b) { return I(a > b); },
       [](Wide a, Wide b, Wide, Wide) { return std::optional(Wide{a > b}); }},
      {">=", [](I a, I b) { return I(a >= b); },
       [](Wide a, Wide b, Wide, Wide) { return std::optional(Wide{a >= b}); }},
      {"&&", [](I a, I b) { return I(a && b); },
       [](Wide a, Wide b, Wide, Wide) { return std::optional(Wide{a != 0 && b != 0}); }},
      {"||", [](I a, I b) { return I(a || b); },
       [](Wide a, Wide b, Wide, Wide) { return std::optional(Wide{a != 0 || b != 0}); }},
      {"!", [](I a, I) { return I(!a); },
       [](Wide a, Wide, Wide, Wide) { return std::optional(Wide{a == 0}); }},
      {"select", [](I a, I b) { return select(a > 0, a, b); },
       [](Wide a, Wide b, Wide, Wide) { return std::optional(a > 0 ? a : b); }},
  };
}

// Bounds where things happen: around 0, powers of two and the ends.
template <typename T>
T interesting(std::mt19937_64& random) {
  const T greatest = std::numeric_limits<T>::max();
  const auto near = static_cast<T>(random() % 9) - 4;
  switch (random() % 6) {
    case 0:
      return greatest - static_cast<T>(random() % 5);
    case 1:
      return std::numeric_limits<T>::min() + static_cast<T>(random() % 5);
    case 2:
      return static_cast<T>((T{1} << random() % (8 * sizeof(T) - 2)) + near);
    case 3:
      return static_cast<T>(-(T{1} << random() % (8 * sizeof(T) - 2)) + near);
    default:
      return static_cast<T>(near + static_cast<T>(random() % 40) - 20);
  }
}

template <typename T>
tw_Interval<T> random_interval(std::mt19937_64& random) {
  const T lo = interesting<T>(random);
  const T room = std::numeric_limits<T>::max() - (lo > 0 ? lo : T{0});
  const T width = std::min<T>(static_cast<T>(random() % 13), room);
  return {lo, static_cast<T>(lo + width), true};
}

template <typename T>
std::string faults_of(const Binary<T>& operation, int samples, int& known, int& tight) {
  std::mt19937_64 random(1);
  constexpr Wide kLeast = std::numeric_limits<T>::min(), kGreatest = std::numeric_limits<T>::max();
  for (int sample = 0; sample < samples; ++sample) {
    const auto a = random_interval<T>(random), b = random_interval<T>(random);
    const tw_Interval<T> result = operation.on_intervals(a, b);
    bool defined = true;
    Wide least = kGreatest, greatest = kLeast;
    for (Wide x = a.lo; x <= a.hi; ++x) {
      for (Wide y = b.lo; y <= b.hi; ++y) {
        const std::optional<Wide> exact = operation.exact(x, y, kLeast, kGreatest);
        defined = defined && exact.has_value();
        least = std::min(least, exact.value_or(least));
        greatest = std::max(greatest, exact.value_or(greatest));
      }
    }
    if (!result.is_known) continue;
    ++known;
    tight += result.lo == least && result.hi == greatest;
    if (defined && result.lo <= least && result.hi >= greatest) continue;
    return std::string(operation.name) + " of [" + std::to_string(a.lo) + ", " +
           std::to_string(a.hi) + "] and [" + std::to_string(b.lo) + ", " + std::to_string(b.hi) +
           "] gives [" + std::to_string(result.lo) + ", " + std::to_string(result.hi) + "]";
  }
  return "none";
}

template <typename T>
void check_all() {
  constexpr int kSamples = 4000;
  for (const Binary<T>& operation : binaries<T>()) {
    int known = 0, tight = 0;
    INFO(operation.name << " for integers of " << sizeof(T) << " bytes");
    CHECK(faults_of(operation, kSamples, known, tight) == "none");
    // Most intervals are of use: not the whole range where less would do.
    INFO(known << " known, of them as narrow as can be " << tight);
    CHECK(known > kSamples / 12);
    CHECK(tight > known / 3);
  }
}

}  // namespace

TEST_CASE("interval: an int's holds every value, and nothing is known of what C++ leaves open") {
  check_all<int>();
}

TEST_CASE(
    "interval: a long long's holds every value, and nothing is known of what C++ leaves open") {
  check_all<long long>();
}

TEST_CASE("interval: an int and a long long meet as long long, a truth and an int as int") {
  const tw_Interval<int> i(1, 2, true);
  const tw_Interval<long long> l(1ll << 40, 1ll << 41, true);
  REQUIRE((i + l).hi == (1ll << 41) + 2);
  REQUIRE((i << l).is_known == false);  // too far
  REQUIRE(sizeof((i >> l).lo) == sizeof(int));
  const tw_Interval<int> narrowed = l;
  REQUIRE(!narrowed.is_known);
  const tw_Interval<int> count = (i < 5) + (i > 5);
  REQUIRE(count.is_known);
  REQUIRE(count.lo == 1);
  REQUIRE(count.hi == 1);
}

TEST_CASE("interval: bits of two truths stay a truth, a constant's included") {
  const tw_Truth either = tw_either();
  CHECK(std::is_same_v<decltype(either & true), tw_Truth>);
  CHECK(std::is_same_v<decltype(false | either), tw_Truth>);
  CHECK(std::is_same_v<decltype(either ^ 1), tw_Interval<int>>);
  // Both arms have one type, so this compiles.
  const tw_Truth chosen = tw_Truth(true) ? (true & either) : !either;
  CHECK(chosen.may_hold);
  CHECK(chosen.may_fail);
}

TEST_CASE("interval: a condition that is not decided marks the tile, a decided one does not") {
  const tw_Interval<int> x(0, 9, true);
  g_undecided = 0;
  REQUIRE((x < 10 ? 1 : 2) == 1);
  if (x > 20) FAIL("a decided condition");
  REQUIRE(g_undecided == 0);
  REQUIRE((static_cast<bool>(x < 5) || true));
  REQUIRE(g_undecided == 1);
  int rounds = 0;
  while (true) {
    ++rounds;
    if (x == 3) break;
    REQUIRE(rounds < 100);
  }
  REQUIRE(g_undecided > 1);
}

TEST_CASE("interval: floats prove nothing") {
  const tw_Interval<int> x(1, 1, true);
  const tw_Real half = 0.5f;
  const auto undecided = [](tw_Truth truth) { return !truth.is_decided(); };
  REQUIRE(undecided(half < x));
  REQUIRE(undecided(x * 0.5f < 100));
  REQUIRE(undecided(sqrt(x) >= 0));
  REQUIRE(undecided(half == half));
  REQUIRE(undecided(floor_div(x, 2.0f) == 0));
  REQUIRE(undecided(floor_mod(half, 2) < 2));
  REQUIRE(undecided(sign(half) < 2));
  REQUIRE(!static_cast<tw_Interval<int>>(half * x).is_known);
  REQUIRE(!undecided(x > 1 && half < x));
  REQUIRE(!undecided(x == 1 || half < x));
}

TEST_CASE("interval: overflow and division by zero prove nothing, even of what holds for any int") {
  const tw_Interval<int> far(2000000000, 2000000010, true), any(-1, 1, true);
  const tw_Interval<int> sum = far + far, quotient = far / any;
  REQUIRE(!(sum >= std::numeric_limits<int>::min()).is_decided());
  REQUIRE(!((quotient & 3) < 4).is_decided());
  REQUIRE(!(sum * 0 == 0).is_decided());
  REQUIRE(!(min(sum, 5) < 6).is_decided());
}
