#include "verify/gradients.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/float_environment.hpp"
#include "runtime/io/float16.hpp"
#include "verify/gradient_sweep.hpp"

namespace tilewright::verify {
namespace {

std::vector<double> elements_of(const TensorView& view) {
  std::vector<double> elements;
  for (std::int64_t i = 0; i < view.numel(); ++i) {
    std::int64_t rest = i, at = 0;
    for (std::size_t d = static_cast<std::size_t>(view.rank); d-- > 0;) {
      at += rest % view.shape[d] * view.strides[d];
      rest /= view.shape[d];
    }
    elements.push_back(read_element(view.data, view.dtype, at));
  }
  return elements;
}

std::vector<double> written(const Spec& spec, const GradientCall& call, const std::string& name,
                            const TensorView& view) {
  if (name.starts_with("d_")) return elements_of(view);
  if (name == "dq") return call.rows_of_parts(read_values(view, spec.layout));
  return read_values(view, spec.key_value_layout()).data;
}

std::vector<double> part_of(const GradientCall& call, const GradientValues& values,
                            const std::string& name) {
  if (name == "dq") return call.rows_of_parts(values.dq);
  if (name == "dk") return values.dk.data;
  if (name == "dv") return values.dv.data;
  return call.cells().of(name.substr(2), values.named);
}

// Of a buffer or scalar.
void add_magnitudes(const GradientCall& call, const GradientSizes& sizes, ComparedGradient& one) {
  const double elements =
      call.elements_of_scores() / static_cast<double>(std::max<std::size_t>(one.got.size(), 1));
  one.magnitudes = call.cells().of(one.name.substr(2), sizes.named_magnitudes);
  one.derivative_overflow = call.cells().of(one.name.substr(2), sizes.derivative_overflow);
  one.share_of_magnitudes = std::sqrt(std::max(elements, 1.0)) * 0x1p-24;
}

// Of a buffer or scalar, whose terms kernels have in float32.
ComparedGradient with_float_terms(const GradientCall& call, const GradientSizes& sizes,
                                  const GradientValues& naive, ComparedGradient one) {
  one.naive = {part_of(call, naive, one.name)};
  one.own = call.cells().of(one.name.substr(2), sizes.named_in_float);
  one.share_of_terms -= kShareOfTerms;
  one.dtype_of_terms = DType::f32;
  return one;
}

// scale: the call's. Kernels multiply the sums of dq and dk by it in the end.
void mark_large_sums(double scale, ComparedGradient& one) {
  const bool is_scaled = one.name == "dq" || one.name == "dk";
  const double factor = is_scaled ? std::max(1.0, 1 / std::fabs(scale)) : 1;
  for (std::size_t i = 0; i < one.terms.size(); ++i) {
    const double sum = one.terms[i] * factor;
    if (std::isfinite(sum) && sum >= std::numeric_limits<float>::max()) {
      one.overflow[i] = std::max(one.overflow[i], GradientSizes::kMayBeInfinite);
    }
  }
}

}  // namespace

std::map<std::string, GradientVerdict> judge_gradients(const Spec& spec, const Problem& problem,
                                                       const GradientResults& results,
                                                       const Toolchain& toolchain,
                                                       Executor& threads) {
  const DefaultFloatEnvironment floats;
  const GradientCall call(spec, problem, results, toolchain, threads);
  GradientSizes sizes;
  const GradientValues reference = call.reference(sizes);
  const GradientValues spread = call.spread(sizes);
  std::vector<GradientValues> naive;
  const std::size_t draws = spec.dtype == DType::f32 ? 1 : 4;
  for (std::size_t draw = 0; draw < draws; ++draw) naive.push_back(call.naive(draw));

  const bool has_float_terms = call.cells().count() > 0 && results.has_float_terms(spec.dtype);
  const GradientValues in_float = has_float_terms ? call.naive_in_float() : GradientValues();

  const double typical = typical_score(sizes.row_scores);
  std::map<std::string, GradientVerdict> verdicts;
  for (const auto& [name, view] : results.gradients) {
    ComparedGradient one{.name = name, .dtype = view.dtype, .dtype_of_terms = spec.dtype};
    one.got = written(spec, call, name, view);
    one.reference = part_of(call, reference, name);
    one.terms = part_of(call, sizes.terms, name);
    one.own = part_of(call, sizes.own, name);
    one.ambiguous = part_of(call, sizes.ambiguous, name);
    one.spread = part_of(call, spread, name);
    one.overflow = part_of(call, sizes.overflow, name);
    for (const GradientValues& draw : naive) one.naive.push_back(part_of(call, draw, name));
    const bool is_named = name.starts_with("d_");
    if (is_named) add_magnitudes(call, sizes, one);
    one.share_of_terms += kShareOfFastFunctions * typical;
    mark_large_sums(scale_of(spec, problem), one);
    if (!is_named || !has_float_terms) {
      verdicts.emplace(name, judge_gradient(std::move(one)));
      continue;
    }
    GradientVerdict& verdict = verdicts[name] = judge_gradient(one);
    take_nearer(judge_gradient(with_float_terms(call, sizes, in_float, std::move(one))), verdict);
  }
  const std::string doubt = call.find_wrong_derivative();
  if (doubt.empty()) return verdicts;
  for (auto& [name, verdict] : verdicts) {
    if (name == "dv") continue;  // f' is not in it
    verdict.ok = false;
    verdict.reasons.push_back(doubt);
  }
  return verdicts;
}

}  // namespace tilewright::verify
