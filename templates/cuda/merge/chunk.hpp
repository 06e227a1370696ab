#pragma once

#include "cuda/element.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"

// 16 bytes of a row, or one element, as floats.

namespace tw_kernel {

template <typename Element>
constexpr int kChunkElements = 16 / static_cast<int>(sizeof(Element));

TW_INLINE void unpack(unsigned word, const float*, float* to) {
  to[0] = __uint_as_float(word);
}
template <typename Element>
TW_INLINE void unpack(unsigned word, const Element*, float* to) {
  to[0] = to_float(Element{static_cast<unsigned short>(word)});
  to[1] = to_float(Element{static_cast<unsigned short>(word >> 16)});
}

TW_INLINE unsigned pack_word(const float* from, float*) {
  return __float_as_uint(from[0]);
}
template <typename Element>
TW_INLINE unsigned pack_word(const float* from, Element*) {
  return pack<Element>(from[0], from[1]);
}

template <typename Element>
TW_INLINE void load_chunk(const Element* from, bool is_aligned,
                          float (&to)[kChunkElements<Element>]) {
  constexpr int kOfWord = kChunkElements<Element> / 4;
  if (is_aligned) {
    const int4 words = *reinterpret_cast<const int4*>(from);
    unpack(words.x, from, to);
    unpack(words.y, from, to + kOfWord);
    unpack(words.z, from, to + 2 * kOfWord);
    unpack(words.w, from, to + 3 * kOfWord);
  } else {
#pragma unroll
    for (int i = 0; i < kChunkElements<Element>; ++i) to[i] = to_float(from[i]);
  }
}

template <typename Element>
TW_INLINE void load_chunk(const Element* from, bool, float (&to)[1]) {
  to[0] = to_float(from[0]);
}

template <typename Element>
TW_INLINE void store_chunk(const float (&from)[1], bool, Element* to) {
  from_float(from[0], to);
}

template <typename Element>
TW_INLINE void store_chunk(const float (&from)[kChunkElements<Element>], bool is_aligned,
                           Element* to) {
  constexpr int kOfWord = kChunkElements<Element> / 4;
  if (is_aligned) {
    int4 words;
    words.x = static_cast<int>(pack_word(from, to));
    words.y = static_cast<int>(pack_word(from + kOfWord, to));
    words.z = static_cast<int>(pack_word(from + 2 * kOfWord, to));
    words.w = static_cast<int>(pack_word(from + 3 * kOfWord, to));
    *reinterpret_cast<int4*>(to) = words;
  } else {
#pragma unroll
    for (int i = 0; i < kChunkElements<Element>; ++i) from_float(from[i], to + i);
  }
}

}  // namespace tw_kernel
