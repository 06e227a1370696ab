#include "cli/check_text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "cli/call.hpp"
#include "cli/output.hpp"
#include "verify/buffer_ends.hpp"

namespace tilewright::cli {
namespace {

const char* verdict_word(const verify::GradientVerdict& verdict) {
  if (!verdict.ok) return "NOT OK";
  return verdict.says_nothing() ? "nothing judged" : "ok";
}

// Whether a right result has nothing but NaN: then no error has a size.
bool is_all_nan(bool ok, std::int64_t nan, std::int64_t judged) {
  return ok && judged > 0 && nan == judged;
}

std::string errors_text(const verify::GradientVerdict& verdict) {
  if (is_all_nan(verdict.ok, verdict.nan, verdict.judged())) {
    return "NaN everywhere, as in the reference";
  }
  return fmt::format("error max {:.3g}, at most {:.3g}, rms {:.3g}, at most {:.3g}",
                     verdict.error_max, verdict.bound_max, verdict.error_rms, verdict.bound_rms);
}

std::string errors_of_out(const verify::Report& report) {
  const verify::Verdict& verdict = report.verdict;
  if (is_all_nan(verdict.ok, report.nan, report.judged())) {
    return "out is NaN everywhere, as in the reference\n";
  }
  return fmt::format(
      "error max {:.3g}, at most {:.3g}; naive has {:.3g}\n"
      "error rms {:.3g}, at most {:.3g}; naive has {:.3g}\n",
      verdict.error_max, verdict.bound_max, verdict.naive_max, verdict.error_rms, verdict.bound_rms,
      verdict.naive_rms);
}

// "a "bias" whose dimension 0 is 7 long"
std::string longer_tensor(const std::string& buffer, const std::map<int, std::int64_t>& needed) {
  std::vector<std::string> dimensions;
  for (const auto& [dimension, extent] : needed) {
    dimensions.push_back(fmt::format("dimension {} is {}", dimension, extent));
  }
  return fmt::format("a \"{}\" whose {} long", buffer, fmt::join(dimensions, " and "));
}

// With extents for all of the buffer's null dimensions, as --buffer wants them.
std::string longer_option(const Spec& spec, const CallInputs& inputs, const std::string& buffer,
                          const std::map<int, std::int64_t>& needed) {
  const TensorView& given = inputs.problem().snippet.buffers.at(buffer);
  const std::vector<BufferDim>& shape = spec.buffers.at(buffer).shape;
  std::vector<std::int64_t> extents;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!std::holds_alternative<FreeDim>(shape[d])) continue;
    const auto longer = needed.find(static_cast<int>(d));
    extents.push_back(longer == needed.end() ? given.shape[d] : longer->second);
  }
  return fmt::format("--buffer {}={}", buffer, fmt::join(extents, ","));
}

// "a "shape" of [2, 70, null] in the spec", with the dimensions that the spec fixes longer.
std::string longer_shape(const std::vector<BufferDim>& shape,
                         const std::map<int, std::int64_t>& needed) {
  std::vector<std::string> dimensions;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto longer = needed.find(static_cast<int>(d));
    if (const auto* const name = std::get_if<NamedDim>(&shape[d])) {
      dimensions.push_back(fmt::format("\"{}\"", to_string(*name)));
    } else if (std::holds_alternative<FreeDim>(shape[d])) {
      dimensions.emplace_back("null");
    } else {
      dimensions.push_back(fmt::format(
          "{}", longer == needed.end() ? std::get<std::int64_t>(shape[d]) : longer->second));
    }
  }
  return fmt::format("a \"shape\" of [{}] in the spec", fmt::join(dimensions, ", "));
}

// Which of the indices that were outside the extents in `ends` hold.
std::string what_is_held(const verify::BufferEnds& ends, bool all_were_looked_at) {
  if (!ends.unheld.empty()) {
    std::vector<int> dimensions;
    for (const auto& [dimension, extent] : ends.needed) dimensions.push_back(dimension);
    return fmt::format("those of dimension {}", fmt::join(dimensions, " and "));
  }
  if (ends.reads_nan) return "all that are numbers";
  return all_were_looked_at ? "them all" : "those of the elements that were looked at";
}

// What could hold the indices outside of a buffer, of all that read it.
std::string hint_on_buffer(const Spec& spec, const CallInputs& inputs, bool is_file,
                           const std::string& buffer, const verify::BufferEnds& ends,
                           bool all_were_looked_at) {
  const std::vector<BufferDim>& shape = spec.buffers.at(buffer).shape;
  bool has_number = false, has_null = false;
  for (const auto& [dimension, extent] : ends.needed) {
    const bool is_null =
        std::holds_alternative<FreeDim>(shape.at(static_cast<std::size_t>(dimension)));
    (is_null ? has_null : has_number) = true;
  }
  std::vector<std::string> longer;
  if (has_number) longer.push_back(longer_shape(shape, ends.needed));
  if (is_file && !ends.needed.empty()) longer.push_back(longer_tensor(buffer, ends.needed));
  if (!is_file && has_null) longer.push_back(longer_option(spec, inputs, buffer, ends.needed));
  std::vector<std::string> clauses;
  if (!longer.empty()) {
    clauses.push_back(fmt::format("{} {} {}", fmt::join(longer, " and "),
                                  longer.size() == 1 ? "holds" : "hold",
                                  what_is_held(ends, all_were_looked_at)));
  }
  clauses.insert(clauses.end(), ends.unheld.begin(), ends.unheld.end());
  return fmt::format("{}", fmt::join(clauses, "; "));
}

}  // namespace

std::vector<std::string> all_reasons(const verify::Report& report, const AllGradients& gradients) {
  std::vector<std::string> reasons = report.reasons();
  // What is said of score_mod stands with each of its gradients.
  const auto add_once = [&](std::string reason) {
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) {
      reasons.push_back(std::move(reason));
    }
  };
  for (const auto& [name, verdict] : gradients.ours) {
    for (std::string& reason : verdict.why_not_right(name)) add_once(std::move(reason));
  }
  for (const auto& [name, verdict] : gradients.theirs) {
    for (const std::string& reason : verdict.why_not_right(name)) {
      add_once("the result from elsewhere: " + reason);
    }
  }
  if (!gradients.advice.empty()) reasons.push_back(gradients.advice);
  return reasons;
}

std::string verdict_text(const verify::Report& report, const AllGradients& gradients, bool ok) {
  const verify::Verdict& verdict = report.verdict;
  std::string text = ok ? "ok\n" : "NOT OK\n";
  for (const std::string& reason : all_reasons(report, gradients)) text += "  " + reason + '\n';
  text += errors_of_out(report);
  const auto say_unjudged = [&](std::int64_t count, const char* why) {
    if (count == 0) return;
    text += fmt::format("  {} of out {} not judged: {}\n", counted(count, "element"),
                        is_or_are(count), why);
  };
  say_unjudged(report.unjudged.spread, "NaN or infinity of v may spread there inside of a tile");
  say_unjudged(report.unjudged.scale,
               "a scale that is not finite, or an out_scale near 0, reaches there");
  say_unjudged(report.unjudged.overflow, "float32 does not hold a number on the way there");
  if (verdict.lse_bound > 0) {
    text += fmt::format("error lse {:.3g}, at most {:.3g}\n", verdict.lse_error, verdict.lse_bound);
  }
  if (verdict.max_scores_bound > 0) {
    text += fmt::format("error max_scores {:.3g}, at most {:.3g}\n", verdict.max_scores_error,
                        verdict.max_scores_bound);
  }
  if (verdict.weights_bound > 0) {
    text += fmt::format("error weights {:.3g}, at most {:.3g}\n", verdict.weights_error,
                        verdict.weights_bound);
  }
  if (report.their_verdict) {
    const verify::Verdict& theirs = *report.their_verdict;
    text +=
        fmt::format("your result: {}, error max {:.3g}, at most {:.3g}, rms {:.3g}, at most {:.3g}",
                    !theirs.ok                                   ? "NOT OK"
                    : report.says_nothing(report.their_unjudged) ? "nothing judged"
                                                                 : "ok",
                    theirs.error_max, theirs.bound_max, theirs.error_rms, theirs.bound_rms);
    if (theirs.lse_bound > 0) {
      text += fmt::format(", lse {:.3g}, at most {:.3g}", theirs.lse_error, theirs.lse_bound);
    }
    if (theirs.max_scores_bound > 0) {
      text += fmt::format(", max_scores {:.3g}, at most {:.3g}", theirs.max_scores_error,
                          theirs.max_scores_bound);
    }
    if (theirs.weights_bound > 0) {
      text += fmt::format(", weights {:.3g}, at most {:.3g}", theirs.weights_error,
                          theirs.weights_bound);
    }
    text += fmt::format("; it differs from ours by {:.3g}, at most {:.3g}\n",
                        report.their_agreement->difference, report.their_agreement->bound);
  }
  if (report.agreement) {
    const verify::Agreement& agreement = *report.agreement;
    text += fmt::format("the devices differ by {:.3g}, at most {:.3g}\n", agreement.difference,
                        agreement.bound);
  }
  if (report.mask_verdict) {
    text +=
        fmt::format("{}: {} compared, {} wrong\n", report.mask ? "block mask" : "tile map",
                    counted(report.mask_verdict->tiles, "tile"), report.mask_verdict->wrong_tiles);
  }
  return text;
}

std::string gradients_text(const Gradients& gradients, const char* whose) {
  std::string text;
  for (const auto& [name, verdict] : gradients) {
    text += fmt::format("{}{}: {}, {}\n", whose, name, verdict_word(verdict), errors_text(verdict));
    const auto say_unjudged = [&](std::int64_t count, const std::string& why) {
      if (count == 0) return;
      text += fmt::format("  {} of its elements {} not judged: {}\n", count, is_or_are(count), why);
    };
    say_unjudged(verdict.overflow - verdict.derivative_overflow,
                 "float32 does not hold a number on the way there");
    say_unjudged(
        verdict.derivative_overflow,
        fmt::format("in float32 score_mod's derivative by {} is NaN or infinite", name.substr(2)));
    say_unjudged(verdict.spread,
                 "NaN or infinity of q, k, v, dout, dlse or scores may spread there inside of a "
                 "tile");
  }
  return text;
}

std::string findings_text(const Spec& spec, const CallInputs& inputs, bool is_file,
                          const verify::Report& report) {
  const verify::UndefinedOperations& found = report.undefined;
  std::map<std::string, verify::BufferEnds> ends = verify::find_buffer_ends(spec, found.operations);
  std::string text;
  for (const verify::UndefinedOperation& operation : found.operations) {
    text += fmt::format("warning: {}\n  --> {}\n   | {}\n", operation.message,
                        to_string(operation.place), operation.place.excerpt);
    if (!operation.outside) continue;
    const auto buffer = ends.extract(operation.outside->buffer);
    if (!buffer) continue;  // an operation above has the hint
    const std::string hint = hint_on_buffer(spec, inputs, is_file, buffer.key(), buffer.mapped(),
                                            found.elements_checked == found.elements);
    if (!hint.empty()) text += fmt::format("  hint: {}\n", hint);
  }
  if (found.count > 0) {
    text += fmt::format("{} in {} of {} that were looked at\n",
                        counted(found.count, "undefined operation"), found.elements_checked,
                        counted(found.elements, "element"));
  }
  if (report.mask_disagreements > 0) {
    text += fmt::format("warning: mask_mod decides {} differently in float and in double\n",
                        counted(report.mask_disagreements, "element"));
  }
  return text;
}

std::string times_text(const verify::Report& report) {
  const verify::StepTimes& ms = report.ms;
  std::string text = describe_kernels(report.builds);
  if (ms.mask > 0) {
    text += fmt::format("{:<9} {}\n", report.mask ? "mask" : "plan", format_ms(ms.mask));
  }
  text += fmt::format("forward   {}\n", format_ms(ms.forward));
  text += fmt::format("reference {:<10} in double precision\n",
                      format_ms(ms.interpretations + ms.reference));
  if (ms.undefined > 0) {
    text += fmt::format("checked   {:<10} for undefined behaviour\n", format_ms(ms.undefined));
  }
  return text;
}

}  // namespace tilewright::cli
