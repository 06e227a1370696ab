#include "fuzz/outcome.hpp"

#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright::verify::fuzz {
namespace {

constexpr std::array<std::string_view, 14> kNames = {
    "none",          "wrong_result",  "wrong_gradient",  "mask_differs",
    "red_zone",      "input_changed", "not_repeatable",  "devices_disagree",
    "compile_error", "undefined",     "relation_broken", "crash",
    "time_out",      "error"};

}  // namespace

std::string_view to_string(Failure failure) {
  return kNames[static_cast<std::size_t>(failure)];
}

Failure failure_from_string(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Failure>(i);
  }
  throw Error(ErrorCode::file, fmt::format("\"{}\" is no class of failures", name));
}

std::vector<Outcome> taken_apart(const Outcome& outcome) {
  std::vector<Outcome> parts = {outcome};
  parts.front().others.clear();
  for (const Finding& finding : outcome.others) {
    Outcome part = parts.front();
    part.message = finding.message;
    part.key = finding.key;
    parts.push_back(std::move(part));
  }
  return parts;
}

Error::Details details_of(const Error& error) {
  return {.code = error.code(),
          .message = error.message(),
          .place = error.place(),
          .notes = error.notes(),
          .hint = error.hint()};
}

bool is_lack_of_machine(const std::optional<Error::Details>& error) {
  return error && (error->code == ErrorCode::missing_kernel || error->code == ErrorCode::memory ||
                   error->code == ErrorCode::disk);
}

}  // namespace tilewright::verify::fuzz
