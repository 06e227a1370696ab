#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../../base/diagnostics.hpp"

namespace tilewright {

namespace cache {
class Bundles;
class Store;
}  // namespace cache
namespace jinja {
class Loader;
}

enum class EventLevel : std::uint8_t { info, debug };

/// Receives what the library does, one line an event: `kernel spec="causal" kernel=forward_masked
/// target=cpu source=built key=... compile_ms=702.1 ...`. docs/cache.md lists the events. Called as
/// DiagnosticsSink is; what it throws is dropped.
using EventSink = std::function<void(EventLevel level, std::string_view line)>;

/// What a build of kernels works with. Everything may be left empty: the defaults are made on first
/// use and shared by the process.
struct Toolchain {
  std::shared_ptr<cache::Store> store = {};  ///< none: the store in the default directory
  std::shared_ptr<const jinja::Loader> templates = {};  ///< none: default_template_loader()
  DiagnosticsSink diagnostics = {};  ///< receives warnings of the default store and bundles
  EventSink events = {};             ///< receives what TILEWRIGHT_LOG writes
  /// Asked before the store; none: those that TILEWRIGHT_BUNDLES names.
  std::shared_ptr<const cache::Bundles> bundles = {};
  /// Whether kernels may be compiled; none: unless TILEWRIGHT_JIT is "off".
  std::optional<bool> jit = {};
  /// Whether kernels for GPUs that are compiled tell profilers the lines of their source; none:
  /// where TILEWRIGHT_LINEINFO is "1". Without jit it is ignored, with an event. Such kernels have
  /// separate entries in the cache.
  std::optional<bool> line_info = {};
  /// Options of the compiler that kernels for the CPU get after their own, for tests of the
  /// kernels themselves: `-fsanitize=...`. Never what a user wrote: nothing checks them.
  std::vector<std::string> instrumentation = {};
};

/// What a GPU kernel takes of a multiprocessor, as its compiler says. Of several kernels in one
/// source, the largest values.
struct GpuResources {
  std::int64_t registers = 0;     ///< of a thread
  std::int64_t spill_bytes = 0;   ///< registers that did not fit: stored plus loaded, of a thread
  std::int64_t shared_bytes = 0;  ///< of a block of threads, static plus dynamic
  /// ptxas's own lines on what costs speed silently: C7508, C7510 to C7515. Of all kernels.
  std::vector<std::string> performance_warnings = {};
};

/// How one kernel came to be, for `--json`, bench and the example.
struct KernelBuild {
  std::string kernel;                    ///< "forward_masked"
  std::string source;                    ///< "memory", "disk", "bundle", "remote" or "built"
  double render_ms = 0;                  ///< template to text
  double compile_ms = 0;                 ///< 0 where nothing was compiled
  double load_ms = 0;                    ///< look-up, verification and dlopen
  std::size_t bytes = 0;                 ///< of the binary; 0 where it does not compile
  std::optional<GpuResources> gpu = {};  ///< of a kernel for a GPU
  /// What profilers show: the names of a GPU kernel's functions, "tw_forward_masked_1a2b3c4d", or
  /// of a CPU kernel's shared object.
  std::vector<std::string> names = {};
};

}  // namespace tilewright
