#pragma once

#include <vector>

#include "../verify/random.hpp"
#include "expression.hpp"
#include "expression_maker.hpp"
#include "snippet_declarations.hpp"
#include "snippet_dice.hpp"
#include "snippet_wish.hpp"
#include "tracked.hpp"

namespace tilewright::verify::fuzz {

/// Parts of a random snippet that show what it is asked for: chance alone would leave too much out.
/// Local variables that were declared last are read, too; one that nothing reads tests little.
class WishedParts : private SnippetDice {
 public:
  /// All arguments must outlive it.
  WishedParts(ExpressionMaker& expressions, const SnippetDeclarations& declared, Random& random,
              const SnippetWish& wish)
      : SnippetDice(random), expressions_(expressions), declared_(declared), wish_(wish) {}

  /// For a mask: a truth for each wish that nothing else would answer.
  std::vector<Expression> truths();
  /// For a score: a small term for each wish.
  std::vector<TrackedNumber> terms();

 private:
  std::vector<TrackedInteger> wanted_tokens();
  TrackedInteger difference();
  TrackedNumber tanh_of_score();
  template <typename UseInteger, typename UseTruth, typename UseNumber>
  void use_locals(const UseInteger& use_integer, const UseTruth& use_truth,
                  const UseNumber& use_number);

  ExpressionMaker& expressions_;
  const SnippetDeclarations& declared_;
  const SnippetWish& wish_;
};

/// The sum, which counts as inexact.
TrackedNumber plus(const TrackedNumber& a, const TrackedNumber& b);

}  // namespace tilewright::verify::fuzz
