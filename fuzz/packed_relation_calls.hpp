#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../verify/random_inputs.hpp"
#include "../verify/sequences.hpp"
#include "packing.hpp"
#include "relation_calls.hpp"
#include "relations.hpp"

namespace tilewright::verify::fuzz {

/// A packed spec and the inputs of a call, both to be changed. Every tensor of its sequences is
/// given.
struct PackedRelationCall {
  Spec spec;
  Inputs inputs;
  std::vector<std::int64_t> q_begin;
  std::vector<SequenceRows> rows;

  PackedRelationCall(const Spec& spec, const Inputs& inputs, const FuzzPacking& packing);
  PackedRelationCall(const PackedRelationCall& other);
  PackedRelationCall& operator=(const PackedRelationCall&) = delete;

  AttentionValues run(RelationRunner& runner) const;

  std::int64_t batch() const { return static_cast<std::int64_t>(rows.size()); }
  /// Sequences with rows, and with columns too.
  std::vector<std::size_t> filled() const;
  /// Whether a snippet tells sequences or tokens apart, by itself or by a buffer's extents.
  bool tells_sequences_apart() const;

  /// All sequences but one have neither rows nor columns; it keeps its number, rows and tokens.
  void empty_others(std::size_t b, const SequenceRows& rows_of_b);
  /// One sequence alone, in tensors that hold nothing else. For snippets that tell none apart.
  void keep_alone(std::size_t b);
  /// Sequence i becomes what sequence order[i] was, with its rows of q; its rows of k stay where
  /// they are. Snippets see b and q_token as they were.
  void permute(const std::vector<std::size_t>& order);
  /// Each sequence has rows of k and v that no other has.
  void keep_apart();
  /// Columns first .. last - 1 of a sequence become zeros in k and v.
  void zero_columns(std::size_t b, std::int64_t first, std::int64_t last);
  /// One sequence as a dense call.
  RelationCall dense(std::size_t b) const;
};

/// Sequences with rows, and with columns too.
std::vector<std::size_t> filled_sequences(const std::vector<SequenceRows>& rows);

/// Whether a snippet knows the rows of k, by kv_token or a buffer's extents.
bool knows_rows_of_k(const Spec& spec);
/// Where rows of k lie elsewhere, snippets see the rows of before: those that a new buffer has
/// [total_kv]. Other buffers of that dimension get a free one.
/// @return the buffer's name
std::string remember_rows_of_k(Spec& spec);
/// Whether new rows in the spec's dtype can be what rows of k are, and no snippet knows the latter.
bool suits_new_rows(const Spec& spec);
/// Whether a call may have some of a sequence's columns alone: no snippet knows how many there are.
bool suits_ranges(const Spec& spec);

/// The side of a dense block mask that may stand for mask_mod as lists over positions. None where
/// mask_mod names what only one sequence has, where a sequence has a kv_offset, and where the mask
/// would have more than 4096 rows.
std::optional<std::int64_t> length_of_positions(const Spec& spec,
                                                const std::vector<SequenceRows>& rows);

/// Rows of a packed result.
AttentionValues rows_of(const AttentionValues& all, std::int64_t first, std::int64_t count);

}  // namespace tilewright::verify::fuzz
