#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/constants.hpp"
#include "cuda/language.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/dropout.hpp"
#include "kernel/engine.hpp"
#include "kernel/scales.hpp"

// One kv tile of the online softmax: from K to the weights that V is multiplied by.

namespace tw_kernel {

// k_tile, p_tile: in shared memory; K has arrived. `out` is rescaled where the rows' maxima rise.
template <typename Fragments>
TW_INLINE Weights weigh_tile(const ForwardArguments& arguments, const SnippetInputs& inputs,
                             const Scales& scales, const KvTile& tile, const Fragments& q,
                             unsigned k_tile, unsigned p_tile, Softmax& softmax,
                             float (&out)[kRows][kOutColumns]) {
  const Scaling& scaling = scaling_of(arguments, scales);
  const float to_log2 = scaling.to_log2;
  const bool some_dropped =
      (kHasMaskMod && tile.partial()) || tile.first() + kKvTile > inputs.kv_len;
  Kept kept;
  if (some_dropped) kept = find_kept(inputs, tile);
  Draws draws = start_draws(inputs, tile.first());

  float s[kRows][kColumns];
  score_tile(q, k_tile, s, draws);
  scale_scores(inputs, scales, tile.first(), s);
  if (kHasScoreMod) {
    modify_scores<false>(inputs, tile.first(), scaling.factor, s);
  } else if (scaling.factor != 1.0f) {
    multiply_scores(scaling.factor, s);
  }
  if (some_dropped) drop(kept, -kInfinity, s);
  float greatest[kRows];
  const bool raises = exceeds_max(s, 0.0f, softmax, to_log2, greatest);
  if (raises) {
    float alpha[kRows];
    raise_max(greatest, softmax, to_log2, alpha);
    rescale(alpha, out);
  }
  float reference[kRows];
  find_references(softmax, 0.0f, reference);
  if (raises) subtract_coarse(to_log2, reference, s);
  exponentiate(s, reference, softmax, to_log2);
  scale_weights(inputs, tile.first(), s);
  drop_weights(draws, s);
  return make_weights(p_tile, s);
}

}  // namespace tw_kernel
