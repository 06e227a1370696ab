#pragma once

#include "cuda/attention/modify.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"
#include "cuda/ptx/convert_e4m3.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"

// The online softmax's step for one tile, from its scores to the operand that is multiplied by its values.

namespace tw_kernel {

// A register of P, from a row's column j on.
template <typename Element>
TW_INLINE unsigned pack_word(const float (&s)[kColumns], int j) {
  if constexpr (sizeof(Element) == 1) return pack_e4m3(s[j], s[j + 1], s[j + 2], s[j + 3]);
  else return pack<Element>(s[j], s[j + 1]);
}

// P as the first operand of the second product: a score's accumulators are where that operand's
// elements must be, so nothing moves between lanes. Of 8 bits a lane's four neighbouring rows of V are those of its
// columns 0, 1, 8 and 9 of 16: V is turned to that order (turned_values.hpp).
TW_INLINE void pack_weights(const float (&s)[kRows][kColumns], unsigned (&p)[kWeightWords]) {
  constexpr int kOfWord = 4 / kQBytes;
#pragma unroll
  for (int j = 0; j < kColumns / kOfWord; ++j) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) p[2 * j + i] = pack_word<WeightElement>(s[i], kOfWord * j);
  }
}

// Drops the elements of a tile that needs care. instead: what they become.
TW_INLINE void drop_elements(const SnippetInputs& inputs, const KvTile& tile, const Kept& kept, float instead,
                             float (&s)[kRows][kColumns]) {
  if (kHasMaskMod) {
    drop(kept, instead, s);
  } else {
    drop_columns(inputs, tile.first(), instead, s);
  }
}

// Makes weights of a tile's scores, and adds them to the sums. shift: what each of s is too small by.
// Returns whether maxima rise: then what was summed before is to be multiplied by alpha.
// A function of its own, and not a class that keeps alpha, for which ptxas spills at 128 registers.
TW_INLINE bool weigh(float shift, float to_log2, Softmax& softmax, float (&s)[kRows][kColumns],
                     float (&alpha)[kRows]) {
  float greatest[kRows];
  const bool raises = exceeds_max(s, shift, softmax, to_log2, greatest);
  if (raises) raise_max(greatest, softmax, to_log2, alpha);
  float reference[kRows];
  find_references(softmax, shift, reference);
  if (raises && __any_sync(~0u, softmax.is_coarse)) subtract_coarse(to_log2, reference, s);
  exponentiate(s, reference, softmax, to_log2);
  return raises;
}

}  // namespace tw_kernel
