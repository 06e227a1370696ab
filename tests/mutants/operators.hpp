#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::mutants {

/// What is changed in a template's text: a mistake that a writer of kernels makes.
enum class Operator : std::uint8_t {
  comparison,         ///< `<` for `<=`, `==` for `!=`, and the other way round
  logical,            ///< `&&` for `||`
  off_by_one,         ///< `+ 1` or `- 1` left out, a variable begins at 1
  sign,               ///< `+` for `-`
  dropped_statement,  ///< an assignment, a call or a guard is left out
  dropped_barrier,    ///< the same of what synchronises threads or copies
  dropped_rescale,    ///< a factor is left out: alpha, scale, 1 / sum
  swapped_index,      ///< `[i][j]` for `[j][i]`, h for h_kv, q for kv, one stride for another
  swapped_extremum,   ///< min for max
};

/// "comparison", "dropped barrier", ...
std::string_view to_string(Operator kind);

/// One change at one place of one template.
struct Mutation {
  std::string file;  ///< below templates/
  Operator kind = Operator::comparison;
  std::size_t position = 0;  ///< of the removed text, in bytes
  std::string removed = {};
  std::string inserted = {};
  int line = 0;             ///< counted from 1
  std::string before = {};  ///< the line, without white space around it
  std::string after = {};   ///< the line as it becomes
  int occurrence = 0;       ///< among equal changes of equal lines of this file, from 0

  /// The template's text with the change. @throws Error with code internal where `text` is another
  std::string apply(std::string_view text) const;
  /// Whether the line synchronises threads or copies: what is wrong then may be a race alone.
  bool may_race() const;
  /// Eight hexadecimal digits that stay the same while the line does, wherever it moves.
  std::string id() const;
  /// "3f9a0c12 cpu/forward.hpp:141 comparison: `a < b` -> `a <= b`"
  std::string describe() const;
};

/// Every change that the operators make of a template, from its first line to its last. Comments,
/// directives, declarations of templates and text in quotes are left alone.
std::vector<Mutation> mutations_of(const std::string& file, std::string_view text);

}  // namespace tilewright::mutants
