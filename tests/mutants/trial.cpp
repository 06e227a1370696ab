#include "tests/mutants/trial.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/enum_names.hpp"
#include "base/error.hpp"
#include "generator/kernel_source.hpp"
#include "generator/templates.hpp"
#include "runtime/kernel_compiler.hpp"
#include "runtime/kernel_library.hpp"
#include "runtime/staged_call.hpp"
#include "tests/mutants/special_calls.hpp"
#include "tests/support/environment.hpp"
#include "verify/check.hpp"
#include "verify/outputs.hpp"

namespace tilewright::mutants {
namespace {

constexpr std::array<std::pair<Fate, std::string_view>, 4> kFates = {
    {{Fate::killed, "killed"},
     {Fate::does_not_compile, "does not compile"},
     {Fate::survived, "survived"},
     {Fate::not_reached, "not reached"}}};

// The kernels of a spec whose text is another with the mutated templates.
std::vector<KernelSource> changed_kernels(const Spec& spec, const Target& target,
                                          const jinja::Loader& mutated) {
  static const std::unique_ptr<jinja::Loader> original = default_template_loader();
  std::vector<KernelSource> changed;
  for (const KernelId& id : kernel_set(spec, target)) {
    KernelSource source = render_kernel(spec, target, id, mutated);
    if (source.text != render_kernel(spec, target, id, *original).text) {
      changed.push_back(std::move(source));
    }
  }
  return changed;
}

KernelContext mutated_kernels(const Mutation& mutation) {
  KernelContext context;
  context.store = std::make_shared<cache::Store>(cache::Store::Options{});
  context.templates = mutated_templates(mutation);
  return context;
}

verify::CheckOptions options_for(const Mutation& mutation, const Device& device) {
  verify::CheckOptions options;
  options.attention.device = device;
  options.attention.kernels = mutated_kernels(mutation);
  options.readings = KernelContext{};
  options.check_undefined = false;
  return options;
}

// Divides by kv_len - kv_idx, which offsets make 0, or else does what C++ leaves undefined there.
bool applies(const Spec& spec, const battery::Case& call) {
  return !call.has_offsets || spec.name != "division_up_to_the_end";
}

// What is wrong with a call; empty if nothing is.
std::string wrong_in(const Subject& subject, const battery::Case& call, std::uint64_t seed,
                     const verify::Checker& checker, const Attention& original, int repeats) {
  const battery::CaseInputs inputs(subject.spec, call, original, seed);
  const auto name = [&] { return fmt::format("{} {}", subject.spec.name, call.name); };
  if (original.device().kind() == Device::Kind::cpu) repeats = 1;
  for (int i = 0; i < repeats; ++i) {
    const verify::Report report = checker.check(inputs.problem(), call.placement);
    if (!report.ok) return fmt::format("{}: {}", name(), report.reasons().front());
    if (!report.mask || i > 0) continue;
    const StagedCall staged(original.device(), inputs.problem().snippet);
    const BlockMask mask = original.block_mask(call.shape, original.bind(staged.inputs()));
    if (report.mask->tiles_evaluated() > mask.tiles_evaluated()) {
      return fmt::format("{}: {} tiles are evaluated instead of {}", name(),
                         report.mask->tiles_evaluated(), mask.tiles_evaluated());
    }
  }
  return "";
}

GpuResources resources_of(const Subject& subject, const KernelSource& kernel,
                          const KernelContext& kernels) {
  return build_kernel(subject.spec, kernel.target, kernel.id, kernels)
      .build.gpu.value_or(GpuResources{});
}

// None where the kernel does not compile: a snippet may have to do without mask_proved.
std::optional<GpuResources> resources_of_original(const Subject& subject,
                                                  const KernelSource& kernel) {
  try {
    return resources_of(subject, kernel, KernelContext{});
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What the table of kernels (tests/compile_matrix) refuses, where the original does without.
std::string wrong_in_compile(const Subject& subject, const KernelSource& changed,
                             const KernelContext& kernels) {
  if (changed.target.is_cpu()) return "";  // the table has none
  const std::optional<GpuResources> before = resources_of_original(subject, changed);
  if (!before) return "";
  const GpuResources after = resources_of(subject, changed, kernels);
  if (before->performance_warnings.empty() && !after.performance_warnings.empty()) {
    return fmt::format("{}: {}", subject.spec.name, after.performance_warnings.front());
  }
  if (before->spill_bytes == 0 && after.spill_bytes > 0) {
    return fmt::format("{}: spills {} bytes a thread", subject.spec.name, after.spill_bytes);
  }
  return "";
}

// While it lives: a kernel that never ends is ended with its process, by SIGALRM. The emulated GPU
// finds a wait without end by itself, and takes long.
class TimeLimit {
 public:
  explicit TimeLimit(unsigned seconds) {
    alarm(environment("TILEWRIGHT_EMULATED_SM").empty() ? seconds : 0);
  }
  ~TimeLimit() { alarm(0); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
};
constexpr unsigned kSecondsOfBuild = 300;
constexpr unsigned kSecondsOfCall = 90;

void make_first_call(const TrialOptions& options, const Subject& subject, const battery::Case& call,
                     int calls, const verify::Checker& checker, const Attention& original) {
  if (!options.first_call) return;
  const battery::CaseInputs inputs(subject.spec, call, original, static_cast<std::uint64_t>(calls));
  const std::string what = fmt::format("{} {}: never ends", subject.spec.name, call.name);
  options.first_call({Fate::killed, calls, what},
                     [&] { verify::run_call(checker.attention(), inputs.problem()); });
}

// Nothing where all of the subject's calls are right.
std::optional<Trial> try_subject(const Mutation& mutation, const Subject& subject,
                                 const std::vector<KernelSource>& changed,
                                 const TrialOptions& trial_options, int& calls) {
  const verify::CheckOptions options = options_for(mutation, trial_options.device);
  const Attention original(subject.spec, {.device = trial_options.device});
  std::optional<verify::Checker> checker;
  try {
    const TimeLimit limit(kSecondsOfBuild);
    checker.emplace(subject.spec, options);
    for (const KernelSource& source : changed) {
      const std::string wrong = wrong_in_compile(subject, source, options.attention.kernels);
      if (!wrong.empty()) return Trial{Fate::killed, calls, wrong};
    }
  } catch (const Error& error) {
    return Trial{Fate::does_not_compile, calls, error.what()};
  }
  for (const battery::Case& call : subject.calls) {
    if (!applies(subject.spec, call)) continue;
    const auto seed = static_cast<std::uint64_t>(++calls);
    try {
      make_first_call(trial_options, subject, call, calls, *checker, original);
      const TimeLimit limit(kSecondsOfCall);
      const std::string wrong =
          wrong_in(subject, call, seed, *checker, original, trial_options.repeats);
      if (!wrong.empty()) return Trial{Fate::killed, calls, wrong};
    } catch (const std::exception& error) {
      // Whatever is thrown: a count that a kernel got wrong is too large for memory, say.
      return Trial{Fate::killed, calls, error.what()};
    }
  }
  return std::nullopt;
}

std::optional<Trial> try_special_calls(const Mutation& mutation, const Device& device,
                                       Trial& trial) {
  const auto templates = mutated_templates(mutation);
  for (const SpecialCall& call : special_calls(device.kind())) {
    const Attention original(call.spec, {.device = device});
    if (changed_kernels(call.spec, original.target(), *templates).empty()) continue;
    trial.fate = Fate::survived;
    ++trial.calls;
    const TimeLimit limit(kSecondsOfBuild);
    try {
      const AttentionOptions options = options_for(mutation, device).attention;
      const Attention attention(call.spec, options);
      const std::string wrong = call.run(attention, options.kernels);
      if (!wrong.empty()) return Trial{Fate::killed, trial.calls, wrong};
    } catch (const Error& error) {
      return Trial{Fate::does_not_compile, trial.calls, error.what()};
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Fate fate) {
  return name_in(kFates, fate);
}

Fate fate_from_string(std::string_view name) {
  if (const auto fate = value_in(kFates, name)) return *fate;
  throw Error(ErrorCode::internal, fmt::format("\"{}\" is no fate of a mutant", name));
}

Trial try_mutant(const Mutation& mutation, const std::vector<Subject>& subjects,
                 const TrialOptions& options) {
  const auto templates = mutated_templates(mutation);
  Trial trial{Fate::not_reached, 0, {}};
  for (const Subject& subject : subjects) {
    const Attention original(subject.spec, {.device = options.device});
    const std::vector<KernelSource> changed =
        changed_kernels(subject.spec, original.target(), *templates);
    if (changed.empty()) continue;
    trial.fate = Fate::survived;
    const auto end = try_subject(mutation, subject, changed, options, trial.calls);
    if (end) return *end;
  }
  const auto end = try_special_calls(mutation, options.device, trial);
  return end ? *end : trial;
}

Trial compile_mutant(const Mutation& mutation, const std::vector<Subject>& subjects,
                     const Target& target) {
  const auto templates = mutated_templates(mutation);
  for (const Subject& subject : subjects) {
    const bool needs_hopper = subject.spec.tactic && subject.spec.tactic->name == "hopper";
    if (needs_hopper && target.name() != "sm_90a") continue;
    const std::vector<KernelSource> kernels = changed_kernels(subject.spec, target, *templates);
    if (kernels.empty()) continue;
    try {
      find_compiler(target)->compile(subject.spec, kernels.back());
    } catch (const Error& error) {
      return {Fate::does_not_compile, 0, error.message()};
    }
    return {Fate::survived, 0, {}};
  }
  return {Fate::not_reached, 0, {}};
}

}  // namespace tilewright::mutants
