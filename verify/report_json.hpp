#pragma once

#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "gradient_rule.hpp"
#include "report.hpp"

namespace tilewright::verify {

/// A report as `tilewright check --json` prints it, without the notes on the snippets
/// (docs/cli.md).
nlohmann::ordered_json report_json(const Report& report);

/// The verdicts of judge_gradients, as the key `gradients` has them.
nlohmann::ordered_json gradients_json(const std::map<std::string, GradientVerdict>& gradients);

}  // namespace tilewright::verify
