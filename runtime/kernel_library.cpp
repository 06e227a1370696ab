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
#include "generator/compiler_messages.hpp"
#include "generator/templates.hpp"
#include "runtime/host_compiler.hpp"

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
                     const HostCompiler& compiler) {
  HostCompiler::Result result = compiler.compile(source.text, source.options);
  if (!result.succeeded) {
    throw compile_error(spec, source, parse_host_messages(result.log), result.log);
  }
  return {.key = key,
          .metadata = {{"compiler", compiler.version()},
                       {"kernel", source.id.name},
                       {"spec", spec.name},
                       {"target", source.target.name()}},
          .payload = std::move(result.binary)};
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

KernelBinary build(const Spec& spec, const Rendered& rendered, const KernelContext& context) {
  const KernelSource& source = rendered.source;
  const Stopwatch watch;
  const HostCompiler compiler = HostCompiler::find();
  const cache::Key key = cache::make_key(request_of(source), compiler.identity());
  double compile_ms = 0;
  cache::Store::Result result = context.store->load_or_build(key, [&] {
    const Stopwatch compile_watch;
    cache::Entry entry = compile(spec, source, key, compiler);
    compile_ms = compile_watch.milliseconds();
    return entry;
  });
  KernelBuild build{.kernel = source.id.name,
                    .source = std::string(to_string(result.source)),
                    .render_ms = rendered.milliseconds,
                    .compile_ms = compile_ms,
                    .load_ms = watch.milliseconds() - compile_ms,
                    .bytes = result.entry->payload.size()};
  return {std::move(result.entry), std::move(build)};
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
  Rendered rendered = render(spec, target, id, context);
  KernelBinary binary = build(spec, rendered, context);
  const Stopwatch watch;
  std::shared_ptr<const SharedObject> object = shared_object(*binary.entry, id.name);
  binary.build.load_ms += watch.milliseconds();
  return std::make_shared<const LoadedKernel>(
      LoadedKernel{std::move(object), std::move(rendered.source), std::move(binary.build)});
}

}  // namespace

KernelBinary build_kernel(const Spec& spec, const Target& target, const KernelId& id,
                          const KernelContext& given) {
  const KernelContext context = with_defaults(given);
  return build(spec, render(spec, target, id, context), context);
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
  std::vector<std::exception_ptr> errors(ids.size());
  const auto load_one = [&](size_t i) {
    try {
      kernels[i] = load(spec, target, ids[i], context);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  {
    // Compiles wait for child processes, so each may have a thread of its own.
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < ids.size(); ++i) {
      try {
        threads.emplace_back(load_one, i);
      } catch (const std::system_error&) {
        load_one(i);  // no thread to be had: one after the other
      }
    }
    if (!ids.empty()) load_one(0);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return kernels;
}

}  // namespace tilewright
