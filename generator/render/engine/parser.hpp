#pragma once

#include <memory>

#include "ast.hpp"
#include "token_stream.hpp"

namespace tilewright::jinja {

/// Parses a template.
/// @throws PlacedComplaint with the first thing that is wrong
std::unique_ptr<const Template> parse_template(TemplateText source);

}  // namespace tilewright::jinja
