#include "verify/dropout.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tilewright::verify {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Philox 4x32-10.
Words random_words(Words counter, std::uint64_t seed) {
  constexpr std::uint64_t kFactors[] = {0xd2511f53, 0xcd9e8d57};
  constexpr std::uint32_t kSteps[] = {0x9e3779b9, 0xbb67ae85};
  std::uint32_t key[] = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    Words next;
    for (std::size_t half = 0; half < 2; ++half) {
      const std::uint64_t product = kFactors[half] * counter[2 * half];
      const std::size_t other = 2 * (1 - half);
      next[other + 1] = static_cast<std::uint32_t>(product);
      next[other] = static_cast<std::uint32_t>(product >> 32) ^ counter[other + 1] ^ key[1 - half];
    }
    counter = next;
    for (std::size_t i = 0; i < 2; ++i) key[i] += kSteps[i];
  }
  return counter;
}

}  // namespace

bool DropoutDraws::keeps(std::int64_t b, std::int64_t h, std::int64_t row,
                         std::int64_t column) const {
  if (!columns.empty()) column = columns[static_cast<std::size_t>(column)];
  const std::int64_t q_idx = row + q_offset, kv_idx = column + kv_offset;
  const Words words =
      random_words({static_cast<std::uint32_t>(kv_idx >> 2), static_cast<std::uint32_t>(q_idx),
                    static_cast<std::uint32_t>(h), static_cast<std::uint32_t>(first_b + b)},
                   seed);
  const std::uint32_t word = words[static_cast<std::size_t>(kv_idx & 3)];
  return static_cast<double>(word >> 8) * 0x1p-24 >= p[static_cast<std::size_t>(h)];
}

double DropoutDraws::keeping_factor(std::int64_t h) const {
  const double dropped = p[static_cast<std::size_t>(h)];
  return dropped < 1 ? 1 / (1 - std::max(dropped, 0.0)) : 0;  // a NaN drops all
}

double DropoutDraws::factor(std::int64_t b, std::int64_t h, std::int64_t row,
                            std::int64_t column) const {
  return keeps(b, h, row, column) ? keeping_factor(h) : 0;
}

}  // namespace tilewright::verify
