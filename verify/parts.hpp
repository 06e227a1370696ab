#pragma once

#include <cstdint>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../templates/abi/cpu.hpp"
#include "problem.hpp"
#include "reference.hpp"
#include "scale_values.hpp"
#include "sequences.hpp"
#include "snippet_evaluator.hpp"

namespace tilewright::verify {

/// The dense pieces of a call: the whole of a dense call, or each sequence of a packed one.
class Parts {
 public:
  /// What the snippets see of a part, and where the part lies.
  struct Piece {
    abi::SnippetArguments arguments;
    std::int64_t b = 0;          ///< number of its first batch
    std::int64_t batch = 1;      ///< batches
    std::int64_t row = 0;        ///< first row of q in out
    std::int64_t kv_row = 0;     ///< first row of k
    SequenceRows sequence = {};  ///< of a packed call

    std::int64_t rows() const { return arguments.q_len; }
    std::int64_t columns() const { return arguments.kv_len; }
    /// Rows of scores.
    std::int64_t score_rows() const { return batch * arguments.num_q_heads * arguments.q_len; }
  };

  /// Keeps views of the problem's tensors.
  /// @param scales  of a spec that has scales or a sink; none where only places or stored values
  ///                are asked for
  /// @throws Error as SnippetValues
  Parts(const Spec& spec, const Problem& problem,
        SnippetValues::Extents extents = SnippetValues::Extents::physical, ScaleValues scales = {});

  const std::vector<Piece>& pieces() const { return pieces_; }

  /// Reads the tensors of one part as products see them, multiplied by their scales.
  DenseProblem read(const Piece& piece, F32Products products = F32Products::ieee) const;

 private:
  DenseProblem read_stored(const Piece& piece) const;

  const Spec& spec_;
  Problem problem_;
  SnippetValues values_;
  ScaleValues scales_;
  std::vector<Piece> pieces_;
};

/// Puts a part's rows where they lie in the whole call's values; without elements these become the
/// part's.
void put_rows(Values part, const Parts::Piece& piece, Values& whole);

void put_rows(BoundSizes part, const Parts::Piece& piece, BoundSizes& whole);

/// A part's rows of the whole call's values.
Values take_rows(const Values& whole, const Parts::Piece& piece);
BoundSizes take_rows(const BoundSizes& whole, const Parts::Piece& piece);

}  // namespace tilewright::verify
