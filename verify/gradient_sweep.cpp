#include "verify/gradient_sweep.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "verify/gradient_row.hpp"
#include "verify/gradient_row_limits.hpp"
#include "verify/gradient_row_sizes.hpp"
#include "verify/gradient_sums.hpp"

namespace tilewright::verify {
namespace {

// The rows of q whose heads share one head of k, in one batch after the other: a gradient may be
// summed over the batch.
template <typename OfRow>
void for_each_row(const DenseProblem& problem, std::int64_t h_kv, const OfRow& of_row) {
  const std::int64_t group = problem.q.heads / problem.k.heads;
  for (std::int64_t b = 0; b < problem.q.batch; ++b) {
    for (std::int64_t h = h_kv * group; h < (h_kv + 1) * group; ++h) {
      for (std::int64_t row = 0; row < problem.q.rows; ++row) of_row(b, h, row);
    }
  }
}

std::vector<std::vector<double>> cells_of_heads(const DenseProblem& problem,
                                                const GradientInputs& inputs) {
  return std::vector<std::vector<double>>(
      static_cast<std::size_t>(problem.k.heads),
      std::vector<double>(static_cast<std::size_t>(inputs.cells)));
}

}  // namespace

GradientValues zeros_for(const DenseProblem& problem, const GradientInputs& inputs) {
  const auto like = [](const Values& x) {
    return Values::zeros(x.batch, x.heads, x.rows, x.width);
  };
  return {.dq = like(problem.q),
          .dk = like(problem.k),
          .dv = like(problem.v),
          .named = std::vector<double>(static_cast<std::size_t>(inputs.cells))};
}

template <typename Score>
GradientValues sweep_gradients(const DenseProblem& problem, const GradientInputs& inputs,
                               const RowSnippets<Score>& snippets, const RowSlopes<Score>& slopes,
                               const GradientRounding<Score>& rounding, Executor& threads) {
  GradientValues values = zeros_for(problem, inputs);
  std::vector<std::vector<double>> cells = cells_of_heads(problem, inputs);
  threads.parallel_for(problem.k.heads, [&](std::int64_t h_kv, int) {
    GradientRow<Score> line(problem, inputs, snippets, slopes, rounding);
    for_each_row(problem, h_kv, [&](std::int64_t b, std::int64_t h, std::int64_t row) {
      if (!line.weigh(b, h, row)) return;
      line.differentiate();
      line.add_to(values, cells[static_cast<std::size_t>(h_kv)]);
    });
  });
  for (const std::vector<double>& head : cells) add_cells(head, false, values.named);
  return values;
}

GradientValues sweep_reference(const DenseProblem& problem, const GradientInputs& inputs,
                               const RowSnippets<double>& snippets, const RowSlopes<double>& slopes,
                               const GradientRounding<double>& rounding, const FloatSearch& search,
                               GradientSizes& sizes, Executor& threads) {
  GradientValues values = zeros_for(problem, inputs);
  sizes = {.terms = zeros_for(problem, inputs),
           .own = zeros_for(problem, inputs),
           .named_magnitudes = std::vector<double>(static_cast<std::size_t>(inputs.cells)),
           .named_in_float = std::vector<double>(static_cast<std::size_t>(inputs.cells)),
           .ambiguous = zeros_for(problem, inputs),
           .undefined = zeros_for(problem, inputs),
           .overflow = zeros_for(problem, inputs),
           .derivative_overflow = std::vector<double>(static_cast<std::size_t>(inputs.cells))};
  std::vector<std::vector<double>> cells = cells_of_heads(problem, inputs);
  std::deque<GradientRowSizes> sizes_of_heads;
  std::deque<GradientRowLimits> limits_of_heads;
  for (std::int64_t h_kv = 0; h_kv < problem.k.heads; ++h_kv) {
    sizes_of_heads.emplace_back(problem, inputs, slopes, search, sizes);
    limits_of_heads.emplace_back(problem, inputs, slopes, search, sizes.overflow);
  }
  threads.parallel_for(problem.k.heads, [&](std::int64_t h_kv, int) {
    const auto head = static_cast<std::size_t>(h_kv);
    GradientRowSizes& of_head = sizes_of_heads[head];
    GradientRow<double> line(problem, inputs, snippets, slopes, rounding);
    for_each_row(problem, h_kv, [&](std::int64_t b, std::int64_t h, std::int64_t row) {
      const bool keeps_some = line.weigh(b, h, row);
      if (!limits_of_heads[head].is_known(line) || !keeps_some) return;
      line.differentiate();
      line.add_to(values, cells[head]);
      of_head.add(line);
      limits_of_heads[head].look(line, of_head.of_dy(), of_head.of_delta());
    });
  });
  for (std::size_t head = 0; head < cells.size(); ++head) {
    add_cells(cells[head], false, values.named);
    sizes_of_heads[head].add_cells_to(sizes);
    limits_of_heads[head].mark_cells(sizes);
  }
  return values;
}

template GradientValues sweep_gradients(const DenseProblem&, const GradientInputs&,
                                        const RowSnippets<float>&, const RowSlopes<float>&,
                                        const GradientRounding<float>&, Executor&);

}  // namespace tilewright::verify
