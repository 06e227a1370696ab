#include "cli/nan_note.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "generator/messages/text_location.hpp"
#include "generator/snippet/snippet.hpp"
#include "runtime/io/float16.hpp"
#include "verify/gradients.hpp"
#include "verify/parts.hpp"

namespace tilewright::cli {
namespace {

using Is = bool(double);

bool is_nan(double value) {
  return std::isnan(value);
}

bool is_infinite(double value) {
  return std::isinf(value);
}

bool holds(const TensorView& view, Is* is) {
  if (!is_floating(view.dtype)) return false;
  for (std::int64_t i = 0; i < view.numel(); ++i) {
    std::int64_t rest = i, at = 0;
    for (auto d = static_cast<std::size_t>(view.rank); d-- > 0;) {
      at += rest % view.shape[d] * view.strides[d];
      rest /= view.shape[d];
    }
    if (is(read_element(view.data, view.dtype, at))) return true;
  }
  return false;
}

// q, k and v as products see them: rows of no sequence may hold anything.
template <typename Found>
void look_at_rows(const Spec& spec, const verify::Problem& problem, Is* is, const Found& found) {
  const verify::Parts parts(spec, problem);
  bool holds_q = false, holds_k = false, holds_v = false;
  const auto any = [&](const verify::Values& values) {
    return std::any_of(values.data.begin(), values.data.end(), is);
  };
  for (const verify::Parts::Piece& piece : parts.pieces()) {
    if (piece.score_rows() == 0 || piece.columns() == 0) continue;
    const verify::DenseProblem dense = parts.read(piece);
    holds_q = holds_q || any(dense.q);
    holds_k = holds_k || any(dense.k);
    holds_v = holds_v || any(dense.v);
  }
  if (holds_q) found("q");
  if (holds_k) found("k");
  if (holds_v) found("v");
}

// "scalar cap is NaN", "q holds NaN": each input of the call that does.
std::vector<std::string> inputs_with(const Spec& spec, const CallInputs& inputs, Is* is,
                                     const char* what) {
  std::vector<std::string> found;
  const verify::Problem& problem = inputs.problem();
  for (const auto& [name, value] : problem.snippet.scalars) {
    if (is(value)) found.push_back(fmt::format("scalar {} is {}", name, what));
  }
  const auto look = [&](const std::string& name, const std::optional<TensorView>& view) {
    if (view && holds(*view, is)) found.push_back(fmt::format("{} holds {}", name, what));
  };
  for (const auto& [name, view] : problem.snippet.buffers) look("buffer " + name, view);
  look_at_rows(spec, problem, is,
               [&](const char* name) { found.push_back(fmt::format("{} holds {}", name, what)); });
  if (inputs.gradients() == nullptr) return found;
  const verify::GradientResults results = inputs.gradients()->results();
  look("dout", results.dout);
  look("dlse", results.dlse);
  return found;
}

// Why the reference has NaN, and what to do.
struct Cause {
  std::string text, hint;
  SourceLocation place = {.file = "inputs"};
};
Cause cause_of(const Spec& spec, const CallInputs& inputs) {
  std::vector<std::string> found = inputs_with(spec, inputs, is_nan, "NaN");
  if (found.empty()) found = inputs_with(spec, inputs, is_infinite, "infinity");
  if (!found.empty()) {
    return {fmt::format("{}", fmt::join(found, ", ")), "with finite numbers the check says more"};
  }
  const char* const hint =
      "guard what has no number, such as the logarithm of a negative number: mask_mod can drop the "
      "element";
  if (spec.has_other_snippets()) return {"the spec's snippets make NaN of finite inputs", hint};
  if (spec.score_mod.empty()) return {"no input holds NaN or infinity", hint};
  return {"score_mod makes NaN of finite inputs", hint,
          place_at(to_string(SnippetKind::score_mod), spec.score_mod, 0)};
}

}  // namespace

std::optional<SnippetNote> nan_note(const Spec& spec, const CallInputs& inputs,
                                    const std::vector<NanCount>& counts) {
  std::vector<std::string> places;
  for (const NanCount& count : counts) {
    if (count.nan == 0) continue;
    const char* const elements = places.empty() ? "elements " : "";
    places.push_back(
        fmt::format("{} of {} {}of {}", count.nan, count.judged, elements, count.tensor));
  }
  if (places.empty()) return std::nullopt;
  const Cause cause = cause_of(spec, inputs);
  return SnippetNote{
      .place = cause.place,
      .message = fmt::format("NaN is right in {}, as {}", fmt::join(places, ", "), cause.text),
      .hint = cause.hint};
}

}  // namespace tilewright::cli
