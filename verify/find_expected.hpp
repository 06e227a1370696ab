#pragma once

#include "../generator/spec/spec.hpp"
#include "../runtime/api/executor.hpp"
#include "expected.hpp"
#include "interpretations.hpp"
#include "problem.hpp"

namespace tilewright::verify {

/// What naive rounds to, and how it multiplies.
struct NaiveArithmetic {
  DType dtype = DType::f32;
  F32Products products = F32Products::ieee;
};

/// All of a call's Expected but the rule. A packed call's sequences are computed one after another.
/// @param report called often, from the threads that work; may be none
Expected find_expected(const Spec& spec, const Interpretations& interpretations,
                       const Problem& problem, const NaiveArithmetic& arithmetic, Executor& threads,
                       const ReportProgress& report);

}  // namespace tilewright::verify
