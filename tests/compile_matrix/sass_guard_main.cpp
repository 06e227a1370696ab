// Compares what ptxas makes of the kernels of bench's suites with
// tests/compile_matrix/sass_guard.tsv. Exit status 1 if a kernel needs more than it did there
// (sass_guard.hpp says how much more is allowed).
//
//     sass_guard            compares
//     sass_guard --write    writes sass_guard.tsv from this commit's kernels
//
// TILEWRIGHT_TEST_NEEDS_NVRTC  1: without NVRTC it fails; else it says "[SKIP]"

#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "runtime/api/thread_pool.hpp"
#include "tests/compile_matrix/kernels.hpp"
#include "tests/compile_matrix/progress.hpp"
#include "tests/compile_matrix/sass_guard.hpp"
#include "tests/support/nvrtc.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::compile_matrix;

const std::string kBaselinePath =
    std::string(TILEWRIGHT_SOURCE_DIR) + "/tests/compile_matrix/sass_guard.tsv";

SassFigures figures_of(const Outcome& outcome) {
  return {.registers = outcome.resources.registers,
          .spill_bytes = outcome.resources.spill_bytes,
          .shared_bytes = outcome.resources.shared_bytes,
          .instructions = static_cast<std::int64_t>(outcome.instructions)};
}

// @throws Error if a kernel does not compile
SassBaseline measure(const std::vector<Kernel>& kernels) {
  std::vector<Outcome> outcomes(kernels.size());
  Progress progress(kernels.size());
  ThreadPool::shared().parallel_for(static_cast<std::int64_t>(kernels.size()),
                                    [&](std::int64_t item, int) {
                                      const auto i = static_cast<std::size_t>(item);
                                      outcomes[i] = compile(kernels[i]);
                                      progress.one_more(!outcomes[i].error.empty());
                                    });
  SassBaseline measured;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (!outcomes[i].error.empty()) throw Error(ErrorCode::internal, outcomes[i].error);
    measured.compiler = outcomes[i].compiler;
    for (const Wish& wish : kernels[i].wishes) {
      measured.kernels[wish.describe()] = figures_of(outcomes[i]);
    }
  }
  return measured;
}

int report_growth(const SassBaseline& before, const SassBaseline& now) {
  int wrong = 0;
  for (const auto& [kernel, figures] : now.kernels) {
    const auto recorded = before.kernels.find(kernel);
    std::vector<std::string> lines = {"not in sass_guard.tsv: run sass_guard --write"};
    if (recorded != before.kernels.end()) lines = growth(recorded->second, figures);
    for (const std::string& line : lines) fmt::print("GREW {}: {}\n", kernel, line);
    wrong += lines.empty() ? 0 : 1;
  }
  for (const auto& [kernel, figures] : before.kernels) {
    if (now.kernels.contains(kernel)) continue;
    fmt::print("GONE {}: in sass_guard.tsv, but not in bench's suites\n", kernel);
    ++wrong;
  }
  return wrong;
}

int run(bool writes) {
  const std::vector<Kernel> kernels = distinct_kernels(guarded_wishes());
  const SassBaseline now = measure(kernels);
  if (writes) {
    write_text_file(kBaselinePath, now.text());
    return 0;
  }
  const SassBaseline before = SassBaseline::read(kBaselinePath);
  if (before.compiler != now.compiler) {
    fmt::print("[SKIP] the baseline is of ptxas {}, this is {}\n", before.compiler, now.compiler);
    return 0;
  }
  const int wrong = report_growth(before, now);
  fmt::print("{} kernels, {} grew\n", now.kernels.size(), wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const bool writes = arguments == std::vector<std::string>{"--write"};
    if (!arguments.empty() && !writes) {
      fmt::print(stderr, "usage: sass_guard [--write]\n");
      return 2;
    }
    if (test::nvrtc_is_missing()) return test::kSkipped;
    return run(writes);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
