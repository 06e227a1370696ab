#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/inputs.hpp"
#include "cli/output.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/call/plan_map.hpp"

namespace tilewright::cli {

/// One call of attention and what it took: what run and check have in common.
struct Call {
  std::string spec_name;
  std::string device;
  std::string target;
  std::string kernel;  ///< "forward_masked"
  std::string tactic;  ///< "cpu q_tile=64 ..."
  std::vector<KernelBuild> builds;
  std::optional<BlockMask> mask;
  std::optional<PlanMap> plan_map;  ///< of a packed call
  std::string plan_path;            ///< of its tiles: "proved", "exact" or "lists"
  std::int64_t unplanned_rows = 0;  ///< of q, after the last sequence
  double inputs_ms = 0;             ///< reading or making the inputs
  double prepare_ms = 0;            ///< all kernels, from the spec to where they can be called
  double mask_ms = 0;
  double forward_ms = 0;
  std::optional<double> backward_ms = {};  ///< of a spec with gradients
  double write_ms = 0;                     ///< 0 where no output was written
};

/// What kernels are made with: the default cache and templates, warnings to stderr.
Toolchain command_line_toolchain();

/// Compiles or loads the kernels, builds the block mask where there is a mask_mod, or the plan of a
/// packed call, and fills the outputs of `inputs`. A plan whose report names a value runs nothing.
/// @param mask_file read the block mask, or the positions of a packed call, from it
///        (mask_lists.hpp) in place of deciding tiles; empty: none
/// @param deterministic BackwardOptions::deterministic
/// @throws Error as Attention; as StagedPlan
Call run_call(const Spec& spec, const Device& device, CallInputs& inputs,
              const std::string& mask_file = {}, bool deterministic = false);

/// How a plan's tiles are decided, by the kernels of an Attention: "proved" or "exact"; empty where
/// there is no mask_mod.
std::string plan_path(const std::vector<KernelBuild>& builds);

/// Writes out, lse and gradients to a safetensors file, whole or not at all.
void write_outputs(const CallInputs& inputs, const std::string& path);

/// {spec, device, target, kernel, tactic, shape, kernels, mask, times_ms}
Json to_json(const Call& call, const CallInputs& inputs);

/// The steps of making kernels as lines of text: render, compile with where each came from, load.
std::string describe_kernels(const std::vector<KernelBuild>& builds);

/// A call as lines of text, a step a line.
std::string describe(const Call& call, const CallInputs& inputs);

}  // namespace tilewright::cli
