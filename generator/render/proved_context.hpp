#pragma once

#include <string_view>
#include <vector>

#include "../snippet/spec_facts.hpp"
#include "engine/value.hpp"
#include "extrema_table.hpp"

namespace tilewright {

/// The variable `proved` of templates/snippet/proved.hpp.jinja: mask_mod spliced for the interval
/// interpretation, with the buffers and scalars that it mentions and the tables of its buffers.
/// @param undecided_header template with the target's tw_undecided()
/// @param tables of extrema_tables(facts), or none where the kernel has no memory for them
jinja::Value proved_context(const SpecFacts& facts, std::string_view undecided_header,
                            const std::vector<ExtremaTable>& tables);

/// The variable `tables` of the templates that make tables of extrema: {buffer, element, number,
/// rank} of each of extrema_tables(spec), in their order.
jinja::List tables_context(const SpecFacts& facts);

/// The variable `promised` of plan.cu.jinja: the same of each of promised_buffers(facts).
jinja::List promised_context(const SpecFacts& facts);

}  // namespace tilewright
