#pragma once

#include <nlohmann/json.hpp>

#include "check.hpp"

namespace tilewright::verify {

/// A report as `tilewright check --json` prints it, without the notes on the snippets
/// (docs/cli.md).
nlohmann::ordered_json report_json(const Report& report);

}  // namespace tilewright::verify
