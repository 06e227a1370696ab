#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "random_inputs.hpp"
#include "random_pages.hpp"

namespace tilewright::verify {

/// Lengths of the sequences of a packed call.
struct PackedLengths {
  struct Sequence {
    std::int64_t q_len = 0;
    std::int64_t kv_len = 0;
  };

  std::int64_t num_q_heads = 1;
  std::int64_t num_kv_heads = 1;
  std::vector<Sequence> sequences;
  std::int64_t kv_offset = 0;  ///< of every sequence; not 0: the call has a kv_offset tensor
  PageOptions pages = {};
  bool has_new_rows =
      false;  ///< of a spec with kv_new: pages hold the columns before the last q_len

  /// Rows after the last sequence's rows of q, and before, between and after those of k: they
  /// belong to none.
  static constexpr std::int64_t kGap = 5;
  std::int64_t total_q() const;
  std::int64_t total_kv() const;
  std::vector<std::int64_t> kv_lens() const;
  /// Columns of each sequence that pages hold.
  std::vector<std::int64_t> lens_in_pages() const;
};

/// The tensors of one packed call, owned.
struct PackedInputs {
  Inputs inputs;  ///< q, k and v of rank 3, pools of rank 4; its shape as Problem::shape
  Tensor q_begin;
  std::optional<Tensor> kv_begin;  ///< [batch]; with [batch + 1] the call is not given kv_len
  Tensor kv_len;
  std::optional<Tensor> page_table;
  std::optional<Tensor> page_begin;
  std::int64_t page_size = 0;
  std::optional<Tensor> kv_offset;

  /// Views of them; the inputs must outlive it.
  Problem problem() const;
};

/// What Problem::shape is for these lengths.
Shape shape_of(const PackedLengths& lengths);

/// Random inputs as random_inputs makes them, for a packed spec. Rows of q and k and v that belong
/// to no sequence are NaN.
/// @throws Error with code tensor for sizes that no kernel can run, with code memory; with code
///         usage as random_pages
PackedInputs random_packed_inputs(const Spec& spec, const PackedLengths& lengths,
                                  std::uint64_t seed, const RandomOptions& options = {});

}  // namespace tilewright::verify
