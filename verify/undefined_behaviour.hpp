#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../base/error.hpp"
#include "../generator/spec/spec.hpp"
#include "problem.hpp"
#include "snippet_evaluator.hpp"

namespace tilewright::verify {

/// Indices outside of a dimension of a buffer, at one place of a snippet.
struct OutsideIndices {
  std::string buffer;
  int dimension = 0;
  std::int64_t extent = 0;
  std::int64_t least = 0;     ///< of those outside, in all elements looked at
  std::int64_t greatest = 0;  ///< likewise
  bool is_nan = false;        ///< the index is NaN: `least` and `greatest` say nothing

  bool passes_both_ends() const { return !is_nan && least < 0 && greatest >= extent; }
};

/// A dimension of a buffer that is too short for indices, and whose extent the spec or the call
/// chooses: it is a number or null.
struct ShortDimension {
  std::string buffer;
  int dimension = 0;
  std::int64_t needed = 0;  ///< the extent that holds all indices of the elements looked at
};

/// One operation of a snippet that is undefined in C++, or that the library had to mend, with the
/// first element that showed it.
struct UndefinedOperation {
  std::string message;   ///< "index 130 of buffer "doc" is outside its extent 128; ..."
  SourceLocation place;  ///< in the snippet; line 0 where no line is known
  std::string hint;      ///< how to avoid it, where it is fatal
  bool fatal = false;  ///< it could end the process or read foreign memory: the kernel must not run
  bool endless = false;  ///< of what is fatal: a loop does not end
  bool kept = false;     ///< mask_mod keeps the element
  bool clamped = false;  ///< the library defines it: an index outside of a buffer, or of size()
  /// Of an index, where the buffer is known.
  std::optional<OutsideIndices> outside = {};
  /// Of an index, where a longer buffer would hold all that are outside.
  std::optional<ShortDimension> too_short = {};
};

/// What the checked interpretation found.
struct UndefinedOperations {
  std::vector<UndefinedOperation> operations;  ///< one for each place, dimension and kind
  std::int64_t count = 0;                      ///< of operations
  std::int64_t elements = 0;                   ///< of the score matrices
  std::int64_t elements_checked = 0;  ///< less where there are too many: then whole rows, evenly
                                      ///< spread, the first and the last among them
};

/// Runs the snippets in their checked interpretation over the problem's own scores.
/// @param max_elements how many elements may be evaluated
/// @throws Error as SnippetValues
UndefinedOperations find_undefined_operations(const Spec& spec, const Problem& problem,
                                              const CheckedInterpretation& interpretation,
                                              std::int64_t max_elements);

/// An error with code snippet for the first fatal operation, which names the others; nothing if no
/// operation is fatal.
std::optional<Error> fatal_operation_error(const Spec& spec, const UndefinedOperations& found);

}  // namespace tilewright::verify
