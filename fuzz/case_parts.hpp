#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "../verify/attention_values.hpp"
#include "../verify/parts.hpp"
#include "../verify/reference.hpp"
#include "case.hpp"
#include "interpretations.hpp"

namespace tilewright::verify::fuzz {

/// A case's call by its dense parts, each with the case's snippets: a dense call is one, of a
/// packed call each sequence is.
class CaseParts {
 public:
  struct Part {
    const Parts::Piece& piece;
    CaseInterpretations interpretations;
  };

  /// All arguments must outlive it. @throws Error as CaseInterpretations
  CaseParts(const FuzzCase& fuzz_case, const Problem& problem, const UserInterpretations* user);

  const std::deque<Part>& parts() const { return all_; }

  /// What `compute` gives of each part that has rows, where its rows lie in the call. Rows of no
  /// sequence are NaN. lse may be empty.
  /// @param products  that see q, k and v
  AttentionValues whole(
      const std::function<AttentionValues(const Part&, const DenseProblem&)>& compute,
      F32Products products = F32Products::ieee) const;

  /// The part's rows of a whole call's values.
  static AttentionValues part_of(const AttentionValues& whole, const Part& part);

 private:
  const Spec& spec_;
  std::int64_t out_width_;
  Problem problem_;
  Parts parts_;
  std::deque<Part> all_;
};

}  // namespace tilewright::verify::fuzz
