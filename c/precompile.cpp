#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "c/log_sink.hpp"
#include "c/sized.hpp"
#include "c/store.hpp"
#include "cache/bundle.hpp"

namespace tilewright::capi {
namespace {

std::vector<Target> targets_of(const Manifest& manifest, const char* const* targets,
                               std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    names.emplace_back(&required((&required(targets, "targets"))[i], "an entry of targets"));
  }
  if (names.empty()) names = manifest.targets;
  if (names.empty()) {
    throw Error(ErrorCode::usage, "no target is named",
                "pass some: \"sm_90a\", \"cpu\", or write \"targets\" in the manifest");
  }
  return bundle_targets(names);
}

// Tells the program of each kernel.
class StepReporter {
 public:
  StepReporter(const tw_precompile_options& options, std::size_t total)
      : options_(options), total_(total) {}

  void operator()(const PrecompileStep& made) {
    tw_precompile_step step = {};
    step.struct_size = sizeof step;
    step.spec = made.spec.c_str();
    step.target = made.target.c_str();
    step.kernel = made.build.kernel.c_str();
    step.source = made.build.source.c_str();
    step.made = ++made_;
    step.total = static_cast<std::int64_t>(total_);
    if (!options_.progress || options_.progress(options_.progress_user, &step) == 0) return;
    throw Error(ErrorCode::usage, "the progress callback ended the precompile");
  }

 private:
  const tw_precompile_options& options_;
  std::size_t total_;
  std::int64_t made_ = 0;
};

void precompile_manifest(const std::string& manifest_path, const char* const* targets,
                         std::size_t target_count, const char* bundle,
                         const tw_precompile_options& options) {
  if (options.jobs < 0) {
    throw Error(ErrorCode::usage, "jobs is " + std::to_string(options.jobs),
                "give the number of kernels to compile at a time, or 0");
  }
  std::optional<cache::SigningKey> key;
  if (options.key_file) key = cache::SigningKey::from_file(options.key_file);
  std::optional<LogSink> log;
  if (options.log) log.emplace(options.log, options.log_user);
  Toolchain kernels;
  if (log) kernels.diagnostics = log->diagnostics();
  kernels.store = store_in(options.cache_dir, kernels.diagnostics);
  const Manifest manifest = manifest_from_file(manifest_path);
  const std::vector<Target> wanted = targets_of(manifest, targets, target_count);
  StepReporter progress(options, precompile_count(manifest.specs, wanted));
  std::vector<cache::BundleItem> items =
      precompile(manifest.specs, wanted,
                 {.kernels = std::move(kernels),
                  .jobs = static_cast<unsigned>(options.jobs),
                  .progress = [&](const PrecompileStep& made) { progress(made); }});
  if (bundle) cache::write_bundle(bundle, std::move(items), key ? &*key : nullptr);
}

}  // namespace
}  // namespace tilewright::capi

extern "C" tw_status tw_precompile(const char* manifest, const char* const* targets,
                                   size_t target_count, const char* bundle,
                                   const tw_precompile_options* options, tw_error** error) {
  using namespace tilewright::capi;
  return guarded(error, [&] {
    required(manifest, "manifest");
    const Sized given(options, "tw_precompile_options");
    precompile_manifest(manifest, targets, target_count, bundle, *given);
  });
}
