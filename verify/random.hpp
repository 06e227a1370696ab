#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tilewright::verify {

/// Random numbers that are the same on every platform, compiler and C library: integer arithmetic
/// only, up to one exact conversion. xoshiro256** (Blackman and Vigna) seeded through splitmix64.
class Random {
 public:
  /// @param stream keeps tensors independent: another name gives other numbers for the same seed
  Random(std::uint64_t seed, std::string_view stream);

  std::uint64_t next();

  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform();

  /// Uniform over the integers lo..hi, both included. Bias below 2^-32 for ranges below 2^32.
  std::int64_t integer(std::int64_t lo, std::int64_t hi);

  /// Nearly standard normal: mean 0, variance 1, the sum of twelve uniform numbers less 6 (Irwin
  /// and Hall). Its tails end at 6; unlike Box and Muller's it needs no logarithm, whose last bit
  /// differs between C libraries. Multiples of 2^-48.
  double normal();

 private:
  std::array<std::uint64_t, 4> state_;
};

}  // namespace tilewright::verify
