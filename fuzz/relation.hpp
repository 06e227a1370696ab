#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "../generator/spec/spec.hpp"
#include "../runtime/api/shape.hpp"

namespace tilewright::verify::fuzz {

/// What holds between two calls of attention, whatever it computes: no reference is asked.
enum class Relation : std::uint8_t {
  permuted_keys,     ///< keys in another order, the snippets' kv_idx with them: the same
  split_keys,        ///< two calls that mask_mod divides the keys between, merged by lse: the same
  added_constant,    ///< score_mod + c: the same out, lse + c
  mask_as_score,     ///< mask_mod(p) is score_mod(p ? s : -INFINITY)
  tactics,           ///< other tiles, stages and warps, other blocks, one thread: the same
  duplicated_keys,   ///< every key twice: the same out, lse + ln 2
  one_head,          ///< a head alone is that head among others
  one_batch,         ///< a batch alone likewise
  linear_in_v,       ///< out of v + w is out of v plus out of w; of 2 v it is twice that, exactly
  padding,           ///< further keys that mask_mod drops change nothing, NaN in k included
  offsets,           ///< q_offset and kv_offset are snippets with shifted indices
  proved_mask,       ///< a block mask by intervals is the one by evaluation
  json_spec,         ///< a spec that was written as JSON and read is the same, bit for bit
  equal_scales,      ///< scales of k and v of a tensor, a head or a row, of equal values: the same
  no_sink,           ///< a sink of -infinity is none
  cached,            ///< kernels from a folder give the same, bit for bit
  reversed_batches,  ///< no snippet knows b: gradients of each batch are the same, bit for bit
  doubled_dout,      ///< twice dout and dlse: twice each gradient, exactly; of packed calls too
  no_dropout,        ///< a probability of 0 equals no dropout, and none changes lse; packed too
  seed_in_buffer,    ///< a seed in a buffer draws as a scalar, and the reverse; packed too
  // of packed calls
  one_sequence,  ///< where all others are empty, a sequence is what it is among them, bit for bit
  permuted_sequences,  ///< sequences in another order, the snippets' b and q_token with them
  packed_as_dense,     ///< a sequence is a dense call
  planned_again,       ///< what the workspace held, and a plan that was rebuilt, change nothing
  positions,           ///< a dense call's block mask, given as positions, keeps what mask_mod keeps
  paged,               ///< K and V in pages, in whatever order, sizes and tables: the same
  new_rows,       ///< rows appended to pages, or outside of them as kv_new: the same, bit for bit
  merged_ranges,  ///< two calls over parts of each sequence's columns, merged: the same
  lying_lengths,  ///< lengths that lie are clamped and reported, and nothing outside is written
};

/// "permuted_keys", ...
std::string_view to_string(Relation relation);
/// @throws Error with code file for a name that is none
Relation relation_from_string(std::string_view name);
std::span<const Relation> all_relations();

/// Whether it is one of packed calls alone.
bool is_of_packed(Relation relation);
/// Whether it is one of gradients, and says something of specs that name some.
bool is_of_gradients(Relation relation);

/// Whether it is one of dropout, and says something of specs that have it.
bool is_of_dropout(Relation relation);

/// Whether it says anything of such calls: a single head is no head among others. Some relations
/// are of packed calls alone, the others but doubled_dout and those of dropout of dense ones.
bool applies(Relation relation, const Spec& spec, const Shape& shape);

}  // namespace tilewright::verify::fuzz
