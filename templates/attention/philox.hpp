#pragma once

#include "kernel/language.hpp"

// Philox 4x32-10 of Salmon, Moraes, Dror and Shaw ("Parallel random numbers: as easy as 1, 2, 3", 2011): ten rounds of
// products turn a counter and a key into four random words. There is no state between calls.

namespace tw_kernel {

struct PhiloxKey {
  unsigned low;
  unsigned high;
};

struct PhiloxWords {
  unsigned x, y, z, w;

  // Number i of the four, 0 to 3.
  TW_MEMBER unsigned at(int i) const {
    const unsigned left = (i & 1) != 0 ? y : x;
    const unsigned right = (i & 1) != 0 ? w : z;
    return (i & 2) != 0 ? right : left;
  }
};

TW_INLINE PhiloxWords philox(PhiloxWords counter, PhiloxKey key) {
  constexpr unsigned long long kFactorX = 0xd2511f53u, kFactorZ = 0xcd9e8d57u;
  constexpr unsigned kStepLow = 0x9e3779b9u, kStepHigh = 0xbb67ae85u;
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const unsigned long long of_x = kFactorX * counter.x, of_z = kFactorZ * counter.z;
    counter = {static_cast<unsigned>(of_z >> 32) ^ counter.y ^ key.low, static_cast<unsigned>(of_z),
               static_cast<unsigned>(of_x >> 32) ^ counter.w ^ key.high, static_cast<unsigned>(of_x)};
    key = {key.low + kStepLow, key.high + kStepHigh};
  }
  return counter;
}

}  // namespace tw_kernel
