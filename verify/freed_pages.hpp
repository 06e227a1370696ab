#pragma once

#include <string>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../runtime/api/executor.hpp"
#include "problem.hpp"
#include "snippet_evaluator.hpp"

namespace tilewright::verify {

/// Columns of freed pages (entries of -1) that mask_mod keeps. Their rows read as zeros, so a step
/// that still attends to them has lost tokens. One sentence for each sequence with such a column.
/// @param interpretation null where the spec has no mask_mod: then every column is kept
std::vector<std::string> find_kept_freed_pages(const Spec& spec, const Problem& problem,
                                               const FloatInterpretation* interpretation,
                                               Executor& threads);

}  // namespace tilewright::verify
