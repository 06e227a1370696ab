#pragma once

#include <string>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../verify/random.hpp"

namespace tilewright::verify::fuzz {

/// The names that the spec's gradients may have, by the library's own checks, if its outputs named
/// lse and its products were IEEE's: of q, k and v, buffers and scalars. Empty where such a spec
/// has no backward pass.
std::vector<std::string> possible_gradients(const Spec& spec);

/// @throws Error as those checks, where the spec can name no gradients, or where those that it
/// names need a derivative that is unknown
void require_possible_gradients(const Spec& spec);

/// Names some of them in the spec, at least one, and lse; nothing where none is possible.
/// @param named  buffers and scalars too, at least one where there is one
void choose_gradients(Spec& spec, bool named, Random& random);

}  // namespace tilewright::verify::fuzz
