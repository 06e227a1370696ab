#pragma once

#include <span>
#include <string>
#include <string_view>

#include "../spec/spec.hpp"
#include "snippet.hpp"

namespace tilewright {

/// Whether append divides new rows by k_scale or v_scale.
bool append_divides(const Spec& spec);

/// The first of `names` that a spec's scale names, as in `k_scale names kv_idx`; empty if it names
/// none.
std::string first_named(const Spec& spec, SnippetKind scale,
                        std::span<const std::string_view> names);

/// What k_scale or v_scale names that a slot does not say, as in `k_scale names kv_idx`; empty if
/// they name h_kv, kv_token, buffers and scalars alone.
std::string named_beside_slots(const Spec& spec);

}  // namespace tilewright
