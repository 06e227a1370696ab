#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/compile_matrix/kernels.hpp"

namespace tilewright::compile_matrix {

/// kernel_resources.tsv: what the kernels of each tactic take of a multiprocessor. Rows are
/// told apart by dtype, head_dim, snippets, kernel, target and tactic.
class ResourceTable {
 public:
  /// The kernels that have a row: for every target and size of head both the tactic that is chosen
  /// and the others that there are, with and without snippets.
  /// @param with_snippets a spec with score_mod and mask_mod
  static std::vector<Wish> wishes(const Spec& with_snippets);
  /// Whether a short run compiles the row: those that have the least registers to spare, and block
  /// masks, which follow every change of the interval interpretation.
  static bool is_in_sample(const Wish& wish);

  /// @throws Error with code file if the file holds no table
  static ResourceTable read(const std::string& path);

  void add(const Wish& wish, const Outcome& outcome);
  /// The table as tab-separated values.
  std::string text() const;

  const std::string& compiler() const { return compiler_; }  ///< "V13.0.88"

  /// How `fresh` differs from this table, a line each: figures of the rows that `fresh` has, and
  /// which of `wishes` have no row here or are none any more.
  std::vector<std::string> differences(const ResourceTable& fresh,
                                       const std::vector<Wish>& wishes) const;

 private:
  using Cells = std::vector<std::string>;
  struct NumbersBySize {  // 64 before 128
    bool operator()(const Cells& left, const Cells& right) const;
  };

  std::string compiler_;
  std::map<Cells, Cells, NumbersBySize> rows_;  // what it is -> figures
};

}  // namespace tilewright::compile_matrix
