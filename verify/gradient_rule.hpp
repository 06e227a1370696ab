#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../generator/spec/dtype.hpp"

namespace tilewright::verify {

// When a gradient is right (docs/gradients.md). It is compared with the double reference:
//
//   each error at most 2 naive_max + 2 ulp(max |reference|) + 2^-22 A + own
//   error_rms at most 2 naive_rms + ulp(rms reference) / 4 + 2^-22 A + rms of own
//
//   naive   S, P, dP and dS rounded to the spec's dtype, sums in float32, results rounded; in 16
//           bits the worst of four draws, three of which round stochastically, as few elements may
//           have a small naive error by chance
//   A       the greatest sum of absolute terms of an element, such as
//           scale * sum P (sum |dout v| + sum |dout out| + |dlse|) |f'| |k|: a gradient that
//           cancels has errors of its terms, and so have the dot products dP = dout . v and delta =
//           dout . out - dlse. Rounding each partial sum of n products t leaves 2^-26 sum |t| (one
//           standard deviation) where the sum walks at random. Of buffers and scalars adding up n
//           terms dY g leaves sqrt(n) 2^-24 of the greatest sum of |dY g| more.
//           With fast functions A counts 2^-10 of a typical row's greatest |score| more
//           (typical_score in bound_sizes.hpp): score_mod may take off in one row what its
//           functions add, and a derivative like that of tanh, 1 - tanh^2, may be off by more than
//           a share of itself. So the greatest A counts, and not the element's.
//   own     of the element: 2^-22 W, and with fast functions 2^-10 S more. A row of huge scores
//           widens what its own terms are part of, and nothing else.
//   W       the sum, over the terms of the element, of |m| times the term's magnitude, m being the
//           greatest score of the term's row: of dq scale * |m| P |dP - delta| |f'| |k|, of dv
//           |m| P |dout|. Four float32 roundings have the size of m, those of the score, of the
//           stored lse, and of each times log2(e), so P = exp(score - lse) is off by 2^-22 |m| of
//           itself, and P's factor dP - delta is what that changes: a row whose weight lies on one
//           key has a small one, however large A is.
//   S       the sum, over the terms of the element, of max |score| of the term's row, of scores
//           that have a weight in float32, times A's term: an error of 2^-11 of a score changes its
//           weight by that share, and the denominator's of forward by as much.
//
// Buffers and scalars of a spec in 16 bits. Its kernels compute P, dP, delta and dY in float32 from
// products of 16-bit numbers, which are exact, and round them for matrix products alone. A result
// of theirs for a known out must also be right for a naive that keeps S, P, dP and dY in float32,
// with the ulp of the gradient's dtype, and in place of 2^-22 A + own the sum over the element's
// terms of
//
//   |dY g| (2^-22 m + E) + max(2^-22, 2^-27 v_head_dim) A's term     and what fast functions add
//
//   E       2^-27 head_dim (X + the row's X), and 2^-15 where there is a score_mod; X is
//           |scale f'| sum |q k|, and the row's X the greatest with a weight in float32
//   2^-27   A tensor core adds 16 products at a time to what it has, and loses at most 2^-23 of the
//           sum, head_dim / 16 times. lse, from forward, has as much of the row's scores.
//   2^-15   16-bit kernels on GPUs round a float times q_idx - kv_idx relative to a tile's first
//           indices, so a score is off by an ulp of 256 times the float (docs/math.md): 2^-15 below
//           2. That is a 64th of what forward's lse may be off by. A greater float has greater
//           errors, of either sign, in a sum that here adds up magnitudes.
//
// All of these are of the elements whose reference, rounded to the gradient's dtype, is finite, and
// that are not left out. Finite elements that float32 may not hold are judged among themselves, so
// that they widen no bound of the others.
//
// A score that lies within rounding of a kink of score_mod has either side's derivative
// (kinks.hpp). By how much that changes an element, which is no error, is added to its bound, and
// taken off naive's error; the RMS bound grows by what that takes off the RMS error. So is what
// terms bring whose P is below kLeastSureWeight: exp2 gives 0 for it, and the element lacks its
// terms, of dq P |dP - delta| |f'| |k| scale, and no more. It shows where nothing else is in the
// element, as where a sink is 86 to 104 above all scores.
//
// NaN and infinity stand where the reference has them. Those of q, k, v, dout and dlse also spread
// through dropped elements of a tile that keeps something, where the reference has numbers: an
// element that they may reach so may hold NaN or infinity (gradient_spread.hpp). So may one that
// float32 overflows on the way to. Then it is left out.

inline constexpr double kShareOfTerms = 0x1p-22;
inline constexpr double kShareOfScore = 0x1p-22;
inline constexpr double kShareOfFastFunctions = 0x1p-10;
inline constexpr double kShareOfProducts = 0x1p-27;  ///< for each column of the product
inline constexpr double kErrorOfIndices = 0x1p-15;

/// One gradient of a call, element by element.
struct ComparedGradient {
  std::string name;          ///< "dq", "dk", "dv", "d_slopes"
  DType dtype = DType::f32;  ///< of `got`
  std::vector<double> got = {}, reference = {};
  std::vector<std::vector<double>> naive = {};  ///< draw by draw
  std::vector<double> terms = {};               ///< of which A is the greatest
  std::vector<double> own = {};                 ///< what each may be off by for its rows' scores
  std::vector<double> magnitudes = {};  ///< of a buffer or scalar: the sums of |dY g|, else empty
  std::vector<double> ambiguous = {};   ///< how far an element may be off without being wrong
  std::vector<double> spread = {};      ///< not 0 where NaN or infinity of an input may be
  std::vector<double> overflow = {};    ///< as GradientSizes has it
  /// Of a buffer or scalar: GradientSizes::derivative_overflow, else empty.
  std::vector<double> derivative_overflow = {};
  double share_of_terms = kShareOfTerms;
  double share_of_magnitudes = 0;  ///< sqrt(n) 2^-24
  /// The dtype whose ulp counts besides `dtype`'s: what terms are rounded to.
  DType dtype_of_terms = DType::f32;
};

struct GradientVerdict {
  bool ok = true;
  double error_max = 0;  ///< of the element that comes nearest to its bound
  double error_rms = 0;
  double bound_max = 0;  ///< of that element
  double bound_rms = 0;
  double naive_max = 0;
  double naive_rms = 0;
  /// Elements that are NaN or infinite where the reference is not the same, and may be.
  std::int64_t spread = 0;
  /// Elements that are not judged, as float32 overflows on the way to them: of a score's row and
  /// what it keeps, whatever they are; of dX and sums, where they are NaN or infinite.
  std::int64_t overflow = 0;
  /// Of those, as float32's derivative of score_mod by the buffer or scalar is NaN or infinite.
  std::int64_t derivative_overflow = 0;
  /// Elements that are judged and that no kept score reaches: they are 0 whatever the inputs hold.
  std::int64_t unreached = 0;
  std::int64_t nan = 0;                   ///< elements that are judged and whose reference is NaN
  std::int64_t elements = 0;              ///< of the gradient
  std::vector<std::string> reasons = {};  ///< one sentence each; empty if ok

  std::int64_t judged() const { return elements - spread - overflow; }
  /// Nothing is wrong where nothing was judged, and nothing is shown to be right. Zeros of elements
  /// that no kept score reaches show nothing of the others.
  bool says_nothing() const { return spread + overflow > 0 && judged() == unreached; }
  bool shows_right() const { return ok && !says_nothing(); }
  /// The reasons, and one that nothing was judged where that is so.
  /// @param name of the gradient
  std::vector<std::string> why_not_right(const std::string& name) const;
};

/// Takes the errors of another verdict on the same gradient that come nearer to their bounds, and
/// adds the reasons that it lacks.
void take_nearer(const GradientVerdict& from, GradientVerdict& verdict);

/// Applies the rule.
GradientVerdict judge_gradient(ComparedGradient gradient);

}  // namespace tilewright::verify
