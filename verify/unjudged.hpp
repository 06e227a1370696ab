#pragma once

#include <cstdint>

#include "../generator/spec/dtype.hpp"
#include "attention_values.hpp"
#include "reference.hpp"

namespace tilewright::verify {

/// Why an element or a row of a result is not judged.
enum class NotJudged : std::uint8_t {
  no,        ///< it is judged
  spread,    ///< NaN or infinity of v may have spread to it inside of a tile (value_spread.hpp)
  weight,    ///< infinity of v reaches it, and is NaN where a weight is rounded to 0
  scale,     ///< a scale of NaN or infinity reaches it (odd_scales.hpp)
  overflow,  ///< float32 overflows on the way to it (float_overflow.hpp)
};

/// Which parts of a call's results are not judged, each element a NotJudged. All of them without
/// elements where everything is judged.
struct Unjudged {
  Values infinite = {};  ///< of out: NaN and infinity are right there too; spread, weight, overflow
  /// [batch, num_q_heads, q_len, 1]: nothing of a row is judged, of out, and of lse, max_scores and
  /// weights.
  Values out_rows = {}, score_rows = {};
};

/// Elements of out that are not judged, and those of which nothing is to be learnt.
struct UnjudgedCounts {
  std::int64_t spread = 0;
  std::int64_t scale = 0;
  std::int64_t overflow = 0;
  /// Judged ones of rows that keep no score: they are 0 whatever the inputs hold.
  std::int64_t unreached = 0;

  std::int64_t all() const { return spread + scale + overflow; }
};

/// A result and the reference that it is judged by. Both are NaN where the result is not judged, so
/// that nothing there counts in an error or in a bound.
struct Judged {
  AttentionValues got, reference;
  UnjudgedCounts counts = {};
};

/// Rule::large.
Values large_elements(const Unjudged& unjudged);

/// Makes NaN of the reference's rows that are not judged, the sizes of their scores too.
void leave_out(const Unjudged& unjudged, Reference& reference);

/// The same for a result. An element that may be infinite, and is, is left out too.
/// @param reference of which leave_out was called
/// @param naive     NaN where an infinite reference may be NaN for a weight of 0
Judged leave_out(const Unjudged& unjudged, const AttentionValues& reference,
                 const AttentionValues& naive, DType out_dtype, AttentionValues got);

}  // namespace tilewright::verify
