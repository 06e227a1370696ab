#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "case.hpp"
#include "relation.hpp"

namespace tilewright::verify::fuzz {

/// Whether the relation says anything of the case, as far as can be told without its values. A
/// relation that rewrites snippets may still not compile.
bool applies(Relation relation, const FuzzCase& fuzz_case);

/// Says which relation a case is asked for.
class RelationChoice {
 public:
  /// Asks for the relation that was asked for least often, of those that apply.
  void ask(FuzzCase& fuzz_case);
  /// Asks for a relation that seldom applies, where it does: one that was asked for less than half
  /// as often as another of its kind of calls.
  void ask_for_rare(FuzzCase& fuzz_case);

 private:
  /// None where none applies.
  std::optional<Relation> rarest_of(const FuzzCase& fuzz_case);
  std::int64_t most_asked(bool of_packed) const;

  std::map<Relation, std::int64_t> asked_ = {};
};

}  // namespace tilewright::verify::fuzz
