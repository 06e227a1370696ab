#pragma once

#include <string_view>
#include <utility>

#include "cli/bench/measure.hpp"

namespace tilewright::cli {

struct Timing {
  double budget_ms = 500;
  /// On a GPU: calls back to back, K and V left in its L2 by the call before. Else the L2 is
  /// overwritten before each call.
  bool hot = false;
};

/// How time_forward takes times, for tables: "CUDA events, L2 flushed".
std::string_view describe_timing(const Device& device, const Timing& timing);

/// Times a call, after three to warm up: on a GPU by its own events, on a CPU by the clock. out is
/// poisoned before and looked at afterwards, so that a call which does nothing has no time.
/// @throws Error as PreparedCall::require_result
Samples time_forward(const PreparedCall& call, const Timing& timing);

/// The same of two calls in rounds that take turns, so that what slows the machine down slows both:
/// the median of the rounds' medians, and the least of all.
std::pair<Samples, Samples> time_in_turns(const PreparedCall& one, const PreparedCall& other,
                                          const Timing& timing);

}  // namespace tilewright::cli
