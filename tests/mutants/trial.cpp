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
#include "generator/render/kernel_source.hpp"
#include "generator/render/templates.hpp"
#include "runtime/call/staged_call.hpp"
#include "runtime/compile/host_compiler.hpp"
#include "runtime/compile/kernel_compiler.hpp"
#include "runtime/library/kernel_library.hpp"
#include "tests/compile_matrix/operands.hpp"
#include "tests/mutants/emulated.hpp"
#include "tests/mutants/special_calls.hpp"
#include "verify/check.hpp"
#include "verify/outputs.hpp"

namespace tilewright::mutants {
namespace {

constexpr std::array<std::pair<Fate, std::string_view>, 5> kFates = {
    {{Fate::killed, "killed"},
     {Fate::does_not_compile, "does not compile"},
     {Fate::survived, "survived"},
     {Fate::same_kernels, "same kernels"},
     {Fate::not_reached, "not reached"}}};

// Those of the kernels of a spec whose text is another with the mutated templates.
std::vector<KernelSource> changed_kernels(const Spec& spec,
                                          const std::vector<KernelVariant>& variants,
                                          const Target& target, const jinja::Loader& mutated) {
  static const std::unique_ptr<jinja::Loader> original = default_template_loader();
  std::vector<KernelSource> changed;
  for (const KernelVariant& id : variants) {
    KernelSource source = render_kernel(spec, target, id, mutated);
    if (source.text != render_kernel(spec, target, id, *original).text) {
      changed.push_back(std::move(source));
    }
  }
  return changed;
}

Toolchain mutated_kernels(const Mutation& mutation) {
  Toolchain toolchain;
  toolchain.store = std::make_shared<cache::Store>(cache::Store::Options{});
  toolchain.templates = mutated_templates(mutation);
  return toolchain;
}

verify::CheckOptions options_for(const Mutation& mutation, const TrialOptions& trial) {
  verify::CheckOptions options;
  options.attention.device = trial.device;
  options.attention.kernels = mutated_kernels(mutation);
  if (trial.sanitized)
    options.attention.kernels.instrumentation = HostCompiler::trap_on_undefined();
  options.interpretations = Toolchain{};
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
  const verify::Checker::Expected wanted = checker.expected(inputs.problem());
  for (int i = 0; i < repeats; ++i) {
    const verify::Report report = checker.check(inputs.problem(), call.placement, wanted);
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

KernelBinary built(const Spec& spec, const KernelSource& kernel, const Toolchain& kernels) {
  return build_kernel(spec, kernel.target, kernel.variant, kernels);
}

// None where the kernel does not compile: a snippet may have to do without mask_proved.
std::optional<KernelBinary> built_original(const Spec& spec, const KernelSource& kernel) {
  try {
    return built(spec, kernel, Toolchain{});
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What the compiler makes of changed text.
struct Compiled {
  bool is_changed = true;  // false: the original's kernel, bit by bit
  std::string wrong;       // what the table of kernels (tests/compile_matrix) refuses
};

Compiled compile_changed(const Spec& spec, const KernelSource& changed, const Toolchain& kernels) {
  // Kernels for CPUs, and the emulated GPU's, have no table. Calls make those that they launch.
  if (changed.target.is_cpu() || is_emulated()) return {};
  const std::optional<KernelBinary> before = built_original(spec, changed);
  if (!before) return {};
  const std::string operand = compile_matrix::repeated_operand(changed.text);
  if (!operand.empty()) return {true, spec.name + ": " + operand};
  const KernelBinary after = built(spec, changed, kernels);
  if (after.compiles() && after.entry->payload == before->entry->payload) return {false, ""};
  const GpuResources wanted = before->build.gpu.value_or(GpuResources{});
  const GpuResources found = after.build.gpu.value_or(GpuResources{});
  if (wanted.performance_warnings.empty() && !found.performance_warnings.empty()) {
    return {true, fmt::format("{}: {}", spec.name, found.performance_warnings.front())};
  }
  if (wanted.spill_bytes == 0 && found.spill_bytes > 0) {
    return {true, fmt::format("{}: spills {} bytes a thread", spec.name, found.spill_bytes)};
  }
  return {};
}

// All changed kernels of a spec: the first that is refused, else whether any is not the original's.
Compiled compile_all(const Spec& spec, const std::vector<KernelSource>& changed,
                     const Toolchain& kernels) {
  bool is_changed = false;
  for (const KernelSource& source : changed) {
    const Compiled compiled = compile_changed(spec, source, kernels);
    if (!compiled.wrong.empty()) return compiled;
    is_changed = is_changed || compiled.is_changed;
  }
  return {is_changed, ""};
}

// While it lives: a kernel that never ends is ended with its process, by SIGALRM. The emulated GPU
// has no limit, as it takes long and finds a wait without end by itself.
class TimeLimit {
 public:
  explicit TimeLimit(unsigned seconds) { alarm(is_emulated() ? 0 : seconds); }
  ~TimeLimit() { alarm(0); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
};
constexpr unsigned kSecondsOfBuild = 300;
constexpr unsigned kSecondsOfCall = 90;

// Nothing where all of the subject's calls are right. Where the compiler makes the original's
// kernels of the changed text, none is made.
std::optional<Trial> try_subject(const Mutation& mutation, const Subject& subject,
                                 const std::vector<KernelSource>& changed,
                                 const TrialOptions& trial_options, Trial& trial) {
  int& calls = trial.calls;
  verify::CheckOptions options = options_for(mutation, trial_options);
  std::string call_name;
  if (trial_options.run_alone) {
    options.run_by = [&](const std::function<void()>& run) {
      trial_options.run_alone({Fate::killed, calls, call_name + ": never ends"}, run);
    };
  }
  const Attention original(subject.spec, {.device = trial_options.device});
  std::optional<verify::Checker> checker;
  try {
    const TimeLimit limit(kSecondsOfBuild);
    const Compiled compiled = compile_all(subject.spec, changed, options.attention.kernels);
    if (!compiled.wrong.empty()) return Trial{Fate::killed, calls, compiled.wrong};
    if (!compiled.is_changed && !trial_options.runs_same_kernels) return std::nullopt;
    trial.fate = Fate::survived;
    checker.emplace(subject.spec, options);
  } catch (const Error& error) {
    return Trial{fate_of(error), calls, error.what()};
  }
  for (const battery::Case& call : subject.calls) {
    if (!applies(subject.spec, call)) continue;
    const auto seed = static_cast<std::uint64_t>(++calls);
    call_name = fmt::format("{} {}", subject.spec.name, call.name);
    try {
      // A mutant that runs alone has a limit for each run.
      const TimeLimit limit(trial_options.run_alone ? 0 : kSecondsOfCall);
      const std::string wrong =
          wrong_in(subject, call, seed, *checker, original, trial_options.repeats);
      if (!wrong.empty()) return Trial{Fate::killed, calls, wrong};
    } catch (const Error& error) {
      // Calls compile the kernels that they launch.
      return Trial{fate_of(error), calls, call_name + ": " + error.what()};
    } catch (const std::exception& error) {
      // Whatever is thrown: a count that a kernel got wrong is too large for memory, say.
      return Trial{Fate::killed, calls, error.what()};
    }
  }
  return std::nullopt;
}

// Of kernels for a device, which one of no snippets tells.
Target target_of(const Device& device) {
  return Attention(Spec{.dtype = DType::f32, .head_dim = 16}, {.device = device}).target();
}

std::optional<Trial> try_special_calls(const Mutation& mutation, const TrialOptions& trial_options,
                                       Trial& trial) {
  const Device& device = trial_options.device;
  const auto templates = mutated_templates(mutation);
  const Target target = target_of(device);
  for (const SpecialCall& call : special_calls(device.kind())) {
    if (call.spec.name.find(trial_options.special_word) == std::string::npos) continue;
    AttentionOptions options = options_for(mutation, trial_options).attention;
    options.takes_block_mask = call.takes_block_mask;
    std::vector<KernelVariant> variants = kernel_set(call.spec, target);
    if (call.serves_caches) {
      options.append = options.merge = true;
      options.quantise = call.spec.kv_dtype.has_value();
      for (const char* name : {"append", "merge", "quantise"}) {
        if (*name != 'q' || options.quantise) variants.push_back(KernelVariant::parse(name));
      }
    }
    const std::vector<KernelSource> changed =
        changed_kernels(call.spec, variants, target, *templates);
    if (changed.empty()) continue;
    if (trial.fate == Fate::not_reached) trial.fate = Fate::same_kernels;
    const TimeLimit limit(kSecondsOfBuild);
    try {
      const Compiled compiled = compile_all(call.spec, changed, options.kernels);
      if (!compiled.wrong.empty()) return Trial{Fate::killed, trial.calls, compiled.wrong};
      if (!compiled.is_changed && !trial_options.runs_same_kernels) continue;
      trial.fate = Fate::survived;
      trial.calls += call.launches;
      const Attention attention(call.spec, options);
      std::string wrong;
      const auto run = [&] { wrong = call.run(attention, options.kernels); };
      if (trial_options.run_alone) {
        const Trial never_ends{Fate::killed, trial.calls, call.spec.name + ": never ends"};
        trial_options.run_alone(never_ends, run);
      } else {
        run();
      }
      if (!wrong.empty()) return Trial{Fate::killed, trial.calls, call.spec.name + ": " + wrong};
    } catch (const Error& error) {
      return Trial{fate_of(error), trial.calls, call.spec.name + ": " + error.what()};
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

Fate fate_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::compiler:
    case ErrorCode::snippet:
    case ErrorCode::kernel_template:
    case ErrorCode::missing_kernel:
      return Fate::does_not_compile;
    default:
      return Fate::killed;
  }
}

Trial try_mutant(const Mutation& mutation, const std::vector<Subject>& subjects,
                 const TrialOptions& options) {
  const auto templates = mutated_templates(mutation);
  Trial trial{Fate::not_reached, 0, {}};
  const Target target = target_of(options.device);
  for (const Subject& subject : subjects) {
    const std::vector<KernelSource> changed =
        changed_kernels(subject.spec, kernel_set(subject.spec, target), target, *templates);
    if (changed.empty()) continue;
    if (trial.fate == Fate::not_reached) trial.fate = Fate::same_kernels;
    const auto end = try_subject(mutation, subject, changed, options, trial);
    if (end) return *end;
  }
  if (!options.makes_special_calls) return trial;
  const auto end = try_special_calls(mutation, options, trial);
  return end ? *end : trial;
}

Trial compile_mutant(const Mutation& mutation, const std::vector<Subject>& subjects,
                     const Target& target) {
  const auto templates = mutated_templates(mutation);
  for (const Subject& subject : subjects) {
    const bool needs_hopper = subject.spec.tactic && subject.spec.tactic->name == "hopper";
    if (needs_hopper && target.name() != "sm_90a") continue;
    const std::vector<KernelSource> kernels =
        changed_kernels(subject.spec, kernel_set(subject.spec, target), target, *templates);
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
