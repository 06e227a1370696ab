#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "../generator/spec/spec.hpp"
#include "../runtime/api/attention.hpp"
#include "attention_values.hpp"
#include "expected.hpp"
#include "guarded_tensor.hpp"
#include "problem.hpp"
#include "report.hpp"

namespace tilewright::verify {

struct CheckOptions {
  AttentionOptions attention = {};  ///< device, kernels, threads
  /// What the reference's kernels are made with; none: attention.kernels. For tests that put wrong
  /// kernels in attention's place.
  std::optional<Toolchain> interpretations = {};
  /// Runs there too, and compares: both results must be right, and agree.
  std::optional<Device> compared_with = {};
  bool check_mask = true;       ///< compare the block mask with evaluation at every element
  bool check_undefined = true;  ///< run the checked interpretation first
  std::int64_t max_checked_elements = std::int64_t{1} << 24;
  /// A result from elsewhere: judged by the rule, and compared with the kernel's. In out's order of
  /// attention_values.hpp; lse may be empty.
  std::optional<AttentionValues> theirs = {};
  ReportProgress progress = {};  ///< called often, from the threads that work
  /// Each run of the kernels on attention.device is made by this, which calls its argument; none:
  /// it is made at once. For tests that share a GPU.
  std::function<void(const std::function<void()>& run)> run_by = {};
};

/// Checks calls of one spec. Kernels are made once.
class Checker {
 public:
  /// @throws Error as Attention and SnippetEvaluator
  explicit Checker(Spec spec, const CheckOptions& options = {});
  Checker(Checker&&) noexcept;
  ~Checker();

  const Attention& attention() const;

  /// Runs the call into poisoned memory and compares it with the double reference.
  /// @param out padding and misalignment of out
  /// @throws Error as Attention::forward; with code snippet where the snippets would trap or read
  ///         foreign memory: then no kernel was run
  Report check(const Problem& problem, const Placement& out = {}) const;

  using Expected = verify::Expected;
  /// Reference and naive alone, for results that come from elsewhere. Its rule is the one that
  /// check judges by.
  Expected expected(const Problem& problem) const;

  /// As check(problem, out), for a problem that is run several times.
  /// @param wanted of expected(problem)
  Report check(const Problem& problem, const Placement& out, const Expected& wanted) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Checker(spec, options).check(problem), with the time that the kernels took.
Report check(const Spec& spec, const Problem& problem, const CheckOptions& options = {});

}  // namespace tilewright::verify
