#pragma once

#include "../verify/attention_values.hpp"
#include "packed_relation_calls.hpp"
#include "relation.hpp"
#include "relations.hpp"

namespace tilewright::verify::fuzz {

/// Checks a relation that moves or divides the columns of a packed call: paged, new_rows,
/// merged_ranges.
/// @param wanted what the call gives
/// @throws Error as the runner
RelationResult check_column_relation(Relation relation, const PackedRelationCall& call,
                                     const AttentionValues& wanted, RelationRunner& runner);

}  // namespace tilewright::verify::fuzz
