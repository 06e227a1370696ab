#pragma once

#include <string>
#include <vector>

#include "../snippet/spec_facts.hpp"
#include "../snippet/splice.hpp"
#include "engine/value.hpp"

namespace tilewright {

/// A read that a kernel does ahead of its loop over lanes, where compilers would read lane by lane,
/// or give up if `&&`, `||` or `if` guards the read. See BufferRead::is_hoistable.
struct HoistedRead {
  std::string name;           ///< the variable that takes its place: "doc_at_kv"
  std::string buffer;         ///< "doc"
  std::string indices;        ///< "b, kv_idx"
  bool names_q_idx = false;   ///< differs from row to row
  bool names_kv_idx = false;  ///< differs from column to column; never both
};

/// The reads that the snippets of one kernel share.
class ReadsAhead {
 public:
  /// The name of the variable that holds the read.
  const std::string& name_of(const snippet::BufferRead& read);
  const std::vector<HoistedRead>& reads() const { return reads_; }

 private:
  std::vector<HoistedRead> reads_;
};

/// The user's text with `tw_loads.<name>` in the place of each hoistable read.
/// @param ahead  null: reads stay where they are
jinja::Splice spliced_snippet(const AnalysedSnippet& user, LiteralType literals, ReadsAhead* ahead);

/// The text of a tree that was made from the user's; all of it points to the beginning of his.
jinja::Splice printed_snippet(const AnalysedSnippet& user, const snippet::SnippetTree& tree,
                              const snippet::SnippetFacts& facts, LiteralType literals,
                              ReadsAhead* ahead);

}  // namespace tilewright
