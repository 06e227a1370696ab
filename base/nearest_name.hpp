#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// The candidate that `name` was probably meant to be: the least Damerau-Levenshtein distance, case
/// ignored, if at most a third of the name's length (at least 1, at most 3) has to change. Among
/// equals one whose letters are only swapped, then the first. None for one letter; for two only
/// another case or order; for three also one change after the first letter.
std::optional<std::string> nearest_name(std::string_view name,
                                        std::span<const std::string> candidates);

/// "did you mean "head_dim"?", or an empty text where no candidate is near.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

/// `"a", "b" or "c"`, for messages that list what is allowed.
std::string one_of(std::span<const std::string> names);

}  // namespace tilewright
