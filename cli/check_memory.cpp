#include "cli/check_memory.hpp"

#include <algorithm>

namespace tilewright::cli {
namespace {

// Each constant is bytes per element, fitted to peak memory of processes in which one tensor is far
// larger than the others.

// The reference and naive results hold q, k and v in double, and out with its error bounds. Judging
// holds all results with their references and bounds.
double bytes_of_forward(const CheckSizes& sizes) {
  constexpr double kInput = 20, kOutOfNaive = 37, kJudgedOut = 57, kOtherResult = 37;
  constexpr double kWeight = 47, kRow = 80;
  const double computing = kInput * (sizes.q + sizes.k + sizes.v) + kOutOfNaive * sizes.out;
  return std::max(computing, kJudgedOut * sizes.out) +
         kOtherResult * (sizes.results - 1) * sizes.out + kWeight * sizes.weights +
         kRow * sizes.rows;
}

// The reference gradients with five error terms each, once for the whole call and once for the part
// that is computed. Each head of k has its own copy of buffers' and scalars' gradients.
double bytes_of_reference_gradients(const CheckSizes& sizes) {
  constexpr double kReferenceElement = 104, kNamed = 80;
  const double of_head = sizes.has_16_bits ? 80 : 72;
  return kReferenceElement * (sizes.q + sizes.k + sizes.v) +
         (kNamed + of_head * sizes.kv_heads) * sizes.named;
}

// All gradients with their naive values, and copies of the one that is judged.
double bytes_of_judged_gradients(const CheckSizes& sizes) {
  const double kept = sizes.has_16_bits ? 88 : 64;
  const double copied = sizes.has_16_bits ? 188 : 136, copied_named = sizes.has_16_bits ? 343 : 191;
  return kept * (sizes.q + sizes.k + sizes.v + sizes.named) +
         std::max(copied * std::max({sizes.q, sizes.k, sizes.v}),
                  copied_named * sizes.greatest_named);
}

}  // namespace

double bytes_of_check(const CheckSizes& sizes) {
  const double forward = bytes_of_forward(sizes);
  if (!sizes.has_gradients) return forward;
  constexpr double kOutAndDout = 24;
  const double backward = kOutAndDout * sizes.out + std::max(bytes_of_reference_gradients(sizes),
                                                             bytes_of_judged_gradients(sizes));
  return std::max(forward, backward);
}

}  // namespace tilewright::cli
