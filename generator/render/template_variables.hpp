#pragma once

#include <cstdint>
#include <string_view>

#include "../snippet/interpretation.hpp"
#include "../snippet/spec_facts.hpp"
#include "../tactic/tactic.hpp"
#include "engine/value.hpp"

namespace tilewright {

class ReadsAhead;

/// Reads that all lanes of a vector kernel share, and reads that differ from lane to lane and from
/// nothing else, are done ahead of the loop over lanes (read_ahead.hpp). A GPU's thread takes
/// its rows of a tile for lanes.
enum class ReadAhead : std::uint8_t {
  no,                 ///< one element at a time
  lanes_are_rows,     ///< q_idx differs from lane to lane
  lanes_are_columns,  ///< kv_idx does
};

/// An element of a buffer in memory, as templates name it. Snippets have integers of two sizes, and
/// a bool is 0 or 1.
std::string_view element_type(DType dtype);

/// What the elements of q, of k and v, and of out are: float, Half or BFloat16 as q_type, kv_type,
/// out_type; whether k and v are in pages of paged_x; and whether rows of tensors have fewer
/// columns than those of tiles, and how many: padded, head_columns, value_columns.
jinja::Map dtype_context(const Spec& spec);

/// The variables that templates/snippet/snippets.hpp.jinja reads: the snippets, spliced for one
/// interpretation, and the buffers and scalars that they mention.
jinja::Map snippet_context(const SpecFacts& facts, const Interpretation& interpretation,
                           ReadAhead read_ahead, ScoreForm form = ScoreForm::as_written);

/// What a kernel's score_mod takes as tw_by_difference, as templates/snippet/snippets.hpp.jinja
/// reads it.
/// @param ahead  null: reads stay where they are
jinja::Value difference_value(const SpecFacts& facts, const AnalysedDifference& difference,
                              const Interpretation& interpretation, ReadsAhead* ahead = nullptr);

/// The same with what templates/cpu/*.cpp.jinja read: shapes, types and tiles.
/// @param masked whether the kernel follows a block mask
/// @param lse whether it writes lse
jinja::Map cpu_context(const SpecFacts& facts, const CpuTactic& tactic,
                       const Interpretation& interpretation, ReadAhead read_ahead, bool masked,
                       bool lse);

/// Whether a kernel stores values divided by the spec's scales: append of a spec with scales, and
/// quantise.
bool divides(const KernelVariant& variant, const Spec& spec);

}  // namespace tilewright
