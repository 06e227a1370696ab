#pragma once

// What products of a tile draw between their steps where there is no dropout, or where all is drawn: nothing. See
// quad_draws.hpp.

namespace tw_kernel {

struct NoDraws {
  template <int kParts>
  __forceinline__ void draw(int, float) {}
  template <int kParts, bool kSecond>
  __forceinline__ void draw_half(int, float) {}
  __forceinline__ void draw() {}
  __forceinline__ unsigned zero() const { return 0; }
};

// The first or the second half of a tile's quads, for one of two products.
template <bool kSecond, typename AnyDraws>
struct HalfOfDraws {
  AnyDraws& draws;

  template <int kParts>
  __forceinline__ void draw(int part, float after) {
    draws.template draw_half<kParts, kSecond>(part, after);
  }
  __forceinline__ void draw() {
    if (!kSecond) draws.draw();
  }
  __forceinline__ unsigned zero() const { return draws.zero(); }
};

}  // namespace tw_kernel
