#include "verify/central_differences.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "base/printable_number.hpp"
#include "verify/random.hpp"

namespace tilewright::verify {
namespace {

constexpr double kStep = 0x1p-16;

std::string find_in_row(const Parts::Piece& piece, const DoubleInterpretation& snippets,
                        const SlopesEvaluator<double>& slopes, Random& random) {
  const auto count = static_cast<std::size_t>(piece.columns());
  std::vector<double> scores(count), low(count), middle(count), high(count), slope(count);
  std::vector<unsigned char> keep(count);
  const std::int64_t b = piece.b + random.integer(0, piece.batch - 1);
  const std::int64_t head = random.integer(0, piece.arguments.num_q_heads - 1);
  const std::int64_t row = random.integer(0, piece.rows() - 1);
  for (double& score : scores) score = random.normal();
  const auto evaluate = [&](double shift, std::vector<double>& modified) {
    std::vector<double> shifted = scores;
    for (double& score : shifted) score += shift;
    snippets.row(piece.arguments, b, head, row, shifted.data(), modified.data(), keep.data());
  };
  evaluate(-kStep, low);
  evaluate(0, middle);
  evaluate(kStep, high);
  slopes.row(piece.arguments, b, head, row, scores.data(), slope.data());
  for (std::size_t c = 0; c < count; ++c) {
    const double left = (middle[c] - low[c]) / kStep, right = (high[c] - middle[c]) / kStep;
    const double wanted = (left + right) / 2, size = 1 + std::fabs(wanted);
    // Each value is rounded by 2^-53 of it: a large one swallows the differences.
    const double greatest = std::max({std::fabs(low[c]), std::fabs(middle[c]), std::fabs(high[c])});
    const bool is_smooth = std::fabs(left - right) < 1e-3 * size;
    const bool is_exact = greatest * 0x1p-53 / kStep < 1e-4 * size;
    if (!is_smooth || !is_exact || std::fabs(slope[c] - wanted) <= 1e-3 * size) continue;
    // f' counts only where P is not 0.
    if (!std::isfinite(slope[c]) && keep[c] == 0) continue;
    if (!std::isfinite(slope[c])) {
      return fmt::format(
          "score_mod has no derivative at b {}, h {}, row {}, column {} for score {}: the chain "
          "rule "
          "gives {}, as something on the way is infinite or divided by 0, and central differences "
          "give {}. Gradients that the element adds to say nothing: keep the snippet's numbers "
          "finite",
          b, head, row, c, scores[c], printable(slope[c]), wanted);
    }
    return fmt::format(
        "the derivative of score_mod is {} at b {}, h {}, row {}, column {} for score {}, but "
        "central differences give {}",
        printable(slope[c]), b, head, row, c, scores[c], wanted);
  }
  return {};
}

}  // namespace

std::string find_wrong_derivative(const std::vector<const Parts::Piece*>& pieces,
                                  const DoubleInterpretation& snippets,
                                  const SlopesEvaluator<double>& slopes) {
  constexpr int kRowsToCompare = 16;
  if (pieces.empty()) return {};
  Random random(5, "central differences");
  for (int sample = 0; sample < kRowsToCompare; ++sample) {
    const std::int64_t last = static_cast<std::int64_t>(pieces.size()) - 1;
    const std::int64_t at = last == 0 ? 0 : random.integer(0, last);
    std::string found =
        find_in_row(*pieces[static_cast<std::size_t>(at)], snippets, slopes, random);
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace tilewright::verify
