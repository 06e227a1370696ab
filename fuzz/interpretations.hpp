#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "../runtime/library/kernel_library.hpp"
#include "../verify/parts.hpp"
#include "../verify/problem.hpp"
#include "../verify/reference.hpp"
#include "../verify/scale_values.hpp"
#include "../verify/snippet_evaluator.hpp"
#include "call_values.hpp"
#include "case.hpp"
#include "interpreter.hpp"

namespace tilewright::verify::fuzz {

/// The compiled interpretations of a user's own text; none where a case's snippets have trees.
struct UserInterpretations {
  /// @throws Error as SnippetEvaluator
  UserInterpretations(const Spec& spec, const Toolchain& toolchain);

  FloatInterpretation in_float;
  DoubleInterpretation in_double;
};

/// A case's snippets evaluated over one call without the kernels under test: by the interpreter, or
/// for a user's text by the interpretations that `check` uses. What is kept is decided once, in
/// float.
class CaseInterpretations {
 public:
  /// @param values of the problem, copied
  /// @param user must be given where a snippet of the spec has no tree
  /// @param sequence of a packed call: whose elements are evaluated, with b 0 and its own rows
  /// All other arguments must outlive it.
  CaseInterpretations(const FuzzCase& fuzz_case, const Problem& problem, const CallValues& values,
                      const UserInterpretations* user, const Parts::Piece* sequence = nullptr);

  bool keep(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column) const {
    return kept_[index(b, h, row) + static_cast<std::size_t>(column)] != 0;
  }
  /// kv_len times 0 or 1.
  const unsigned char* kept_row(std::int64_t b, std::int64_t h, std::int64_t row) const {
    return kept_.data() + index(b, h, row);
  }

  /// Of the spec's scales and its sink; none where it has neither.
  ScaleValues scales() const;
  /// For the reference.
  RowSnippets<double> in_double() const;
  /// For naive.
  /// @param errors of elementary functions; a user's text is read without
  RowSnippets<float> in_float(const FunctionErrors& errors = {}) const;

 private:
  std::size_t index(std::int64_t b, std::int64_t h, std::int64_t row) const;
  template <typename Score, typename Interpretation>
  RowSnippets<Score> rows(const Interpretation* user, const FunctionErrors& errors) const;
  void decide_kept();
  template <typename Score>
  void evaluate_scale(SnippetKind kind, std::int64_t b, std::int64_t h, std::int64_t first,
                      std::int64_t count, double* values) const;
  template <typename Score, typename Interpretation>
  void read_user_row(const Interpretation& interpretation, std::int64_t b, std::int64_t h,
                     std::int64_t row, const Score* scores, Score* modified,
                     unsigned char* keep) const {
    interpretation.row(arguments_, values_.first_b + b, h, row, scores, modified, keep);
  }

  const FuzzCase& case_;
  const UserInterpretations* user_;
  CallValues values_;
  std::optional<SnippetValues> user_values_;  // of a dense call
  abi::SnippetArguments arguments_ = {};      // for user_
  std::vector<unsigned char> kept_;           // [batch, num_q_heads, q_len, kv_len]
};

}  // namespace tilewright::verify::fuzz
