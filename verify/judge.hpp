#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../generator/dtype.hpp"
#include "attention_values.hpp"

namespace tilewright::verify {

// When a result is right (docs/decisions/0006-when-a-result-is-right.md). Three results are
// compared:
//
//   got        what the kernel wrote, every element read exactly
//   reference  attention in double (reference.hpp)
//   naive      attention with S and P rounded to the spec's dtype and sums in float32 (naive.hpp)
//
// An element counts if the reference, rounded to out's dtype, is finite there. Over those elements
//
//   error_max = max |got - reference|                     at most bound_max
//   error_rms = sqrt(mean (got - reference)^2)            at most bound_rms
//   bound_max = 2 naive_max + 2 ulp(max |reference|)  + fast max |reference|
//   bound_rms = 2 naive_rms + ulp(rms reference) / 4  + fast rms reference
//
//   naive_max, naive_rms   the same errors of naive, where naive is finite
//   ulp(x)    spacing at magnitude x of the spec's dtype or of out's, whichever is wider
//   fast      2^-11 max |score| where the kernel's snippets use fast functions, else 0. An error of
//             that size in every score scales the softmax's denominator by exp(+-fast), and with it
//             both lse and the size of out.
//
// Elsewhere got must hold the same NaN or infinity as the reference rounded to out's dtype; and it
// must be finite where that is. lse, for each row with a finite reference:
//
//   |lse - reference| <= 2e-3                        spec's dtype f16 or bf16
//                        1e-5 max(1, |reference|)    spec's dtype f32
//                        + fast
//
// and the same infinity or NaN where the reference has one.

/// What the bounds depend on besides the results.
struct Rule {
  DType dtype = DType::f32;      ///< the spec's: S and P of naive are rounded to it
  DType out_dtype = DType::f32;  ///< what the kernel wrote
  /// Greatest magnitude of a modified score; given only where the kernel's snippets use fast
  /// functions (CUDA without precise_math).
  std::optional<double> fast_math_score = {};
};

/// An element that is wrong.
struct BadElement {
  std::string tensor;  ///< "out" or "lse"
  std::int64_t b = 0;
  std::int64_t h = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;  ///< of out; 0 for lse
  double got = 0;
  double wanted = 0;  ///< the reference

  /// "out[b 0, h 3, row 17, column 5] is 0.25, but the reference is 0.125"
  std::string describe() const;
};

/// The outcome: numbers as the rule above names them, and each reason why the result is wrong.
struct Verdict {
  bool ok = true;
  double error_max = 0;
  double error_rms = 0;
  double bound_max = 0;
  double bound_rms = 0;
  double naive_max = 0;
  double naive_rms = 0;
  double lse_error = 0;  ///< at the row that comes nearest to its bound
  double lse_bound = 0;  ///< of that row
  std::optional<BadElement> first_bad =
      {};  ///< for an RMS error alone: the element that is furthest off
  std::vector<std::string> reasons = {};  ///< one sentence each; empty if ok
};

/// How far lse may be from the reference in a row.
double lse_bound(double reference, const Rule& rule);

/// Applies the rule. lse is judged where both `got` and `reference` hold it.
/// @throws Error with code usage where the sizes of the results differ
Verdict judge(const AttentionValues& got, const AttentionValues& reference,
              const AttentionValues& naive, const Rule& rule);

}  // namespace tilewright::verify
