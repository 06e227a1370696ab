#pragma once

#include <string>
#include <vector>

#include "../snippet/spec_facts.hpp"

namespace tilewright {

/// What a kernel says above a snippet's function: the user's text, and which fast paths changed it
/// into the form that follows. Each line can follow `//`: none has a line break, or ends with what
/// joins the next line to it.
/// @param form  of score_mod
std::vector<std::string> snippet_comment(const SpecFacts& facts, SnippetKind kind, ScoreForm form);

}  // namespace tilewright
