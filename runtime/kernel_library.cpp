#include "runtime/kernel_library.hpp"

#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/templates.hpp"

namespace tilewright {
namespace {

// Raised when a binary of the same source could not serve any more: another layout of
// templates/abi, another set of entry points.
constexpr std::string_view kBinaryFormat = "1";

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
  static std::shared_ptr<cache::Store> store;
  const std::lock_guard lock(mutex);
  if (!store) {
    store = std::make_shared<cache::Store>(
        cache::Store::Options{.directory = cache::default_directory(), .diagnostics = diagnostics});
  }
  return store;
}

std::shared_ptr<const jinja::Loader> default_templates() {
  static const std::shared_ptr<const jinja::Loader> templates = default_template_loader();
  return templates;
}

KernelContext with_defaults(KernelContext context) {
  if (!context.store) context.store = default_store(context.diagnostics);
  if (!context.templates) context.templates = default_templates();
  return context;
}

std::string joined(const std::vector<std::string>& options) {
  std::string text;
  for (const std::string& option : options) text += option + '\n';
  return text;
}

cache::Request request_of(const KernelSource& source) {
  return cache::make_request({{"format", std::string(kBinaryFormat)},
                              {"kernel", source.id.name},
                              {"options", joined(source.options)},
                              {"source", source.text},
                              {"target", source.target.name()}});
}

cache::Entry compile(const Spec& spec, const KernelSource& source, const cache::Key& key,
                     const KernelCompiler& compiler) {
  KernelCompiler::Output output = compiler.compile(spec, source);
  cache::Metadata metadata = {
      {"kernel", source.id.name}, {"spec", spec.name}, {"target", source.target.name()}};
  metadata.merge(output.facts);
  return {.key = key, .metadata = std::move(metadata), .payload = std::move(output.binary)};
}

struct Rendered {
  KernelSource source;
  double milliseconds;
};

Rendered render(const Spec& spec, const Target& target, const KernelId& id,
                const KernelContext& context) {
  const Stopwatch watch;
  KernelSource source = render_kernel(spec, target, id, *context.templates);
  return {std::move(source), watch.milliseconds()};
}

KernelBinary build(const Spec& spec, const Target& target, const KernelId& id,
                   const KernelContext& context) {
  Rendered rendered = render(spec, target, id, context);
  const KernelSource& source = rendered.source;
  const Stopwatch watch;
  const std::unique_ptr<const KernelCompiler> compiler = find_compiler(target);
  const cache::Key key = cache::make_key(request_of(source), compiler->identity());
  double compile_ms = 0;
  cache::Store::Result result = context.store->load_or_build(key, [&] {
    const Stopwatch compile_watch;
    cache::Entry entry = compile(spec, source, key, *compiler);
    compile_ms = compile_watch.milliseconds();
    return entry;
  });
  KernelBuild build{.kernel = source.id.name,
                    .source = std::string(to_string(result.source)),
                    .render_ms = rendered.milliseconds,
                    .compile_ms = compile_ms,
                    .load_ms = watch.milliseconds() - compile_ms,
                    .bytes = result.entry->payload.size(),
                    .gpu = gpu_resources(source, result.entry->metadata)};
  return {std::move(result.entry), std::move(rendered.source), std::move(build)};
}

// Objects that are loaded now, by key, so that two equal kernels share one.
std::shared_ptr<const SharedObject> shared_object(const cache::Entry& entry,
                                                  const std::string& name) {
  static std::mutex mutex;
  static std::unordered_map<cache::Key, std::weak_ptr<const SharedObject>> loaded;
  const std::lock_guard lock(mutex);
  std::weak_ptr<const SharedObject>& slot = loaded[entry.key];
  std::shared_ptr<const SharedObject> object = slot.lock();
  if (!object) {
    object = std::make_shared<const SharedObject>(SharedObject::load(entry.payload, name));
    slot = object;
  }
  return object;
}

std::shared_ptr<const LoadedKernel> load(const Spec& spec, const Target& target, const KernelId& id,
                                         const KernelContext& context) {
  if (!target.is_cpu()) {
    throw Error(ErrorCode::internal, "a kernel for a GPU cannot be loaded into the process");
  }
  KernelBinary binary = build(spec, target, id, context);
  const Stopwatch watch;
  std::shared_ptr<const SharedObject> object = shared_object(*binary.entry, id.name);
  binary.build.load_ms += watch.milliseconds();
  return std::make_shared<const LoadedKernel>(
      LoadedKernel{std::move(object), std::move(binary.source), std::move(binary.build)});
}

// body(0), ..., body(count - 1), each on a thread of its own: compiles wait for child processes or
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

}  // namespace

KernelBinary build_kernel(const Spec& spec, const Target& target, const KernelId& id,
                          const KernelContext& context) {
  return build(spec, target, id, with_defaults(context));
}

std::vector<KernelBinary> build_kernels(const Spec& spec, const Target& target,
                                        std::span<const KernelId> ids, const KernelContext& given) {
  const KernelContext context = with_defaults(given);
  std::vector<std::optional<KernelBinary>> built(ids.size());
  side_by_side(ids.size(), [&](size_t i) { built[i] = build(spec, target, ids[i], context); });
  std::vector<KernelBinary> kernels;
  for (std::optional<KernelBinary>& kernel : built) kernels.push_back(*std::move(kernel));
  return kernels;
}

std::shared_ptr<const LoadedKernel> load_kernel(const Spec& spec, const Target& target,
                                                const KernelId& id, const KernelContext& context) {
  return load(spec, target, id, with_defaults(context));
}

std::vector<std::shared_ptr<const LoadedKernel>> load_kernels(const Spec& spec,
                                                              const Target& target,
                                                              std::span<const KernelId> ids,
                                                              const KernelContext& given) {
  const KernelContext context = with_defaults(given);
  std::vector<std::shared_ptr<const LoadedKernel>> kernels(ids.size());
  side_by_side(ids.size(), [&](size_t i) { kernels[i] = load(spec, target, ids[i], context); });
  return kernels;
}

}  // namespace tilewright
