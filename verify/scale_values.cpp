#include "verify/scale_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "verify/odd_scales.hpp"

namespace tilewright::verify {
namespace {

class Scaler {
 public:
  Scaler(const Spec& spec, const ScaleValues& scales, const abi::SnippetArguments& arguments,
         std::int64_t first_b, std::int64_t new_rows, DenseProblem& problem)
      : spec_(spec),
        scales_(scales),
        arguments_(arguments),
        first_b_(first_b),
        new_rows_(new_rows),
        problem_(problem) {}

  void run() {
    multiply(SnippetKind::q_scale, problem_.q, 1, problem_.q.rows, problem_.q_scales);
    const std::int64_t group = problem_.q.heads / problem_.k.heads;
    const std::int64_t stored = std::max<std::int64_t>(problem_.k.rows - new_rows_, 0);
    multiply(SnippetKind::k_scale, problem_.k, group, stored, problem_.k_scales);
    multiply(SnippetKind::v_scale, problem_.v, group, stored, problem_.v_scales);
    if (!spec_.out_scale.empty()) fill_out_scales();
    if (spec_.has_dropout()) fill_dropout();
    if (spec_.sink.empty()) return;
    const Values& q = problem_.q;
    Values sinks = Values::zeros(q.batch, q.heads, q.rows, 1);
    for (std::int64_t b = 0; b < q.batch; ++b) {
      for (std::int64_t h = 0; h < q.heads; ++h) {
        scales_(SnippetKind::sink, arguments_, first_b_ + b, h, 0, q.rows, sinks.row(b, h, 0));
      }
    }
    problem_.sink = std::move(sinks);
  }

 private:
  void fill_out_scales() const {
    problem_.out_scales.resize(static_cast<std::size_t>(problem_.q.heads));
    for (std::int64_t h = 0; h < problem_.q.heads; ++h) {
      scales_(SnippetKind::out_scale, arguments_, first_b_, h, 0, 1,
              &problem_.out_scales[static_cast<std::size_t>(h)]);
    }
  }

  void fill_dropout() const {
    DropoutDraws draws{.p = std::vector<double>(static_cast<std::size_t>(problem_.q.heads)),
                       .seed = seed(),
                       .first_b = first_b_,
                       .q_offset = arguments_.q_offset,
                       .kv_offset = arguments_.kv_offset};
    for (std::int64_t h = 0; h < problem_.q.heads; ++h) {
      scales_(SnippetKind::dropout, arguments_, first_b_, h, 0, 1,
              &draws.p[static_cast<std::size_t>(h)]);
    }
    problem_.dropout = std::move(draws);
  }

  std::uint64_t seed() const {
    if (spec_.has_seed_buffer()) {
      const auto index = std::distance(spec_.buffers.begin(), spec_.buffers.find("seed"));
      std::uint64_t value = 0;
      std::memcpy(&value, arguments_.buffers[index].data, sizeof value);
      return value;
    }
    const auto index = std::distance(spec_.scalars.begin(), spec_.scalars.find("seed"));
    const auto low = static_cast<std::uint32_t>(arguments_.scalars[index].as_i32);
    const auto high =
        static_cast<std::uint32_t>(arguments_.scalars[spec_.scalar_entries() - 1].as_i32);
    return std::uint64_t{high} << 32 | low;
  }

  // A tensor that all batches share has a copy for each where their scales may differ.
  void give_each_batch_its_own(Values& tensor) const {
    if (tensor.batch == problem_.q.batch) return;
    const std::size_t size = tensor.data.size();
    for (std::int64_t b = 1; b < problem_.q.batch; ++b) {
      tensor.data.resize(tensor.data.size() + size);
      std::copy_n(tensor.data.begin(), size, tensor.data.end() - static_cast<std::ptrdiff_t>(size));
    }
    tensor.batch = problem_.q.batch;
  }

  // group: query heads of a head of the tensor. rows: that have a scale
  void multiply(SnippetKind kind, Values& tensor, std::int64_t group, std::int64_t rows,
                RowScales& taken) const {
    if (snippet_text(spec_, kind).empty() || rows == 0) return;
    give_each_batch_its_own(tensor);
    taken.values = Values::zeros(tensor.batch, tensor.heads, tensor.rows, 1);
    std::fill(taken.values.data.begin(), taken.values.data.end(), 1.0);
    std::vector<double> scales(static_cast<std::size_t>(rows));
    for (std::int64_t b = 0; b < tensor.batch; ++b) {
      for (std::int64_t h = 0; h < tensor.heads; ++h) {
        scales_(kind, arguments_, first_b_ + b, h * group, 0, rows, scales.data());
        for (std::int64_t row = 0; row < rows; ++row) {
          const double scale = scales[static_cast<std::size_t>(row)];
          taken.values.at(b, h, row, 0) = scale;
          if (is_odd_scale(scale) && !taken.odd) taken.odd = scale;
          double* const values = tensor.row(b, h, row);
          for (std::int64_t i = 0; i < tensor.width; ++i) values[i] *= scale;
        }
      }
    }
  }

  const Spec& spec_;
  const ScaleValues& scales_;
  const abi::SnippetArguments& arguments_;
  std::int64_t first_b_, new_rows_;
  DenseProblem& problem_;
};

}  // namespace

ScaleValues scale_values(const FloatInterpretation& in_float,
                         const DoubleInterpretation& in_double) {
  return [&in_float, &in_double](SnippetKind kind, const abi::SnippetArguments& arguments,
                                 std::int64_t b, std::int64_t h, std::int64_t first,
                                 std::int64_t count, double* values) {
    if (kind != SnippetKind::dropout) {
      in_double.scale(kind, arguments, b, h, first, count, values);
      return;
    }
    std::vector<float> probabilities(static_cast<std::size_t>(count));
    in_float.scale(kind, arguments, b, h, first, count, probabilities.data());
    std::copy(probabilities.begin(), probabilities.end(), values);
  };
}

void apply_scales(const Spec& spec, const ScaleValues& scales,
                  const abi::SnippetArguments& arguments, std::int64_t first_b,
                  std::int64_t new_rows, DenseProblem& problem) {
  Scaler(spec, scales, arguments, first_b, new_rows, problem).run();
}

}  // namespace tilewright::verify
