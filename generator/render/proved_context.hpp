#pragma once

#include <string_view>

#include "../snippet/spec_facts.hpp"
#include "engine/value.hpp"

namespace tilewright {

/// The variable `proved` of templates/snippet/proved.hpp.jinja: mask_mod spliced for the interval
/// reading, with the buffers and scalars that it mentions and the tables of its buffers.
/// @param undecided_header template with the target's tw_undecided()
jinja::Value proved_context(const SpecFacts& facts, std::string_view undecided_header);

/// The variable `tables` of the templates that make tables of extrema: {buffer, element, number,
/// rank} of each of extrema_tables(spec), in their order.
jinja::List tables_context(const SpecFacts& facts);

}  // namespace tilewright
