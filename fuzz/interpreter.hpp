#pragma once

#include <cstdint>
#include <memory>

#include "call_values.hpp"
#include "expression.hpp"
#include "tree_arithmetic.hpp"

namespace tilewright::verify::fuzz {

/// A row of the score matrices: row and columns are counted from 0, without offsets. b is counted
/// from CallValues::first_b.
struct RowPlace {
  std::int64_t b = 0;
  std::int64_t h = 0;
  std::int64_t row = 0;
};

/// Evaluates the tree of a snippet, in double for the reference and in float for naive. It shares
/// no code with the kernels: neither the snippet's text, nor a compiler, nor their functions.
template <typename Score>
class Interpreter {
 public:
  /// Names are resolved here, once.
  /// @param values must outlive it
  /// @throws Error with code internal for a tree that names what is not there
  Interpreter(const SnippetTree& tree, const CallValues& values, const FunctionErrors& errors = {});
  Interpreter(Interpreter&&) noexcept;
  ~Interpreter();

  /// Modifies a row of scores, kv_len of each. May be called from many threads at once, as keep().
  /// @throws Error with code internal where the tree does what C++ does not define: it overflows,
  ///         divides an integer by 0, shifts too far, or ends without a result
  void modify(const RowPlace& place, const Score* scores, Score* modified) const;

  /// Which elements of a row mask_mod keeps: kv_len times 0 or 1.
  void keep(const RowPlace& place, unsigned char* keep) const;

 private:
  class Program;
  std::unique_ptr<const Program> program_;
};

extern template class Interpreter<float>;
extern template class Interpreter<double>;

}  // namespace tilewright::verify::fuzz
