#include "verify/random.hpp"

#include <bit>

namespace tilewright::verify {
namespace {

std::uint64_t splitmix64(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

Random::Random(std::uint64_t seed, std::string_view stream) {
  std::uint64_t state = seed;
  state = splitmix64(state) ^ hash_of(stream);
  for (std::uint64_t& word : state_) word = splitmix64(state);
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::uniform() {
  return static_cast<double>(next() >> 11) * 0x1p-53;
}

std::int64_t Random::integer(std::int64_t lo, std::int64_t hi) {
  const std::uint64_t count = static_cast<std::uint64_t>(hi) - static_cast<std::uint64_t>(lo) + 1;
  const std::uint64_t offset = count == 0 ? next() : next() % count;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(lo) + offset);
}

double Random::normal() {
  // Twelve numbers of 16 bits from three words, and 32 bits below them from a fourth, so that the
  // mantissa of a float is filled.
  std::int64_t sum = 0;
  for (int word = 0; word < 3; ++word) {
    std::uint64_t bits = next();
    for (int piece = 0; piece < 4; ++piece, bits >>= 16)
      sum += static_cast<std::int64_t>(bits & 0xffff);
  }
  const std::int64_t fine = static_cast<std::int64_t>(next() >> 32);
  const std::int64_t mean =
      6 * 65536 - 6;  // of twelve integers of 0..65535, less the half of `fine`
  return static_cast<double>((sum - mean) * (std::int64_t{1} << 32) + fine -
                             (std::int64_t{1} << 31)) *
         0x1p-48;
}

}  // namespace tilewright::verify
