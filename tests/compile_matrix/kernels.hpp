#pragma once

#include <string>
#include <vector>

#include "generator/render/kernel_source.hpp"
#include "generator/spec/spec.hpp"
#include "generator/spec/target.hpp"
#include "generator/tactic/tactic.hpp"
#include "runtime/compile/kernel_compiler.hpp"
#include "tests/compile_matrix/sass.hpp"

namespace tilewright::compile_matrix {

/// One kernel that a spec can ask for on a target.
struct Wish {
  Spec spec;
  Target target;
  KernelVariant kernel;

  /// "alibi_documents bf16 128: forward_masked for sm_80"
  std::string describe() const;
};

/// The tactic of a wished forward kernel; of another kernel, that of its spec.
Tactic tactic_of(const Wish& wish);

/// One source, and all who wish for it: specs that differ only in what reaches no kernel, and
/// tactics that come out equal, are compiled once.
struct Kernel {
  KernelSource source;
  std::vector<Wish> wishes;
};

/// What became of a kernel.
struct Outcome {
  std::string error;       ///< empty where it compiled
  std::string compiler;    ///< "V13.0.88", or "NVRTC 13.0" where the cubin does not say
  GpuResources resources;  ///< where it compiled
  std::size_t cubin_bytes = 0;
  std::size_t instructions = 0;  ///< of SASS, without padding (sass.hpp)
  WarpgroupProducts products = {};
};

/// Renders every wish.
/// @throws Error as render_kernel
std::vector<Kernel> distinct_kernels(const std::vector<Wish>& wishes);

/// Never throws for a wrong kernel.
Outcome compile(const Kernel& kernel);

/// What is wrong with a kernel, a line each: it does not compile; ptxas says that something costs
/// speed silently; an asm statement writes a variable twice (operands.hpp); or it spills where it
/// must not.
std::vector<std::string> problems(const Kernel& kernel, const Outcome& outcome);

}  // namespace tilewright::compile_matrix
