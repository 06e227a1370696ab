#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/inputs.hpp"
#include "cli/output.hpp"
#include "runtime/api/attention.hpp"

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
  double inputs_ms = 0;   ///< reading or making the inputs
  double prepare_ms = 0;  ///< all kernels, from the spec to where they can be called
  double mask_ms = 0;
  double forward_ms = 0;
  double write_ms = 0;  ///< 0 where no output was written
};

/// What kernels are made with: the default cache and templates, warnings to stderr.
Toolchain command_line_toolchain();

/// Compiles or loads the kernels, builds the block mask where there is a mask_mod, and fills the
/// outputs of `inputs`.
/// @param mask_file read the block mask from it (mask_lists.hpp) in place of building one; empty:
/// none
/// @throws Error as Attention
Call run_call(const Spec& spec, const Device& device, CallInputs& inputs,
              const std::string& mask_file = {});

/// Writes out and lse to a safetensors file, whole or not at all.
void write_outputs(const CallInputs& inputs, const std::string& path);

/// {spec, device, target, kernel, tactic, shape, kernels, mask, times_ms}
Json to_json(const Call& call, const Shape& shape);

/// The steps of making kernels as lines of text: render, compile with where each came from, load.
std::string describe_kernels(const std::vector<KernelBuild>& builds);

/// A call as lines of text, a step a line.
std::string describe(const Call& call, const Shape& shape);

}  // namespace tilewright::cli
