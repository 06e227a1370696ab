#pragma once

#include <optional>

#include "../spec/spec.hpp"
#include "tree.hpp"

namespace tilewright::snippet {

/// What stands for a DifferenceValue in score_mod.
inline constexpr const char* kDifferenceValueName = "tw_by_difference";

/// The costliest part of score_mod that depends on rows and columns by their difference alone, such
/// as `bias(h, kv_idx - q_idx + q_len - 1)`. Elements of a tile have few differences, so a kernel
/// finds it once for each of them.
struct DifferenceValue {
  Expression value = {};  ///< a floating number, without locals
  SnippetTree rest = {};  ///< score_mod with the variable kDifferenceValueName in its place
};

/// The value that reads a buffer or calls a costly function with the difference in it; of several
/// those that read come first, then the one with most nodes. Where score_mod may be reshaped,
/// values that are added to one sum are one.
///
/// None where indices need bounds: the value is also found for differences that no element has.
/// @param tree  of a score_mod
std::optional<DifferenceValue> difference_value(const SnippetTree& tree, const Spec& spec);

}  // namespace tilewright::snippet
