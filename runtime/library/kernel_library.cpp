#include "runtime/library/kernel_library.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/activity.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/log_file.hpp"
#include "base/report.hpp"
#include "base/switch_variable.hpp"
#include "cache/bundles.hpp"
#include "cache/remote_cache.hpp"
#include "generator/render/templates.hpp"
#include "runtime/compile/compile_limits.hpp"
#include "runtime/compile/parameter_room.hpp"
#include "runtime/library/events.hpp"
#include "runtime/library/kernel_facts.hpp"
#include "runtime/library/kernel_names.hpp"
#include "runtime/library/kernel_search.hpp"

namespace tilewright {
namespace {

class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

std::shared_ptr<cache::Store> default_store(const DiagnosticsSink& diagnostics) {
  static std::mutex mutex;
  static auto& store = *new std::shared_ptr<cache::Store>;
  const std::lock_guard lock(mutex);
  if (!store) {
    store = std::make_shared<cache::Store>(
        cache::Store::Options{.directory = cache::default_directory(),
                              .diagnostics = diagnostics,
                              .max_bytes = cache::default_max_bytes(),
                              .remote = cache::RemoteCache::from_environment()});
  }
  return store;
}

std::shared_ptr<const jinja::Loader> default_templates() {
  static const auto& templates =
      *new std::shared_ptr<const jinja::Loader>(default_template_loader());
  return templates;
}

void report_unwritable_log(const DiagnosticsSink& diagnostics) {
  const std::string& problem = LogFile::of_process().problem();
  static std::atomic<bool> is_reported = false;
  if (problem.empty() || !diagnostics || is_reported.exchange(true)) return;
  report(diagnostics, Severity::warning, problem);
}

// What the compiler makes of a source; of one with a fallback also that it makes nothing of it.
// What is wrong with any other, or too much for a compiler, stays so while this process lives.
KernelCompiler::Output compile_or_remember(const Spec& spec, const KernelSource& source,
                                           const KernelCompiler& compiler) {
  try {
    return compiler.compile(spec, source);
  } catch (const LimitReached& error) {
    throw cache::LastingFailure(error);
  } catch (const Error& error) {
    const bool lasts =
        error.code() == ErrorCode::snippet || error.code() == ErrorCode::kernel_template;
    if (lasts && source.fallback) {
      return {.binary = {},
              .facts = {{"outcome", "does not compile, " + source.fallback->name() + " serves"}}};
    }
    if (lasts) throw cache::LastingFailure(error);
    throw;
  }
}

cache::Entry compile(const Spec& spec, const KernelSource& source, const cache::Key& key,
                     const KernelCompiler& compiler) {
  KernelCompiler::Output output = compile_or_remember(spec, with_names(source), compiler);
  cache::Metadata metadata = kernel_metadata(spec, source);
  metadata.merge(output.facts);
  return {.key = key, .metadata = std::move(metadata), .payload = std::move(output.binary)};
}

struct Rendered {
  KernelSource source;
  double milliseconds;
};

Rendered render(const SpecFacts& facts, const Target& target, const KernelVariant& id,
                const Toolchain& toolchain) {
  const Stopwatch watch;
  KernelSource source = render_kernel(facts, target, id, *toolchain.templates);
  if (target.is_cpu()) {
    source.options.insert(source.options.end(), toolchain.instrumentation.begin(),
                          toolchain.instrumentation.end());
  } else if (*toolchain.line_info) {
    source.options.emplace_back("-lineinfo");
  }
  return {std::move(source), watch.milliseconds()};
}

// Bundles hold no kernels for "cpu", which is another instruction set on each machine.
bool may_be_bundled(const Target& target, const Toolchain& toolchain) {
  return !toolchain.bundles->empty() && toolchain.instrumentation.empty() &&
         target != Target::host_cpu() && toolchain.bundles->has_ingredient("target", target.name());
}

// A memo is that of a kernel as it is rendered, without what a profiler wants.
bool has_memo(const Target& target, const Toolchain& toolchain) {
  return is_embedded(*toolchain.templates) && (target.is_cpu() || !*toolchain.line_info);
}

// A binary that was found, not compiled.
KernelBinary kept(std::shared_ptr<const cache::Entry> entry, std::string where, Rendered rendered,
                  double load_ms) {
  KernelBuild build{.kernel = rendered.source.variant.name(),
                    .source = std::move(where),
                    .render_ms = rendered.milliseconds,
                    .compile_ms = 0,
                    .load_ms = load_ms,
                    .bytes = entry->payload.size(),
                    .gpu = gpu_resources(entry->metadata),
                    .names = recorded_names(entry->metadata)};
  return {std::move(entry), std::move(rendered.source), std::move(build)};
}

KernelBinary from_bundle(cache::Bundles::Loaded loaded, Rendered rendered, double load_ms) {
  const char* const where = loaded.from_memory ? "memory" : "bundle";
  return kept(std::move(loaded.entry), where, std::move(rendered), load_ms);
}

// None, with the reason, where there is none.
std::unique_ptr<const KernelCompiler> compiler_or_reason(const Target& target,
                                                         std::optional<Error>& reason) {
  try {
    return find_compiler(target);
  } catch (const Error& error) {
    reason = error;
    return nullptr;
  }
}

// A kernel whose spec a bundle knows need not be rendered.
std::optional<KernelBinary> find_without_rendering(const SpecFacts& facts, const Target& target,
                                                   const KernelVariant& id,
                                                   const Toolchain& toolchain) {
  if (!may_be_bundled(target, toolchain) || !has_memo(target, toolchain)) return std::nullopt;
  const Stopwatch watch;
  cache::Bundles::Loaded loaded = toolchain.bundles->load_memo(kernel_memo(facts, target, id));
  if (!loaded.entry) return std::nullopt;
  Rendered described{kernel_metadata(facts, target, id), 0};
  return from_bundle(std::move(loaded), std::move(described), watch.milliseconds());
}

KernelBinary find_or_compile(const SpecFacts& facts, const Target& target, const KernelVariant& id,
                             const Toolchain& toolchain) {
  const Activity activity("makes the kernel", id.name() + " for " + target.name());
  if (auto bundled = find_without_rendering(facts, target, id, toolchain))
    return *std::move(bundled);
  Rendered rendered = render(facts, target, id, toolchain);
  const KernelSource& source = rendered.source;
  const Stopwatch watch;
  const cache::Request request = kernel_request(source);
  if (may_be_bundled(target, toolchain)) {
    cache::Bundles::Loaded loaded = toolchain.bundles->load(request.digest);
    if (loaded.entry) {
      return from_bundle(std::move(loaded), std::move(rendered), watch.milliseconds());
    }
  }
  std::optional<Error> no_compiler;
  const std::unique_ptr<const KernelCompiler> compiler =
      *toolchain.jit ? compiler_or_reason(target, no_compiler) : nullptr;
  if (!compiler) {
    if (auto entry = find_by_request(*toolchain.store, request)) {
      return kept(std::move(entry), "disk", std::move(rendered), watch.milliseconds());
    }
    if (no_compiler) throw *no_compiler;
    throw missing_kernel(facts, source, *toolchain.bundles, *toolchain.store);
  }
  const cache::Key key = cache::make_key(request, compiler->identity());
  double compile_ms = 0;
  cache::Store::Result result = toolchain.store->load_or_build(key, [&] {
    log_miss(facts, target, id.name(), key.digest);
    const Stopwatch compile_watch;
    cache::Entry entry = compile(facts, source, key, *compiler);
    compile_ms = compile_watch.milliseconds();
    return entry;
  });
  KernelBuild build{.kernel = source.variant.name(),
                    .source = std::string(to_string(result.source)),
                    .render_ms = rendered.milliseconds,
                    .compile_ms = compile_ms,
                    .load_ms = watch.milliseconds() - compile_ms,
                    .bytes = result.entry->payload.size(),
                    .gpu = gpu_resources(result.entry->metadata),
                    .names = recorded_names(result.entry->metadata)};
  return {std::move(result.entry), std::move(rendered.source), std::move(build)};
}

KernelBinary build(const SpecFacts& facts, const Target& target, const KernelVariant& id,
                   const Toolchain& toolchain) {
  if (!target.is_cpu()) require_parameter_room(facts.spec);
  KernelBinary binary = find_or_compile(facts, target, id, toolchain);
  tell_kernel(facts, target, binary.build, binary.entry->key.digest, toolchain);
  return binary;
}

bool is_bundled(const SpecFacts& facts, const Target& target, const KernelVariant& id,
                const Toolchain& toolchain) {
  if (has_memo(target, toolchain) && toolchain.bundles->find_memo(kernel_memo(facts, target, id))) {
    return true;
  }
  const KernelSource source = render(facts, target, id, toolchain).source;
  return static_cast<bool>(toolchain.bundles->find(kernel_request(source).digest));
}

// Whether a kernel or what serves in its place is held.
template <typename Holds>
bool has_or_fallback(const SpecFacts& facts, const Target& target, const KernelVariant& id,
                     const Holds& holds) {
  if (holds(id)) return true;
  const std::optional<KernelVariant> fallback = kernel_metadata(facts, target, id).fallback;
  return fallback && holds(*fallback);
}

KernelBinary build_or_fallback(const SpecFacts& facts, const Target& target,
                               const KernelVariant& id, const Toolchain& toolchain) {
  const std::optional<KernelVariant> fallback = kernel_metadata(facts, target, id).fallback;
  if (!fallback) return build(facts, target, id, toolchain);
  try {
    KernelBinary binary = build(facts, target, id, toolchain);
    if (binary.compiles()) return binary;
  } catch (const Error& error) {
    // The compiler gave up, is not there or must not be used: nothing that is kept, and the
    // fallback says no less.
    if (error.code() != ErrorCode::compiler && error.code() != ErrorCode::missing_kernel) throw;
  }
  return build(facts, target, *fallback, toolchain);
}

// Objects that are loaded now, by key, so that two equal kernels share one.
std::shared_ptr<const SharedObject> shared_object(const cache::Entry& entry,
                                                  const std::string& name) {
  static std::mutex mutex;
  static auto& loaded = *new std::unordered_map<cache::Key, std::weak_ptr<const SharedObject>>;
  const std::lock_guard lock(mutex);
  std::weak_ptr<const SharedObject>& slot = loaded[entry.key];
  std::shared_ptr<const SharedObject> object = slot.lock();
  if (!object) {
    object = std::make_shared<const SharedObject>(SharedObject::load(entry.payload, name));
    slot = object;
  }
  return object;
}

std::shared_ptr<const LoadedKernel> load(const SpecFacts& facts, const Target& target,
                                         const KernelVariant& id, const Toolchain& toolchain) {
  if (!target.is_cpu()) {
    throw Error(ErrorCode::internal, "a kernel for a GPU cannot be loaded into the process");
  }
  KernelBinary binary = build_or_fallback(facts, target, id, toolchain);
  const Stopwatch watch;
  std::shared_ptr<const SharedObject> object =
      shared_object(*binary.entry, binary.build.names.empty() ? id.name() : binary.build.names[0]);
  binary.build.load_ms += watch.milliseconds();
  return std::make_shared<const LoadedKernel>(
      LoadedKernel{std::move(object), std::move(binary.source), std::move(binary.build)});
}

// body(0), ..., body(count - 1), each on a separate thread: compiles wait for child processes or
// for NVRTC. The first error is thrown when all have ended.
template <typename Body>
void side_by_side(size_t count, const Body& body) {
  std::vector<std::exception_ptr> errors(count);
  const auto guarded = [&](size_t i) {
    try {
      body(i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < count; ++i) {
      try {
        threads.emplace_back(guarded, i);
      } catch (const std::system_error&) {
        guarded(i);  // no thread to be had: one after the other
      }
    }
    if (count > 0) guarded(0);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

template <typename Make>
std::vector<KernelBinary> each_of(std::span<const KernelVariant> ids, const Make& make) {
  std::vector<std::optional<KernelBinary>> built(ids.size());
  side_by_side(ids.size(), [&](size_t i) { built[i] = make(ids[i]); });
  std::vector<KernelBinary> kernels;
  for (std::optional<KernelBinary>& kernel : built) kernels.push_back(*std::move(kernel));
  return kernels;
}

}  // namespace

Toolchain with_defaults(Toolchain toolchain) {
  report_unknown_variables(toolchain.diagnostics);
  report_unwritable_log(toolchain.diagnostics);
  if (!toolchain.store) toolchain.store = default_store(toolchain.diagnostics);
  if (!toolchain.templates) toolchain.templates = default_templates();
  if (!toolchain.bundles) toolchain.bundles = default_bundles(toolchain.diagnostics);
  if (!toolchain.jit) toolchain.jit = jit_is_allowed();
  if (!toolchain.line_info) toolchain.line_info = line_info_is_wanted();
  if (*toolchain.line_info && !*toolchain.jit) {
    toolchain.line_info = false;
    tell_ignored_line_info(toolchain);
  }
  return toolchain;
}

std::shared_ptr<const cache::Bundles> default_bundles(const DiagnosticsSink& diagnostics) {
  static std::mutex mutex;
  static auto& bundles = *new std::shared_ptr<const cache::Bundles>;
  {
    const std::lock_guard lock(mutex);
    if (!bundles) bundles = cache::Bundles::from_environment();
  }
  bundles->attach(diagnostics);  // may call the sink, which may come back here
  return bundles;
}

bool jit_is_allowed() {
  constexpr const char* kName = "TILEWRIGHT_JIT";
  constexpr const char* kHint = "set it to \"off\" to forbid compiling, or unset it";
  const char* const value = std::getenv(kName);
  // Other switches that are empty are unset. This one may be an "off" that a script lost.
  if (value && !*value) throw Error(ErrorCode::usage, fmt::format("{} is \"\"", kName), kHint);
  return switch_variable(kName, kHint).value_or(true);
}

bool line_info_is_wanted() {
  return switch_variable("TILEWRIGHT_LINEINFO",
                         "set it to \"1\" for the lines of GPU kernels in profilers, or unset it")
      .value_or(false);
}

KernelSource requested_source(const SpecFacts& facts, const Target& target, const KernelVariant& id,
                              const Toolchain& toolchain) {
  return render(facts, target, id, with_defaults(toolchain)).source;
}

std::optional<Target> stored_target(const SpecFacts& facts, std::span<const Target> targets,
                                    std::span<const KernelVariant> ids, const Toolchain& given) {
  const Toolchain toolchain = with_defaults(given);
  for (const Target& target : targets) {
    const auto holds = [&](const KernelVariant& id) {
      const KernelSource source = render(facts, target, id, toolchain).source;
      return find_by_request(*toolchain.store, kernel_request(source)) != nullptr;
    };
    const bool has_all = std::all_of(ids.begin(), ids.end(), [&](const KernelVariant& id) {
      return has_or_fallback(facts, target, id, holds);
    });
    if (has_all) return target;
  }
  return std::nullopt;
}

std::optional<Target> bundled_target(const SpecFacts& facts, std::span<const Target> targets,
                                     std::span<const KernelVariant> ids, const Toolchain& given) {
  const Toolchain toolchain = with_defaults(given);
  for (const Target& target : targets) {
    const auto holds = [&](const KernelVariant& id) {
      return is_bundled(facts, target, id, toolchain);
    };
    const bool has_all = may_be_bundled(target, toolchain) &&
                         std::all_of(ids.begin(), ids.end(), [&](const KernelVariant& id) {
                           return has_or_fallback(facts, target, id, holds);
                         });
    if (has_all) return target;
  }
  return std::nullopt;
}

KernelBinary build_kernel(const SpecFacts& facts, const Target& target, const KernelVariant& id,
                          const Toolchain& toolchain) {
  return build(facts, target, id, with_defaults(toolchain));
}

std::vector<KernelBinary> build_kernels(const SpecFacts& facts, const Target& target,
                                        std::span<const KernelVariant> ids,
                                        const Toolchain& given) {
  const Toolchain toolchain = with_defaults(given);
  return each_of(ids, [&](const KernelVariant& id) { return build(facts, target, id, toolchain); });
}

std::vector<KernelBinary> build_or_fallback_kernels(const SpecFacts& facts, const Target& target,
                                                    std::span<const KernelVariant> ids,
                                                    const Toolchain& given) {
  const Toolchain toolchain = with_defaults(given);
  return each_of(ids, [&](const KernelVariant& id) {
    return build_or_fallback(facts, target, id, toolchain);
  });
}

std::shared_ptr<const LoadedKernel> load_kernel(const SpecFacts& facts, const Target& target,
                                                const KernelVariant& id,
                                                const Toolchain& toolchain) {
  return load(facts, target, id, with_defaults(toolchain));
}

std::vector<std::shared_ptr<const LoadedKernel>> load_kernels(const SpecFacts& facts,
                                                              const Target& target,
                                                              std::span<const KernelVariant> ids,
                                                              const Toolchain& given) {
  const Toolchain toolchain = with_defaults(given);
  std::vector<std::shared_ptr<const LoadedKernel>> kernels(ids.size());
  side_by_side(ids.size(), [&](size_t i) { kernels[i] = load(facts, target, ids[i], toolchain); });
  return kernels;
}

}  // namespace tilewright
