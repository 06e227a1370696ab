#pragma once

#include <cstdint>
#include <functional>

#include "case.hpp"
#include "outcome.hpp"

namespace tilewright::verify::fuzz {

/// Runs a case; CaseRunner::run, in this process or another.
using RunCase = std::function<Outcome(const FuzzCase&)>;

struct ShrinkOptions {
  std::int64_t max_runs = 1500;  ///< of cases
  double max_seconds = 120;
  std::function<bool()> stop = {};  ///< asked before each run; true: it ends with what it has
  /// Hears of each smaller case that still fails.
  std::function<void(const FuzzCase&, std::int64_t runs)> progress = {};
};

/// A failing case made small.
struct Shrunk {
  FuzzCase smallest;
  Outcome outcome;        ///< of the smallest case: the same failure as the first one's
  std::int64_t runs = 0;  ///< cases that were run
  bool finished = false;  ///< nothing smaller fails alike; false: it had to stop before
};

/// The smallest case of the same failure that is found by trying what is simpler: first the shapes,
/// then the spec's features and the inputs', then the trees of the snippets; again from the start
/// until nothing simpler fails alike: with the same class and the same key, where snippets are a
/// user's own text, whose places stay. The same case and the same `run` give the same result.
/// Snippets that a user wrote stay as they are, or go whole; what they are promised of buffers and
/// scalars stays too.
Shrunk shrink(const FuzzCase& failing, const Outcome& outcome, const RunCase& run,
              const ShrinkOptions& options = {});

/// q_len + kv_len: what "a case of few tokens" means.
std::int64_t tokens(const FuzzCase& fuzz_case);

}  // namespace tilewright::verify::fuzz
