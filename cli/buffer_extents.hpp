#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/verb.hpp"
#include "generator/spec/spec.hpp"

namespace tilewright::cli {

/// --buffer, whose texts parse_buffer_extents reads.
CLI::Option* add_buffer_option(CLI::App& app, std::vector<std::string>& texts);

/// Reads `NAME=d0,d1`, repeated: the extents of a buffer's null dimensions, in their order.
/// @throws Error with code usage for another form, a buffer that the spec lacks, another number of
///         extents than the buffer has null dimensions, or a name that is given twice
std::map<std::string, std::vector<std::int64_t>> parse_buffer_extents(
    const Spec& spec, const std::vector<std::string>& texts);

}  // namespace tilewright::cli
