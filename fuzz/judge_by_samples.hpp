#pragma once

#include <string>

#include "../runtime/api/executor.hpp"
#include "../verify/judge.hpp"
#include "../verify/reference.hpp"
#include "case_parts.hpp"

namespace tilewright::verify::fuzz {

/// Applies the rule of verify/judge.hpp. Naive is one sample of what float32 gives: over the few
/// elements of a small call it may be right by luck, and no kernel twice as good as luck. So where
/// its error is too small a measure, a few more samples are drawn, which are naive too: keys,
/// values and head dims in another order, and functions as inexact as docs/math.md allows. The
/// result is right if it is within the bounds that any of them gives (docs/decisions/0017).
Verdict judge_by_samples(const AttentionValues& got, const Reference& reference,
                         const CaseParts& parts, const Rule& rule, Executor& threads);

/// The same for each sequence of a packed call alone, as `check` judges it.
/// @return what is wrong; empty where nothing is
std::string judge_sequences_alone(const AttentionValues& got, const Reference& reference,
                                  const CaseParts& parts, const Rule& rule, Executor& threads);

}  // namespace tilewright::verify::fuzz
