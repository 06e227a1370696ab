#pragma once

#include "attention_values.hpp"
#include "judge.hpp"
#include "problem.hpp"

namespace tilewright::verify {

/// What was written; NaN, as the reference is, in rows of a packed call that no sequence has.
AttentionValues rows_of_sequences(AttentionValues written, const Problem& problem);

/// Rows of a packed call by the number of their sequence and their row in it; none of a dense call.
PlaceOfRow place_of_rows(const Problem& problem);

}  // namespace tilewright::verify
