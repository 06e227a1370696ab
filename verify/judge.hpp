#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "../generator/spec/dtype.hpp"
#include "../generator/spec/spec.hpp"
#include "attention_values.hpp"
#include "bound_sizes.hpp"

namespace tilewright::verify {

// When a result is right (docs/decisions/0006-when-a-result-is-right.md). Three results are
// compared:
//
//   got        what the kernel wrote, every element read exactly
//   reference  attention in double (reference.hpp)
//   naive      attention with S and P rounded to the products' dtype and sums in float32
//   (naive.hpp)
//
// The products' dtype is the spec's. With f8e4m3 it is f32 but on a GPU whose kernel multiplies 8
// bits (product_dtype).
//
// An element counts if the reference, rounded to out's dtype, is finite there. Over those elements
//
//   |got - reference|                                     at most bound, of each element
//   error_rms = sqrt(mean (got - reference)^2)            at most bound_rms
//   bound     = 2 naive_max + 2 ulp(max |reference|)  + own max |reference|        + lost
//   bound_rms = 2 naive_rms + ulp(rms reference) / 4  + rms of own times reference + rms of lost
//                           + ulp(rms reference)      where the spec has a v_scale
//
//   naive_max, naive_rms   the same errors of naive, where naive is finite
//   ulp(x)    spacing at magnitude x of the products' dtype or of out's, whichever is wider
//   own       fast + factor, of the element's row: a row of huge scores widens no other. Where own
//             max |reference| is more than twice the greatest |out| that any weights give
//             (BoundSizes::values, and its ulp), it is that. A row with an own of 1 or more, whose
//             scores say nothing of its weights, takes no part in error_rms and bound_rms.
//   score     after score_mod, with a weight in float32 (kLeastWeight in bound_sizes.hpp). A row
//             has a typical row's greatest score (typical_score) at least: score_mod may take off
//             in one row what its functions add, and their errors stay.
//   fast      2^-11 max |score| of the row where the kernel's snippets use fast functions, else 0.
//             An error of that size in every score scales the softmax's denominator by
//             exp(+-fast), and with it both lse and the size of out.
//   factor    3 * 2^-24 max |score| of the row where the products' dtype is f32 and the spec has a
//             q_scale or k_scale, else 0. A kernel multiplies the scale, those two and log2(e) in
//             float32, with three roundings, and each is an error of every score in the same
//             direction. Naive's k has been multiplied in double, and its errors differ from
//             element to element.
//   lost      what the element's weights below kLeastSureWeight bring, by magnitude: at most
//             2^-117 |v| of each. A kernel's exp2 gives 0 for them and loses that, and no more. It
//             shows where nothing else is in out, as where a sink is 86 to 104 above all scores:
//             two ulp of out are 2^-148 there. Naive's weights in float32 go on to 2^-149.
//
// Elements of out whose sums float32 may not hold (Rule::large) are judged among themselves, so
// that they widen no bound of the others, by bounds times kBoundFactorOfSequence, as they may be
// few. Their ulp is of the greatest |v| that is summed, as terms of 3e38 may cancel.
//
// Elsewhere got must hold the same NaN or infinity as the reference rounded to out's dtype; and it
// must be finite where that is. Where a finite reference plus bound plus 2 of its ulp is
// rounded to infinity, got may be infinite, or at least what the reference less as much is rounded
// to. An out of 8 bits is clamped:
// where the reference reaches its greatest number, or is infinite and the dtype has no infinity,
// got must be that number, or what the reference less bound is rounded to, and the element does
// not count. lse, for each row with a finite reference:
//
//   |lse - reference| <= 2e-3 + 2^-19 |reference|                   products' dtype f16 or bf16
//                        4e-5 max(1, |reference|)                   f32
//                        1e-2 max(1, |reference|)                   f8e4m3
//                        + 2 naive_lse size + fast
//
//   size      of the row: max(1, |reference|, products); with products in TF32 max(1, products)
//   products  what the products of q and k of the row's scores add up to by magnitude
//             (BoundSizes::products): roundings have that size, also where a score or lse cancels
//   naive_lse the greatest error of naive's lse, each divided by its row's size, so that a row of
//             huge scores widens no other; 0 with f8e4m3
//
// and the same infinity or NaN where the reference has one. max_scores, of which lse is the size
// and whose scores have lse's errors, is held to the same bound, with 2 naive_max_scores for 2
// naive_lse: errors of a row's scores cancel in lse, and the greatest score has its own. What lse
// loses with weights that exp2 makes 0, 2^-117 of each, is far below all of these.
//
// weights are out where v is the identity, and are held to out's bounds with naive's weights. A
// kernel makes them from its lse: `own` of a row is larger by its lse's bound, and has no limit, as
// exp(score - lse) may exceed 1. `lost` is the whole of a weight below kLeastSureWeight. Where the
// reference and naive have 0, as for each dropped element, got is 0.
//
// Why a right kernel in f32 meets 4e-5 max(1, |lse|). Let u = 2^-24, the greatest relative error of
// one rounding, and d = head_dim. lse = m + ln(sum of exp(s_j - m)), m being the greatest score of
// a row.
//   scores     An error e_j of score s_j moves lse by the mean of e_j, weighted by the row's
//              weights, so by at most the greatest. A score is a sum of d products in order.
//              If they have the size t, the i-th partial sum has the size t sqrt(i), and
//              rounding it is off by u / sqrt(3) of that (root mean square). All d of them:
//              u t sqrt((1 + ... + d) / 3) = 0.41 u t d. The score itself has the size
//              s = t sqrt(d), so this is 0.41 sqrt(d) u s: 6.6 u s for d = 256.
//   score_mod  Some k operations, each off by u of a number of the size of s: sqrt(k) u s,
//              2 u s for four.
//   maximum    s_j - m is exact near m, and off by u |s_j - m| elsewhere, where the weight is
//              small. The product with log2(e) and the way back to natural units: 3 u |lse|.
//   sum        exp2 is off by 4 u at most, which is the same for lse. n weights are added in
//              tiles of 64, a tile's sum then to the row's: (64 + n / 64) u / sqrt(3) at most,
//              128 u for 14,000 keys.
//   logarithm  u of the sum's logarithm, and u |lse| of the last addition.
// Scores of s = 14 (q four times a normal number at the greatest scale that a fuzz case has) and d
// = 256 give 9 u s = 126 u = 7.5e-6 root mean square. A campaign judges some 10^7 rows, whose
// greatest error is 5.2 times that, 3.9e-5. `lse_bound_test.cpp` measures it: in 20,000 calls on a
// CPU the worst row came to 0.51 of 4e-5 max(1, |lse|) (seed 1, 26 November 2026). Larger scores
// come with an lse of their size, unless a row has few keys and score_mod takes off what a score
// has: keys of one byte give scores of 200, and a table in score_mod brings lse to -0.06. Naive
// rounds those scores as often as a kernel, and 2 naive_lse size is there for them.
//
// In 16 bits 2e-3 is for P, which is rounded to 8 bits before it meets V but not before it is
// summed, and for slopes and differences of indices (docs/math.md). The share of |lse| is for
// float32's own roundings: tensor cores may lose 2 u for each 16 products, 32 u = 2^-19 for d =
// 256. It shows where scores are huge: lse of a row that a padding mask of -65504 shifts is a
// multiple of 2^-8. Naive's lse has float32's scores, and counts where score_mod makes much of
// their errors, as exp(100 * score) does.

// Products in TF32 take q, k and v with 11 significant bits, and so does naive, which makes the
// same errors in the same scores. The weights are rounded likewise, naive's after they are divided
// by their sum and a kernel's before. A sum over few keys may so be off by 2^-11 max |v| more than
// naive's, half a unit of TF32 at that size: ulp(x) is the spacing of TF32.

// A kernel multiplies a weight by the v_scale of its column, or a row of out by that of its head,
// and rounds the product: by half a unit at most, 2^-p of it with p significant bits. Naive's v has
// been multiplied in double. In a row with one key that error is the same in all elements, so that
// it is their root mean square too, and ulp(x) >= 2^-p x.

// f8e4m3. CPUs and the portable kernel turn q, k and v into float32, exactly, and round no score
// and no weight to less. So each error is one of an f32 kernel, the first paragraphs derive its
// bounds, and only out's own rounding is larger: half a unit of out's dtype in naive's result and
// in the kernel's, within 2 naive_max + 2 ulp. A kernel with weights of 8 bits rounds them by 2^-4
// of each, and q's scale, k's and score_mod keep float32's digits. In a row with one key naive's
// weight is exactly 1, and such a kernel's, relative to a maximum that the score may exceed, is
// off by 2^-4; then ulp(x), which is more than 2^-4 x with f8e4m3's 4 significant bits, allows it.
// The second ulp is for Hopper's sums of 8-bit products, which keep some 14 bits.

/// What the bounds depend on in addition to the results.
struct Rule {
  DType dtype = DType::f32;      ///< the products': S and P of naive are rounded to it
  DType out_dtype = DType::f32;  ///< what the kernel wrote
  /// The kernel's snippets use fast functions (CUDA, f16 and bf16 unless precise_math is true, f32
  /// where it is false).
  bool fast_functions = false;
  /// The products' dtype is f32 and the spec has a q_scale or k_scale.
  bool scaled_scores = false;
  BoundSizes sizes = {};  ///< of the reference; each of `scores` at least the typical one
  /// Of out: not 0 where float32 may not hold a sum on the way to it (float_overflow.hpp). Without
  /// elements: nowhere.
  Values large = {};
  /// Of a spec in f32. tf32: naive was computed likewise.
  F32Products products = F32Products::ieee;
  bool scales_values = false;  ///< the spec has a v_scale
  /// Multiplies the bounds but for `lost`: kBoundFactorOfSequence over one sequence of a packed
  /// call.
  double bound_factor = 1;
};

/// A packed call is judged over all of its rows, and with this factor over each sequence alone: the
/// bounds of few elements follow from the few roundings that naive happened to make there.
inline constexpr double kBoundFactorOfSequence = 1.5;

/// Where a row of the results lies for who reads the verdict.
struct RowPlace {
  std::int64_t b;
  std::int64_t row;
};
/// Of row `row` of batch b of the results.
using PlaceOfRow = std::function<RowPlace(std::int64_t b, std::int64_t row)>;

/// An element that is wrong.
struct BadElement {
  std::string tensor;  ///< "out", "lse", "max_scores" or "weights"
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
  double error_max = 0;  ///< of the element of out that comes nearest to its bound
  double error_rms = 0;  ///< likewise, of the elements that are judged together
  double bound_max = 0;  ///< of error_max
  double bound_rms = 0;
  double naive_max = 0;  ///< of the elements of error_rms
  double naive_rms = 0;
  Values out_bounds = {};       ///< of each element of out
  double naive_lse = 0;         ///< of all products but f8e4m3's, as above
  double naive_max_scores = 0;  ///< likewise
  double lse_error = 0;         ///< at the row that comes nearest to its bound
  double lse_bound = 0;         ///< of that row
  double max_scores_error = 0;  ///< likewise
  double max_scores_bound = 0;
  double weights_error = 0;  ///< at the element that comes nearest to its bound
  double weights_bound = 0;  ///< of that element
  std::optional<BadElement> first_bad =
      {};  ///< for an RMS error alone: the element that is furthest off
  std::vector<std::string> reasons = {};  ///< one sentence each; empty if ok
};

/// Whether a finite reference plus `bound` plus 2 ulp is infinite in `dtype`. An element whose
/// rounded reference is infinite is no part of max |reference|, so its own ulp counts here.
bool is_near_overflow(double reference, double bound, DType dtype);

/// Whether both are finite, both NaN, or both the same infinity after rounding to `dtype`. Near an
/// overflow: whether `got` is infinite, or at least what the reference less as much is rounded to.
bool same_pattern(double got, double reference, double bound, DType dtype);

/// How far lse, or max_scores, may be from the reference in a row.
/// @param naive_error Verdict::naive_lse, or naive_max_scores
/// @param row         its number in Rule::sizes
double lse_bound(double reference, const Rule& rule, double naive_error = 0, std::size_t row = 0);

/// Applies the rule. lse, max_scores and weights are judged where both `got` and `reference` hold
/// them.
/// @param place_of none: a row is where it lies in the results
/// @throws Error with code usage where the sizes of the results differ
Verdict judge(const AttentionValues& got, const AttentionValues& reference,
              const AttentionValues& naive, const Rule& rule, const PlaceOfRow& place_of = {});

}  // namespace tilewright::verify
