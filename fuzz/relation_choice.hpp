#pragma once

#include <cstdint>
#include <map>

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
  /// Asks for a relation that has not been asked for yet, where one applies.
  void ask_for_new(FuzzCase& fuzz_case);

 private:
  std::map<Relation, std::int64_t> asked_ = {};
};

}  // namespace tilewright::verify::fuzz
