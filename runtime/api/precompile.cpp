#include "runtime/api/precompile.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cache/bundle_format.hpp"
#include "cache/bundles.hpp"
#include "generator/render/templates.hpp"
#include "runtime/library/kernel_facts.hpp"
#include "runtime/library/kernel_library.hpp"

namespace tilewright {
namespace {

// One kernel to be made.
struct Job {
  const ManifestSpec* spec;
  const Target* target;
  KernelVariant id;
};

std::vector<Job> jobs_of(std::span<const ManifestSpec> specs, std::span<const Target> targets) {
  std::vector<Job> jobs;
  for (const ManifestSpec& spec : specs) {
    for (const Target& target : targets) {
      for (const KernelVariant& id : kernel_set(spec.spec, target)) {
        jobs.push_back({&spec, &target, id});
      }
    }
  }
  return jobs;
}

cache::BundleItem item_of(const Spec& spec, const KernelBinary& binary, bool has_memo) {
  // The entry may have been compiled for another spec with an equal kernel; then only what its
  // compiler said of it is true here too.
  cache::Metadata metadata = kernel_metadata(spec, binary.source);
  for (const auto& [name, value] : binary.entry->metadata) metadata.emplace(name, value);
  cache::BundleItem item{.request = kernel_request(binary.source),
                         .memos = {},
                         .metadata = bundle_metadata(std::move(metadata)),
                         .entry = binary.entry};
  if (has_memo)
    item.memos.push_back(kernel_memo(spec, binary.source.target, binary.source.variant));
  return item;
}

Error with_context(const Error& error, const Job& job) {
  std::vector<std::string> notes = error.notes();
  notes.push_back(fmt::format("of the kernel {} for {} of the spec \"{}\", at {} of the manifest",
                              job.id.name(), job.target->name(), job.spec->spec.name,
                              job.spec->pointer));
  return Error({.code = error.code(),
                .message = error.message(),
                .place = error.place(),
                .notes = std::move(notes),
                .hint = error.hint()});
}

unsigned thread_count(unsigned wanted, std::size_t jobs) {
  const unsigned threads = wanted > 0 ? wanted : std::max(1u, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::min<std::size_t>(threads, jobs));
}

// Runs body(0), ..., body(count - 1), `threads` at a time, in this order. After an error nothing
// new is begun, and the error of the first one in the order is thrown.
template <typename Body>
void in_parallel(std::size_t count, unsigned threads, const Body& body) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::vector<std::exception_ptr> errors(count);
  const auto work = [&] {
    for (std::size_t i = next++; i < count && !failed; i = next++) {
      try {
        body(i);
      } catch (...) {
        errors[i] = std::current_exception();
        failed = true;
      }
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
    } catch (const std::system_error&) {
      // No more threads to be had: those that there are do it.
    }
    work();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

// Tells the caller of one step at a time. No lock is held meanwhile: a thread that comes while
// another one is telling leaves its step to that one.
class Progress {
 public:
  explicit Progress(const std::function<void(const PrecompileStep&)>& tell) : tell_(tell) {}

  void add(PrecompileStep step) {
    if (!tell_) return;
    std::unique_lock lock(mutex_);
    steps_.push_back(std::move(step));
    if (is_telling_) return;
    is_telling_ = true;
    while (!steps_.empty()) {
      const PrecompileStep next = std::move(steps_.front());
      steps_.pop_front();
      lock.unlock();
      try {
        tell_(next);
      } catch (...) {
        lock.lock();
        is_telling_ = false;
        throw;
      }
      lock.lock();
    }
    is_telling_ = false;
  }

 private:
  const std::function<void(const PrecompileStep&)>& tell_;
  std::mutex mutex_;
  std::deque<PrecompileStep> steps_;
  bool is_telling_ = false;
};

}  // namespace

std::vector<Target> bundle_targets(std::span<const std::string> names) {
  std::vector<Target> targets;
  for (const std::string& name : names) {
    if (name == Target::host_cpu().name()) {
      targets.push_back(Target::parse("cpu-x86-64-v3"));
      targets.push_back(Target::parse("cpu-x86-64-v4"));
    } else {
      targets.push_back(Target::parse(name));
    }
  }
  std::sort(targets.begin(), targets.end(),
            [](const Target& a, const Target& b) { return a.name() < b.name(); });
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  return targets;
}

std::size_t precompile_count(std::span<const ManifestSpec> specs, std::span<const Target> targets) {
  return jobs_of(specs, targets).size();
}

std::vector<cache::BundleItem> precompile(std::span<const ManifestSpec> specs,
                                          std::span<const Target> targets,
                                          const PrecompileOptions& options) {
  // Bundles that are there already must not decide what goes into a new one.
  Toolchain toolchain = options.kernels;
  toolchain.bundles = std::make_shared<const cache::Bundles>();
  toolchain = with_defaults(std::move(toolchain));
  if (!*toolchain.jit) {
    throw Error(ErrorCode::usage, "precompile compiles, and TILEWRIGHT_JIT=off forbids that",
                "unset TILEWRIGHT_JIT here; it is meant for where the bundle is used");
  }
  const std::vector<Job> jobs = jobs_of(specs, targets);
  const bool has_memo = is_embedded(*toolchain.templates);
  std::vector<cache::BundleItem> items(jobs.size());
  Progress progress(options.progress);
  in_parallel(jobs.size(), thread_count(options.jobs, jobs.size()), [&](std::size_t i) {
    const Job& job = jobs[i];
    try {
      const KernelBinary binary = build_kernel(job.spec->spec, *job.target, job.id, toolchain);
      items[i] = item_of(job.spec->spec, binary, has_memo);
      progress.add({job.spec->spec.name, job.target->name(), binary.build});
    } catch (const Error& error) {
      throw with_context(error, job);
    }
  });
  return items;
}

}  // namespace tilewright
