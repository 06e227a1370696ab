#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "jinja/value.hpp"
#include "snippet.hpp"
#include "spec.hpp"

namespace tilewright {

/// A read of a buffer whose indices are plain variables and do not name both q_idx and kv_idx, as
/// `doc(b, kv_idx)`: the same for a whole column of scores, or for a whole row. Vector kernels read
/// such values ahead of the loop over lanes, where compilers would read them lane by lane, or give
/// up where the read stands behind `&&`, `||` or `if`.
struct HoistedRead {
  std::string name;           ///< the variable that takes its place: "tw_read_0"
  std::string buffer;         ///< "doc"
  std::string indices;        ///< "b, kv_idx"
  bool names_q_idx = false;   ///< differs from row to row
  bool names_kv_idx = false;  ///< differs from column to column; never both
};

/// The reads of one snippet, and where they stand.
class HoistedReads {
 public:
  /// Finds the reads that may be done ahead: not of a trusted buffer, whose read may be guarded by
  /// a condition; and none at all where the snippet declares a variable of the same name as an
  /// index.
  /// @param reads those of another snippet of the kernel, to which the new ones are added
  HoistedReads(const Snippet& snippet, const Spec& spec, std::vector<HoistedRead>& reads);

  /// How many places of the snippet are replaced.
  std::size_t count() const { return occurrences_.size(); }

  /// The snippet's splice with `tw_reads.<name>` in place of each read.
  jinja::Splice replace_in(const jinja::Splice& splice) const;

 private:
  struct Occurrence {
    std::size_t begin;  // in the snippet
    std::size_t end;
    std::string replacement;
  };

  std::size_t offset_of(int line, int column) const;
  jinja::Splice::Piece piece(std::size_t begin, std::size_t end) const;
  void append_replaced(const jinja::Splice::Piece& piece,
                       std::vector<jinja::Splice::Piece>& pieces) const;

  std::string text_;
  std::vector<std::size_t> line_starts_;
  std::vector<Occurrence> occurrences_;
};

/// Whether a snippet reads buffers for whole heads only: it mentions some, and every read of them
/// may be done ahead and names neither q_idx nor kv_idx.
bool reads_for_heads_only(const Snippet& snippet, const Spec& spec);

}  // namespace tilewright
