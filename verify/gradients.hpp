#pragma once

#include <map>
#include <string>

#include "../generator/spec/spec.hpp"
#include "../runtime/api/executor.hpp"
#include "../runtime/api/toolchain.hpp"
#include "gradient_call.hpp"
#include "gradient_rule.hpp"
#include "problem.hpp"

namespace tilewright::verify {

// Gradients are judged by the rule of gradient_rule.hpp.
//
// Backward reads the stored out, so reference and naive form delta from it: a dtype of few bits
// makes delta another one than that of the exact out.
//
// The reference's derivative of score_mod must agree with central differences in double at a sample
// of elements that are not near a kink.

/// Judges the gradients of a call. Of a packed one rows of dq that belong to no sequence are not
/// looked at, and the terms of all sequences that share rows of k add up.
/// @throws Error as load_kernel, for the kernels that evaluate derivatives
std::map<std::string, GradientVerdict> judge_gradients(const Spec& spec, const Problem& problem,
                                                       const GradientResults& results,
                                                       const Toolchain& toolchain,
                                                       Executor& threads);

}  // namespace tilewright::verify
