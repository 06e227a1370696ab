#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../generator/snippet/snippet.hpp"
#include "../verify/random.hpp"
#include "expression.hpp"
#include "snippet_declarations.hpp"
#include "snippet_dice.hpp"
#include "snippet_wish.hpp"
#include "tracked.hpp"

namespace tilewright::verify::fuzz {

/// What expressions of a snippet can name in addition to indices, buffers and scalars: local
/// variables, and calls of lambdas.
struct LocalsInSight {
  std::vector<TrackedInteger> integers;
  std::vector<TrackedNumber> numbers;
  std::vector<Expression> truths;
};

/// Random expressions of the three types, which are made of each other. `depth` is how many
/// operations may stand inside each other.
///
/// An integer's interval, a number's size and its steepness in the score are tracked, so that
/// nothing has undefined behaviour and no result hangs on rounding (random_snippet.hpp).
class ExpressionMaker : private SnippetDice {
 public:
  /// All arguments must outlive it.
  ExpressionMaker(SnippetDeclarations& declared, Random& random, SnippetKind kind,
                  const SnippetWish& wish)
      : SnippetDice(random), declared_(declared), kind_(kind), wish_(wish) {}

  LocalsInSight locals = {};

  /// Of the sum of two integers whose magnitude is at most this, twice the magnitude is an int.
  static constexpr std::int64_t kHalfOfInt = std::int64_t{1} << 29;
  /// Greatest size and steepness of a number; what comes out larger is thrown away.
  static constexpr double kMaxBound = 80;
  static constexpr double kMaxSlope = 4;

  // ---- integers: random_integers.cpp

  TrackedInteger integer_value(int depth);
  TrackedInteger constant();
  TrackedInteger integer_read(const std::string& buffer, int depth);
  TrackedInteger remainder_of(const TrackedInteger& a, int depth);
  TrackedInteger bitwise(const TrackedInteger& a, const TrackedInteger& b);
  /// The remainder where the magnitude may be above the limit.
  static TrackedInteger limited(const TrackedInteger& x, std::int64_t limit);

  // ---- truths: random_truths.cpp

  Expression truth(int depth);
  /// A mask of which the kind is in use: causal, a window, blocks, ...
  Expression known_mask();
  Op comparison();

  // ---- numbers: random_numbers.cpp

  TrackedNumber number(int depth);
  /// One that every interpretation computes alike, so that it may be compared.
  TrackedNumber exact_number(int depth);
  TrackedNumber floating_read(const std::string& buffer, int depth);
  TrackedNumber score();
  TrackedNumber sum(const TrackedNumber& a, const TrackedNumber& b);
  static TrackedNumber product(const TrackedNumber& a, const TrackedNumber& b);
  static Expression minus_infinity();

 private:
  // random_reads.cpp
  Expression read_of(const std::string& buffer, Type type, int depth);
  Expression index_for(const std::string& buffer, std::size_t dim, int depth);
  Expression index_value(const char* usual, int depth);
  Expression wild_index(int depth);
  Expression floating_index(int depth);
  static Expression last_of(const std::string& buffer, std::size_t dim);

  TrackedInteger integer_leaf(int depth);
  TrackedInteger index_or_length();
  TrackedInteger index_of_mask_or_score();
  TrackedInteger quotient(const TrackedInteger& a, int depth);
  TrackedInteger rounded_down(const TrackedInteger& a);
  TrackedInteger shifted(const TrackedInteger& a);

  Expression integer_comparison(int depth);
  Expression exact_comparison(int depth);
  bool has_exact_numbers() const;

  TrackedNumber number_leaf(int depth);
  TrackedNumber composed_number(int depth);
  TrackedNumber exact_leaf(int depth);
  TrackedNumber dyadic();
  TrackedNumber literal();
  TrackedNumber number_of_integer(int depth);
  TrackedNumber chosen(Op op, int depth);
  TrackedNumber ratio(const TrackedNumber& a, int depth);
  TrackedNumber of_function(const TrackedNumber& a);

  SnippetDeclarations& declared_;
  SnippetKind kind_;
  const SnippetWish& wish_;
};

}  // namespace tilewright::verify::fuzz
