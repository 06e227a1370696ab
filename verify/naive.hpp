#pragma once

#include "../generator/spec/dtype.hpp"
#include "reference.hpp"

namespace tilewright::verify {

/// Attention as three kernels that hand S and P over in memory would compute it, the yardstick of
/// judge.hpp. All arithmetic is float32, one operation after the other:
///
///     S   = round((q . k) * scale)                        to `dtype`
///     s   = score_mod(S)                                   float
///     P   = round(exp(s - max s) / sum)                    to `dtype`, over the kept columns
///     out = round(sum P v)                                 to `out_dtype`
///
/// With f32 nothing is rounded further: plain float32 arithmetic. lse is not computed.
AttentionValues naive_attention(const DenseProblem& problem, const RowSnippets<float>& snippets,
                                DType dtype, DType out_dtype, Executor& threads);

}  // namespace tilewright::verify
