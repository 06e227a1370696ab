#pragma once

#include <span>
#include <string>
#include <vector>

#include "generator/spec/target.hpp"

namespace tilewright::cli {

/// What the user of a target should know: no GPU asks for sm_90 or sm_100f, since from sm_90 on
/// each asks for the target that ends in "a". Empty for a target that a GPU or CPU asks for.
std::string target_note(const Target& target);

/// The notes of several targets, and each on stderr.
std::vector<std::string> say_target_notes(std::span<const Target> targets);

}  // namespace tilewright::cli
