#pragma once

#include "../generator/spec/spec.hpp"
#include "parts.hpp"
#include "problem.hpp"
#include "reference.hpp"
#include "unjudged.hpp"

namespace tilewright::verify {

/// A part of a call, as its results are computed.
struct PartOfCall {
  const Spec& spec;
  const Problem& problem;
  const Parts::Piece& piece;
  const DenseProblem& dense;
  const RowSnippets<float>& in_float;
  const RowSnippets<double>& in_double;
};

/// Marks which elements and rows of the part are not judged, where they lie in the whole call.
/// @param reference, naive the part's
void find_unjudged(const PartOfCall& part, const AttentionValues& reference,
                   const AttentionValues& naive, Unjudged& whole);

}  // namespace tilewright::verify
