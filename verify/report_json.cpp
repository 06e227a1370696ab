#include "verify/report_json.hpp"

namespace tilewright::verify {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const std::optional<ShortDimension>& too_short) {
  if (!too_short) return nullptr;
  return {{"buffer", too_short->buffer},
          {"dimension", too_short->dimension},
          {"needed", too_short->needed}};
}

Json to_json(const std::optional<OutsideIndices>& outside) {
  if (!outside || outside->is_nan) return nullptr;
  return {{"buffer", outside->buffer},
          {"dimension", outside->dimension},
          {"extent", outside->extent},
          {"least", outside->least},
          {"greatest", outside->greatest}};
}

Json to_json(const UndefinedOperations& found) {
  Json operations = Json::array();
  for (const UndefinedOperation& operation : found.operations) {
    operations.push_back({{"message", operation.message},
                          {"file", operation.place.file},
                          {"line", operation.place.line},
                          {"column", operation.place.column},
                          {"kept", operation.kept},
                          {"outside", to_json(operation.outside)},
                          {"too_short", to_json(operation.too_short)}});
  }
  return {{"count", found.count},
          {"elements", found.elements},
          {"elements_checked", found.elements_checked},
          {"operations", operations}};
}

Json to_json(const MaskVerdict& mask) {
  return {{"ok", mask.ok},
          {"tiles", mask.tiles},
          {"wrong_tiles", mask.wrong_tiles},
          {"first_wrong", mask.first_wrong.empty() ? Json() : Json(mask.first_wrong)}};
}

Json to_json(const Agreement& agreement) {
  return {{"ok", agreement.ok},
          {"difference", agreement.difference},
          {"bound", agreement.bound},
          {"lse_difference", agreement.lse_difference},
          {"lse_bound", agreement.lse_bound}};
}

Json to_json(const Verdict& theirs, const Agreement& beside, bool says_nothing) {
  return {{"ok", theirs.ok && beside.ok && !says_nothing},
          {"error_max", theirs.error_max},
          {"error_rms", theirs.error_rms},
          {"bound", theirs.bound_max},
          {"bound_rms", theirs.bound_rms},
          {"lse_error", theirs.lse_error},
          {"lse_bound", theirs.lse_bound},
          {"max_scores_error", theirs.max_scores_error},
          {"max_scores_bound", theirs.max_scores_bound},
          {"weights_error", theirs.weights_error},
          {"weights_bound", theirs.weights_bound},
          {"reasons", theirs.reasons},
          {"beside_ours", to_json(beside)}};
}

Json to_json(const StepTimes& ms) {
  return {{"kernels", ms.kernels},     {"readings", ms.interpretations},
          {"undefined", ms.undefined}, {"mask", ms.mask},
          {"forward", ms.forward},     {"reference", ms.reference},
          {"naive", ms.naive},         {"judge", ms.judge}};
}

}  // namespace

Json report_json(const Report& report) {
  const Verdict& verdict = report.verdict;
  return {
      {"ok", report.shows_right()},
      {"error_max", verdict.error_max},
      {"error_rms", verdict.error_rms},
      {"bound", verdict.bound_max},
      {"bound_rms", verdict.bound_rms},
      {"lse_error", verdict.lse_error},
      {"lse_bound", verdict.lse_bound},
      {"max_scores_error", verdict.max_scores_error},
      {"max_scores_bound", verdict.max_scores_bound},
      {"weights_error", verdict.weights_error},
      {"weights_bound", verdict.weights_bound},
      {"judged", report.judged()},
      {"naive_max", verdict.naive_max},
      {"naive_rms", verdict.naive_rms},
      {"spread", report.unjudged.spread},
      {"odd_scales", report.unjudged.scale},
      {"overflow", report.unjudged.overflow},
      {"unreached", report.unjudged.unreached},
      {"nan", report.nan},
      {"reasons", report.reasons()},
      {"mask", report.mask_verdict ? to_json(*report.mask_verdict) : Json()},
      {"agreement", report.agreement ? to_json(*report.agreement) : Json()},
      {"expected", report.their_verdict ? to_json(*report.their_verdict, *report.their_agreement,
                                                  report.says_nothing(report.their_unjudged))
                                        : Json()},
      {"mask_disagreements", report.mask_disagreements},
      {"undefined", to_json(report.undefined)},
      {"times_ms", to_json(report.ms)}};
}

Json gradients_json(const std::map<std::string, GradientVerdict>& gradients) {
  Json json = Json::object();
  for (const auto& [name, verdict] : gradients) {
    json[name] = {{"ok", verdict.shows_right()},
                  {"error_max", verdict.error_max},
                  {"error_rms", verdict.error_rms},
                  {"bound", verdict.bound_max},
                  {"bound_rms", verdict.bound_rms},
                  {"naive_max", verdict.naive_max},
                  {"naive_rms", verdict.naive_rms},
                  {"judged", verdict.judged()},
                  {"spread", verdict.spread},
                  {"overflow", verdict.overflow},
                  {"unreached", verdict.unreached},
                  {"nan", verdict.nan},
                  {"reasons", verdict.why_not_right(name)}};
  }
  return json;
}

}  // namespace tilewright::verify
