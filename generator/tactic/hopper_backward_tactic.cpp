#include "generator/tactic/hopper_backward_tactic.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/counted.hpp"
#include "generator/snippet/gradient_terms.hpp"
#include "generator/spec/gradients.hpp"
#include "generator/tactic/backward_tactic.hpp"
#include "generator/tactic/hopper_tactic.hpp"

namespace tilewright {
namespace {

// Of templates/cuda/hopper/backward/layout.hpp.
constexpr std::int64_t kStageCount = 2;
constexpr std::int64_t kBackwardThreads = 384;
constexpr std::int64_t kComputingWarps = 8;
// Barriers and the plan after the tiles.
constexpr std::int64_t kBackwardControlBytes = 512;
constexpr std::int64_t kMostSharedBytes = 232448;  // of a block on sm_90
// A launch takes 4096 bytes of parameters, of which tensor maps and places leave so many.
constexpr std::size_t kParameterBytes = 3200;
constexpr std::size_t kBufferBytes = 72, kScalarBytes = 4, kSumsBytes = 16;  // at most
// Of a read by the difference of indices: eight warps' terms.
constexpr std::int64_t kDiagonalBytes = 8 * 8 * 92 * 4;
// Of a read at indices of neither row nor column, or of the column alone: two sums of each thread.
constexpr std::int64_t kOwnSumBytes = 2 * 256 * 4;
// At indices of the row alone, of each row of a tile: eight warps' sums, twice.
constexpr std::int64_t kRowSumBytes = 2 * 8 * 4;

std::int64_t greatest_dim(const Spec& spec) {
  return std::max(spec.head_dim, spec.value_head_dim());
}

// dk and dv of 128 columns do not fit into registers.
bool is_wide(const Spec& spec) {
  return greatest_dim(spec) > 128;
}

std::int64_t own_columns(const Spec& spec) {
  return is_wide(spec) ? 64 : 128;
}

// A panel of 128 bytes has 64 columns of 16 bits.
constexpr std::int64_t kPanelColumns = 64;

std::int64_t tile_dim(const Spec& spec, std::int64_t dim) {
  return round_up(is_wide(spec) ? dim : greatest_dim(spec), kPanelColumns);
}

std::int64_t tile_rows(const Spec& spec) {
  return greatest_dim(spec) <= kPanelColumns ? 128 : 64;
}

// Shares begin with panels. Of an odd number of them, the first warpgroup has the smaller part of
// dk and the greater of dv.
std::int64_t first_key_share(const Spec& spec) {
  const std::int64_t panels = ceil_div(spec.head_dim, kPanelColumns);
  return panels == 1 ? hopper_backward_dq_columns(spec) : panels / 2 * kPanelColumns;
}

std::int64_t first_value_share(const Spec& spec) {
  const std::int64_t panels = ceil_div(spec.value_head_dim(), kPanelColumns);
  return panels == 1 ? 0 : ceil_div(panels, 2) * kPanelColumns;
}

std::int64_t tile_bytes(const Spec& spec) {
  constexpr std::int64_t kBytesOf16Bits = 2, kBytesOfFloat = 4, kFactsOfRow = 2;
  const std::int64_t rows = tile_rows(spec);
  const std::int64_t dims = tile_dim(spec, spec.head_dim) + tile_dim(spec, spec.value_head_dim());
  const std::int64_t own = own_columns(spec) * dims * kBytesOf16Bits;  // K, V
  const std::int64_t passing = rows * dims * kBytesOf16Bits;           // Q, dO
  const std::int64_t gradients =
      kStageCount * rows * 2 * kPanelColumns * kBytesOf16Bits;  // dX, or P and dX
  const std::int64_t dq =
      is_wide(spec) ? 0 : rows * hopper_backward_dq_columns(spec) * kBytesOfFloat;
  return own + kStageCount * (passing + kFactsOfRow * rows * kBytesOfFloat) + gradients + dq;
}

bool names_all_tensors(const Spec& spec) {
  return has_gradient(spec, "q") && has_gradient(spec, "k") && has_gradient(spec, "v");
}

std::size_t parameter_bytes(const Spec& spec) {
  constexpr std::size_t kPlanBytes = 96;  // of a packed call's plan
  return (spec.is_packed() ? kPlanBytes : 0) + kBufferBytes * spec.buffers.size() +
         kScalarBytes * spec.scalar_entries() + kSumsBytes * gradient_names(spec).size();
}

std::int64_t count(const GradientTerms& terms, GradientPattern pattern) {
  return std::count(terms.patterns.begin(), terms.patterns.end(), pattern);
}

std::int64_t count_own_sums(const GradientTerms& terms) {
  return count(terms, GradientPattern::head) + count(terms, GradientPattern::column);
}

std::int64_t sums_bytes(const Spec& spec, const GradientTerms& terms) {
  return count(terms, GradientPattern::difference) * kDiagonalBytes +
         count_own_sums(terms) * kOwnSumBytes +
         count(terms, GradientPattern::row) * tile_rows(spec) * kRowSumBytes;
}

std::int64_t bytes_without_differences(const Spec& spec, const GradientTerms& terms) {
  return tile_bytes(spec) + sums_bytes(spec, terms) + kBackwardControlBytes;
}

std::int64_t difference_bytes(const SpecFacts& facts, const GradientTerms& terms) {
  if (!facts.whole_difference) return 0;
  const std::int64_t columns = tile_rows(facts.spec) / (is_wide(facts.spec) ? 2 : 1);
  const std::int64_t bytes = kComputingWarps * warp_difference_bytes(columns);
  const bool fits = bytes_without_differences(facts.spec, terms) + bytes <= kMostSharedBytes;
  return fits ? bytes : 0;
}

// Of gradients of buffers and scalars.
std::string why_not_sums(const SpecFacts& facts) {
  const std::vector<std::string> names = gradient_names(facts.spec);
  if (names.empty()) return {};
  const std::optional<GradientTerms> terms = gradient_terms(facts);
  if (!terms) return fmt::format("the derivative of score_mod by {} is not known", names.front());
  if (!terms->adds_to_score) {
    return fmt::format(
        "it sums gradients of what score_mod's text adds to the score, as \"score + x[h]\" and "
        "\"select(c, score + x[h], score)\" do, and with {} there is more",
        names.front());
  }
  const std::int64_t differences = count(*terms, GradientPattern::difference);
  if (is_wide(facts.spec) && differences + count(*terms, GradientPattern::row) > 0) {
    return fmt::format(
        "above 128 columns it sums no gradients of reads by q_idx alone or by the difference of "
        "q_idx and kv_idx, and head_dim is {}, v_head_dim {}",
        facts.spec.head_dim, facts.spec.value_head_dim());
  }
  if (differences > 1) {
    return fmt::format(
        "it sums the gradient of one read by the difference of q_idx and kv_idx, and score_mod has "
        "{}",
        differences);
  }
  if (bytes_without_differences(facts.spec, *terms) > kMostSharedBytes) {
    return fmt::format("its shared memory has no room for the sums of {}",
                       counted(terms->patterns.size(), "read"));
  }
  return {};
}

}  // namespace

std::int64_t hopper_backward_dq_columns(const Spec& spec) {
  constexpr std::int64_t kColumnStep = 16;  // of a product's results
  return round_up(spec.head_dim, kColumnStep);
}

std::string why_not_hopper_backward(const SpecFacts& facts, const Target& target,
                                    const KernelVariant& kernel) {
  const Spec& spec = facts.spec;
  if (kernel.role != KernelRole::backward) return "it is a backward kernel";
  if (target.name() != "sm_90a") return "it is for sm_90a alone";
  if (spec.tactic && spec.tactic->name != kHopper) {
    return fmt::format("the spec's tactic is \"{}\"", spec.tactic->name);
  }
  if (!backward_uses_tensor_cores(spec) || spec.key_value_dtype() != spec.dtype) {
    return "q, k, v and out must have one dtype, f16 or bf16";
  }
  if (spec.pads_rows()) {
    return fmt::format(
        "its rows must be whole vectors of 16 bytes, at least two, and head_dim is {}, v_head_dim "
        "{}",
        spec.head_dim, spec.value_head_dim());
  }
  if (!kernel.aligned) return "its tensors must begin at multiples of 16 bytes";
  if (kernel.deterministic && spec.is_packed()) return "its turns are of calls that are not packed";
  if (kernel.deterministic && !gradient_names(spec).empty()) {
    return fmt::format("it sums the gradient of {} in whatever order",
                       gradient_names(spec).front());
  }
  if (!names_all_tensors(spec)) return "it computes the gradients of q, k and v together";
  if (std::string why = why_not_sums(facts); !why.empty()) return why;
  if (parameter_bytes(spec) > kParameterBytes) {
    return fmt::format(
        "a launch has {} bytes for buffers, scalars and their gradients after its tensor maps, "
        "and the "
        "spec's need {}",
        kParameterBytes, parameter_bytes(spec));
  }
  // A plan's map is read tile by tile of rows of q, whatever its sides are.
  const bool has_map = spec.is_packed() && !spec.mask_mod.empty();
  if (kernel.masked && spec.block[0] % tile_rows(spec) != 0) {
    return fmt::format("its tiles of {} rows do not divide block[0], which is {}", tile_rows(spec),
                       spec.block[0]);
  }
  if ((kernel.masked || has_map) && spec.block[1] % own_columns(spec) != 0) {
    return fmt::format("its {} columns do not divide block[1], which is {}", own_columns(spec),
                       spec.block[1]);
  }
  return {};
}

bool has_deterministic_backward(const SpecFacts& facts, const Target& target,
                                KernelVariant kernel) {
  kernel.deterministic = true;
  return why_not_hopper_backward(facts, target, kernel).empty();
}

std::optional<HopperBackwardTactic> hopper_backward_tactic(const SpecFacts& facts,
                                                           const Target& target,
                                                           const KernelVariant& kernel) {
  if (!why_not_hopper_backward(facts, target, kernel).empty()) return std::nullopt;
  const std::optional<GradientTerms> terms = gradient_terms(facts);
  const std::int64_t of_differences = difference_bytes(facts, *terms);
  return HopperBackwardTactic{
      .key_tile_dim = tile_dim(facts.spec, facts.spec.head_dim),
      .value_tile_dim = tile_dim(facts.spec, facts.spec.value_head_dim()),
      .is_wide = is_wide(facts.spec),
      .first_key_share = first_key_share(facts.spec),
      .first_value_share = first_value_share(facts.spec),
      .columns = own_columns(facts.spec),
      .rows = tile_rows(facts.spec),
      .stages = kStageCount,
      .mask_unroll = 8,
      .threads = kBackwardThreads,
      .shared_bytes = bytes_without_differences(facts.spec, *terms) + of_differences,
      .diagonals = count(*terms, GradientPattern::difference),
      .own_sums = count_own_sums(*terms),
      .row_reads = count(*terms, GradientPattern::row),
      .difference_bytes = of_differences};
}

}  // namespace tilewright
