#pragma once

#include <string>

#include "tests/mutants/trial.hpp"

namespace tilewright::mutants {

/// One line of what a process prints that runs a mutant for another one.
std::string report_of(const Trial& trial);

/// The trial that a process reported in `output`, where there may be more: what a kernel printed
/// whose wait never ended, say.
/// @throws Error with code internal where it reported none
Trial read_trial(const std::string& output);

}  // namespace tilewright::mutants
