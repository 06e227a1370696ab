#pragma once

#include <string>
#include <vector>

#include "../spec/spec.hpp"
#include "tree.hpp"

namespace tilewright::snippet {

/// One read of a buffer, where the text has it.
struct BufferRead {
  std::string buffer;
  std::vector<Expression> indices = {};  ///< without locals
  SourceRange range = {};
  bool names_q_idx = false;   ///< differs from row to row
  bool names_kv_idx = false;  ///< differs from column to column
  /// Its indices are plain variables that do not name both q_idx and kv_idx, and the buffer is not
  /// trusted: a kernel reads it once for a head, a row or a column.
  bool is_hoistable = false;
  /// Each index is a sum of indices, lengths and whole numbers, or clamped to such a sum without
  /// q_idx and kv_idx: over a tile it is least and greatest at corners.
  bool is_linear = false;
  bool has_own_element = false;  ///< for each q_idx and kv_idx, which are in different indices
};

/// "doc(b, kv_idx)", without what encloses indices: "b, kv_idx".
std::string indices_text(const BufferRead& read);

/// What a kernel may rely on. Of an opaque snippet everything is unknown: each fact has the value
/// that is right whatever the text does.
struct SnippetFacts {
  bool is_opaque = false;
  std::vector<BufferRead> reads = {};  ///< in the order of the text; none if opaque
  bool has_loop = false;
  bool divides = false;  ///< has a `/` or `%`
  bool has_lambda = false;
  bool takes_sizes = false;  ///< `x.size(d)`
  /// Indices that the call does not have could do harm: by an endless loop, a division of integers
  /// by 0, or a read of a trusted buffer.
  bool needs_bounded_indices = false;
  /// Takes `kv_idx - q_idx` or `q_idx - kv_idx`, and deduces no type from an index: indices may be
  /// classes in place of ints (templates/cuda/snippet/index.hpp).
  bool takes_index_difference = false;
  /// A buffer's read must be a plain number: two types are made one or a type is deduced, or both
  /// sides of && must not be evaluated, as one changes a variable
  /// (templates/cuda/snippet/buffer.hpp).
  bool needs_plain_reads = false;
};

SnippetFacts find_facts(const SnippetTree& tree, const Spec& spec);

/// The reads that are no hoistable ones, if all of them are linear; none if one is not.
std::vector<BufferRead> linear_reads(const SnippetFacts& facts);

/// All reads, if all of them are linear, no index is clamped, and at least one is not hoistable;
/// else an empty list. For kernels that hoist no reads.
std::vector<BufferRead> reads_by_sums(const SnippetFacts& facts);

}  // namespace tilewright::snippet
