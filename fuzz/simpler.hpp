#pragma once

#include <vector>

#include "case.hpp"
#include "expression.hpp"

namespace tilewright::verify::fuzz {

// Cases that are one step simpler than a given one, the boldest step first. Each of them is valid:
// its shape, its spec, and its trees, which use only what they declare. What cannot be simpler
// gives none.

/// Smaller sizes and offsets. Lengths also keep their parity, or lose it.
std::vector<FuzzCase> simpler_shapes(const FuzzCase& fuzz_case);

/// One feature of the spec or of the inputs less: a snippet, lse, a dtype, a layout, a tactic, a
/// buffer or scalar that no snippet reads, padding, NaNs, a broadcast.
std::vector<FuzzCase> simpler_features(const FuzzCase& fuzz_case);

/// A smaller tree of one snippet.
std::vector<FuzzCase> simpler_snippets(const FuzzCase& fuzz_case);

/// Trees with one statement less, a branch replaced by what it holds, or an expression replaced by
/// an operand of its type or by a literal.
std::vector<SnippetTree> simpler_trees(const SnippetTree& tree);

}  // namespace tilewright::verify::fuzz
