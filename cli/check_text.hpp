#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cli/inputs.hpp"
#include "generator/spec/spec.hpp"
#include "verify/gradient_rule.hpp"
#include "verify/report.hpp"

namespace tilewright::cli {

using Gradients = std::map<std::string, verify::GradientVerdict>;

/// Of the kernel, and of the result that --expect names.
struct AllGradients {
  Gradients ours, theirs;
  std::string advice = {};  ///< why theirs may differ; empty if there is none

  bool ok() const { return are_ok(ours) && are_ok(theirs); }
  static bool are_ok(const Gradients& gradients) {
    return std::all_of(gradients.begin(), gradients.end(),
                       [](const auto& one) { return one.second.shows_right(); });
  }
};

/// Why a call is not shown to be right: one sentence each.
std::vector<std::string> all_reasons(const verify::Report& report, const AllGradients& gradients);

/// The verdict on a call's outputs, and the reasons of a negative one.
std::string verdict_text(const verify::Report& report, const AllGradients& gradients, bool ok);

/// A line for each gradient. whose: before each name
std::string gradients_text(const Gradients& gradients, const char* whose = "");

/// Undefined operations of the snippets with their places and hints, and decisions of mask_mod that
/// differ in float and double.
/// @param is_file  whether the inputs are a file's
std::string findings_text(const Spec& spec, const CallInputs& inputs, bool is_file,
                          const verify::Report& report);

/// What each step of the check took.
std::string times_text(const verify::Report& report);

}  // namespace tilewright::cli
