#pragma once

#include "../generator/spec/dtype.hpp"
#include "../generator/spec/spec.hpp"
#include "reference.hpp"

namespace tilewright::verify {

/// Attention as three kernels that hand S and P over in memory would compute it: what
/// judge.hpp measures kernels by. All arithmetic is float32, one operation after the other:
///
///     S   = round((q . k) * scale)                        to `dtype`'s digits (digits.hpp)
///     s   = score_mod(S)                                   float
///     P   = round(exp(s - max s) / sum)                    to `dtype`, over the kept columns
///     out = round(sum P v / out_scale)                     to `out_dtype`
///     weights = round(P)                                   likewise, where they are wanted
///
/// With f32 nothing is rounded further: plain float32 arithmetic, for q, k and v of f8e4m3 too
/// where they are multiplied so. With f8e4m3 S stays float32, and
/// P times 2^8 is rounded, so that small weights are numbers of the format. With all others lse =
/// max s + log(sum) and max_scores = max s are given, of s = score_mod((q . k) * scale) without a
/// rounding in between, as kernels have it; a kernel's are judged by them.
///
/// @param problem  of products in TF32: after round_to_products
/// @param products of f32 alone. tf32: P is rounded to 11 significant bits, ties away from zero
AttentionValues naive_attention(const DenseProblem& problem, const RowSnippets<float>& snippets,
                                DType dtype, DType out_dtype, Executor& threads,
                                F32Products products = F32Products::ieee);

/// Makes stored q, k and v what products in TF32 see: 11 significant bits, ties away from zero.
/// Scales are multiplied afterwards, as kernels multiply them with scores and weights. Changes
/// nothing for other products.
void round_to_products(F32Products products, DenseProblem& stored);

}  // namespace tilewright::verify
