#pragma once

#include "../generator/spec/spec.hpp"
#include "../verify/random.hpp"
#include "expression.hpp"
#include "snippet_wish.hpp"

namespace tilewright::verify::fuzz {

// Random snippets have no undefined behaviour, whatever the call: every integer is tracked with the
// interval that it lies in, so nothing overflows, divides by zero or shifts too far, and every
// index is inside its buffer. Their results do not hang on rounding either, or an honest kernel
// would be judged wrong: a truth compares integers, or floats that are exact in every
// interpretation, and a score's size and its steepness in `score` stay small.

/// Makes snippets for one spec, and declares the buffers and scalars that they read in it.
class SnippetMaker {
 public:
  SnippetMaker(Spec& spec, Random& random) : spec_(spec), random_(random) {}

  SnippetTree score_mod(const SnippetWish& wish);
  SnippetTree mask_mod(const SnippetWish& wish);

 private:
  Spec& spec_;
  Random& random_;
};

}  // namespace tilewright::verify::fuzz
