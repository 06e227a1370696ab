#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "case.hpp"

namespace tilewright::verify::fuzz {

/// One respect in which cases differ. Each has a few values; a case shows one or more of them.
enum class Factor : std::uint8_t {
  // of the spec: a change compiles
  dtype,
  mixed,
  head_dim,
  v_head_dim,
  layout,
  kv_layout,
  outputs,
  block,
  tactic,
  math,
  products,
  score_mod,
  mask_mod,
  mask_scope,
  buffer,
  rank,
  bounds,
  scalar,
  functions,
  choice,
  local,
  integers,
  tokens,
  gradients,
  dropout,
  // of the call
  batch,
  heads,
  q_len,
  kv_len,
  offsets,
  kv_sharing,
  buffer_sharing,
  placement,
  scale,
  contents,
  sequences,
  kv_rows,
  // of a kernel that is only compiled
  target,
  kernel,
};
inline constexpr std::size_t kFactors = static_cast<std::size_t>(Factor::kernel) + 1;
/// Factors of the spec come first.
inline constexpr std::size_t kSpecFactors = static_cast<std::size_t>(Factor::batch);

/// A factor's name and the names of its values, as progress and reports print them.
struct FactorNames {
  std::string_view name;
  std::vector<std::string_view> values;
};
const FactorNames& names_of(Factor factor);

/// For each factor a bit for each of its values.
using Features = std::array<std::uint16_t, kFactors>;

inline std::uint16_t& bits(Features& features, Factor factor) {
  return features[static_cast<std::size_t>(factor)];
}
inline std::uint16_t bits(const Features& features, Factor factor) {
  return features[static_cast<std::size_t>(factor)];
}

/// What a case shows, read off the case itself: a user's snippets are known by their tokens, others
/// by their trees. Factors that do not matter for the case (of the call where it is only compiled,
/// of compiling where it is run) have no bits.
Features features_of(const FuzzCase& fuzz_case);

/// "dtype=bf16 outputs=lse score_mod=body": what is not each factor's first value, for grouping.
std::string describe(const Features& features);

}  // namespace tilewright::verify::fuzz
