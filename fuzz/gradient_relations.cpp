#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/printable_number.hpp"
#include "fuzz/case_gradients.hpp"
#include "fuzz/packing.hpp"
#include "fuzz/relation_calls.hpp"
#include "fuzz/relations.hpp"
#include "fuzz/written.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::verify::fuzz {
namespace {

// The calls of both sides: one spec, so that its kernels are compiled once.
class GradientChecks {
 public:
  GradientChecks(const Spec& spec, const Inputs& inputs, const FuzzPacking& packing,
                 RelationRunner& runner)
      : inputs_(inputs), runner_(runner), sequences_(spec, packing) {
    case_.spec = spec;
    case_.shape = inputs.shape;
    case_.packing = packing;
    case_.dlse = true;
    case_.deterministic = true;
    case_.seed = 1;
  }

  // Twice a float is exact, and so is each sum of such, but for numbers below the normal ones.
  RelationResult doubled_dout() {
    const Problem problem = sequences_.problem_of(inputs_);
    CaseGradients once(case_, problem), twice(case_, problem, 2);
    runner_.backward(case_, problem, once);
    runner_.backward(case_, problem, twice);
    for (const auto& [name, gradient] : once.written()) {
      const Tensor a = Tensor::copy_of(gradient.view());
      const Tensor b = Tensor::copy_of(twice.written().at(name).view());
      for (std::int64_t i = 0; i < a.numel(); ++i) {
        const double wanted = 2 * read_element(a.data(), a.dtype(), i);
        const double got = read_element(b.data(), b.dtype(), i);
        if (is_same(got, round_to(b.dtype(), wanted), step_of(b.dtype()))) continue;
        return {.message = fmt::format("twice dout gives {} in element {} of {}, and not twice {}",
                                       printable(got), i, name, printable(wanted / 2))};
      }
    }
    return {};
  }

  // No snippet knows the number of its batch, so nothing else changes.
  RelationResult reversed_batches() {
    const auto batch = static_cast<std::size_t>(inputs_.shape.batch);
    std::vector<std::int64_t> from(batch);
    for (std::size_t b = 0; b < batch; ++b) from[b] = static_cast<std::int64_t>(batch - 1 - b);
    Inputs reversed = copy_of(inputs_);
    for (Tensor* const tensor : {&reversed.q, &reversed.k, &reversed.v}) {
      if (tensor->shape()[0] > 1) *tensor = taken(*tensor, 0, from);
    }
    const Problem problem = sequences_.problem_of(inputs_),
                  other_problem = sequences_.problem_of(reversed);
    CaseGradients usual(case_, problem), other(case_, other_problem);
    other.take_batches(from);
    runner_.backward(case_, problem, usual);
    runner_.backward(case_, other_problem, other);
    for (const char* const name : {"dq", "dk", "dv"}) {
      const auto found = usual.written().find(name);
      // Sums over batches are in another order.
      if (found == usual.written().end() || found->second.view().shape[0] == 1) continue;
      const Tensor wanted = taken(Tensor::copy_of(found->second.view()), 0, from);
      if (same_bits(wanted, other.written().at(name).view())) continue;
      return {.message = fmt::format("batches in another order give other bits of {}", name)};
    }
    return {};
  }

 private:
  // Between neighbours below the normal numbers. What a GPU's products of f16 lose there of dX is
  // as small in each term.
  double step_of(DType dtype) const {
    const bool is_f16 = case_.spec.dtype == DType::f16 || dtype == DType::f16;
    if (!is_f16) return 0x1p-120;
    const auto terms = static_cast<double>(std::max(inputs_.shape.q_len, inputs_.shape.kv_len));
    return runner_.is_on_gpu() ? 0x1p-24 * 8 * terms : 0x1p-23;
  }

  static bool is_same(double got, double wanted, double step) {
    if (std::isnan(wanted)) return std::isnan(got);
    return got == wanted || std::fabs(got - wanted) <= step;
  }

  FuzzCase case_ = {};
  const Inputs& inputs_;
  RelationRunner& runner_;
  SequencesOfCall sequences_;
};

}  // namespace

RelationResult check_gradient_relation(Relation relation, const Spec& spec, const Inputs& inputs,
                                       const FuzzPacking& packing, RelationRunner& runner) {
  GradientChecks checks(spec, inputs, packing, runner);
  return relation == Relation::doubled_dout ? checks.doubled_dout() : checks.reversed_batches();
}

}  // namespace tilewright::verify::fuzz
