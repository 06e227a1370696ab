#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "../generator/spec/target.hpp"
#include "../runtime/api/device.hpp"
#include "../runtime/api/thread_pool.hpp"
#include "../runtime/library/kernel_library.hpp"
#include "case.hpp"
#include "outcome.hpp"
#include "relations.hpp"

namespace tilewright::verify::fuzz {

/// How cases are run.
struct RunOptions {
  Toolchain kernels = {};         ///< store, templates
  ThreadPool* threads = nullptr;  ///< none: ThreadPool::shared()
  /// Random snippets run in their checked interpretation too for one spec in so many; 0: never. A
  /// user's own text always does.
  std::int64_t check_undefined_every = 16;
  std::int64_t max_checked_elements = std::int64_t{1} << 18;
  /// Makes what runs the calls of relations: a test puts a faulty one in its place. None: the
  /// library's kernels.
  std::function<std::unique_ptr<RelationRunner>(const Device&, const Toolchain&)> relations = {};
  /// The target of the GPU whose kernels of the tactic "hopper" get bounded_waits
  /// (random_tactic.hpp); empty: none do.
  std::optional<Target> bounded_waits = {};
  bool beside_cpu = true;  ///< what runs on a GPU runs on the CPU too, and both are compared
};

/// Runs cases in this process. Kernels of the last spec are kept, so cases that share one should
/// follow each other. One thread at a time.
class CaseRunner {
 public:
  explicit CaseRunner(RunOptions options);
  CaseRunner(CaseRunner&&) noexcept;
  ~CaseRunner();

  /// Compiles what the case needs and, where it is run: runs the checked interpretation of its
  /// snippets, then forward twice, into poisoned memory with red zones, and judges it all; then the
  /// case's relation. What the library throws becomes an outcome.
  Outcome run(const FuzzCase& fuzz_case);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace tilewright::verify::fuzz
