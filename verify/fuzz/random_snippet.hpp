#pragma once

#include <cstdint>

#include "../../generator/spec.hpp"
#include "../random.hpp"
#include "expression.hpp"
#include "features.hpp"

namespace tilewright::verify::fuzz {

// Random snippets have no undefined behaviour, whatever the call: every integer is tracked with the
// interval that it lies in, so nothing overflows, divides by zero or shifts too far, and every
// index is inside its buffer. Their results do not hang on rounding either, or an honest kernel
// would be judged wrong: a truth compares integers, or floats that are exact in every reading, and
// a score's size and its steepness in `score` stay small.

/// Greatest magnitude of q_idx and kv_idx, and greatest lengths and heads, that snippets are made
/// for; a call beyond them may overflow.
inline constexpr std::int64_t kMaxIndex = 4000;
inline constexpr std::int64_t kMaxLength = 2048;
inline constexpr std::int64_t kMaxHeads = 64;
/// Values of the scalars that snippets declare: i32 from 1 to 64, f32 from 0.5 to 2.
inline constexpr std::int64_t kMaxIntegerScalar = 64;

/// What a snippet is asked to hold. Bits are those of features.hpp; what is not asked for may be
/// there too.
struct SnippetWish {
  Features features = {};
  bool is_body = false;
  /// q_idx and kv_idx start at 0, so that they index buffers of q_len and kv_len as they are.
  bool no_offsets = false;
};

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
