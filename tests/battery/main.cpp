// The battery: every spec of examples/ and tests/battery/variants/ over awkward calls, judged by
// the rule of verify/judge.hpp. One line for each spec; exit status 1 where anything is wrong.
//
//     battery [--full] [NAME...]     only specs whose name contains one of the words
//
// TILEWRIGHT_TEST_DEVICE   cpu (default), cuda, cuda:N
// TILEWRIGHT_TEST_FULL     all: as --full: more calls, every spec in f32 too, every snippet checked
//                          1: so with the day's eighth of the specs (TILEWRIGHT_TEST_SEED)

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/cuda/targets.hpp"
#include "tests/battery/cases.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/full_run.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/source_root.hpp"
#include "verify/check.hpp"

namespace {

using namespace tilewright;
using battery::Case;

struct Settings {
  Device device = Device::cpu();
  int part = 0;  // of so many, for several processes side by side
  int parts = 1;
  bool full = false;
  std::size_t shares = 1;  // of the specs, one share is run in full
  std::vector<std::string> names;
};

struct Subject {
  Spec spec;
  bool is_example = false;
};

// What became of the calls of one or all specs.
struct Tally {
  int calls = 0;
  int wrong = 0;
  double worst = 0;  // error as a share of its bound
  double apart = 0;  // difference to the CPU's result as a share of both bounds; on a GPU

  void add(const Tally& other) {
    calls += other.calls;
    wrong += other.wrong;
    worst = std::max(worst, other.worst);
    apart = std::max(apart, other.apart);
  }
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Settings read_settings(int argc, char** argv) {
  Settings settings;
  if (const std::string device = environment("TILEWRIGHT_TEST_DEVICE"); !device.empty()) {
    settings.device = Device::parse(device);
  }
  settings.full = is_full_run();
  settings.shares = is_full_run() && !is_whole_run() ? 8 : 1;
  const std::string part = environment("TILEWRIGHT_TEST_PART");  // "2/6": the third of six
  if (std::sscanf(part.c_str(), "%d/%d", &settings.part, &settings.parts) == 2 &&
      settings.parts < 1) {
    settings.parts = 1;
  }
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--full") {
      settings.full = true;
      settings.shares = 1;
    } else {
      settings.names.emplace_back(argv[i]);
    }
  }
  return settings;
}

bool is_wanted(const Settings& settings, const std::string& name) {
  return settings.names.empty() ||
         std::any_of(settings.names.begin(), settings.names.end(),
                     [&](const std::string& word) { return name.find(word) != std::string::npos; });
}

void read_folder(const std::filesystem::path& folder, bool is_example,
                 std::vector<Subject>& subjects) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) subjects.push_back({spec_from_file(path), is_example});
}

// The spec's own dtype and, as a sharper test of the same kernel, f32.
std::vector<Spec> in_dtypes(const Subject& subject, bool full) {
  std::vector<Spec> specs = {subject.spec};
  const bool plain = !subject.spec.kv_dtype && !subject.spec.out_dtype;
  if (subject.spec.dtype == f32 || !plain || !(full || subject.is_example)) return specs;
  Spec in_f32 = subject.spec;
  in_f32.dtype = f32;
  in_f32.outputs.lse = true;
  specs.push_back(in_f32);
  return specs;
}

// Divides by kv_len - kv_idx, which offsets make 0.
bool applies(const Spec& spec, const Case& call) {
  if (call.masked_only && spec.mask_mod.empty()) return false;
  return !(call.has_offsets && spec.name == "division_up_to_the_end");
}

double share(double error, double bound) {
  return bound > 0 ? error / bound : 0;
}

double worst_share(const verify::Verdict& verdict) {
  return std::max({share(verdict.error_max, verdict.bound_max),
                   share(verdict.error_rms, verdict.bound_rms),
                   share(verdict.lse_error, verdict.lse_bound)});
}

double share_apart(const verify::Agreement& agreement) {
  return std::max(share(agreement.difference, agreement.bound),
                  share(agreement.lse_difference, agreement.lse_bound));
}

// ", 0.20 of both apart from the CPU"; nothing where the CPU was not asked.
std::string apart_text(const Settings& settings, const Tally& tally) {
  if (settings.device == Device::cpu()) return "";
  return fmt::format("  {:.2f} of both from the CPU", tally.apart);
}

Tally run_case(const Spec& spec, const Case& call, const verify::CheckOptions& options,
               const verify::Checker& checker, std::uint64_t seed) {
  const battery::CaseInputs inputs(spec, call, checker.attention(), seed);
  verify::Report report = checker.check(inputs.problem(), call.placement);
  if (options.check_undefined && spec.name != "out_of_bounds") {
    for (const verify::UndefinedOperation& operation : report.undefined.operations) {
      if (!operation.kept) continue;
      fmt::print("  note: {} {}: {} ({}:{})\n", spec.name, call.describe(), operation.message,
                 operation.place.file, operation.place.line);
    }
  }
  if (!report.ok) {
    fmt::print("WRONG {} [{}] {}\n", spec.name, to_string(spec.dtype), call.describe());
    for (const std::string& reason : report.reasons()) fmt::print("      {}\n", reason);
  }
  return {.calls = 1,
          .wrong = report.ok ? 0 : 1,
          .worst = worst_share(report.verdict),
          .apart = report.agreement ? share_apart(*report.agreement) : 0};
}

Tally run_spec(const Spec& spec, const Settings& settings) {
  verify::CheckOptions options;
  options.attention.device = settings.device;
  if (settings.device != Device::cpu()) options.compared_with = Device::cpu();
  options.check_undefined = settings.full;
  options.max_checked_elements = 1 << 16;
  const auto start = std::chrono::steady_clock::now();
  const verify::Checker checker(spec, options);
  const double kernel_seconds = seconds_since(start);
  Tally tally;
  std::uint64_t seed = 1;
  for (const Case& call : battery::all_cases(settings.full)) {
    if (!applies(spec, call)) continue;
    tally.add(run_case(spec, call, options, checker, seed++));
  }
  fmt::print(
      "{:<28} {:<5} {:>3} calls  {}  worst {:.2f} of its bound{}  kernels {:.2f} s  all {:.2f} s\n",
      spec.name, to_string(spec.dtype), tally.calls,
      tally.wrong == 0 ? "right" : fmt::format("{} WRONG", tally.wrong), tally.worst,
      apart_text(settings, tally), kernel_seconds, seconds_since(start));
  std::fflush(stdout);
  return tally;
}

// An error is a wrong result too.
Tally run_spec_or_report(const Spec& spec, const Settings& settings) {
  try {
    return run_spec(spec, settings);
  } catch (const std::exception& error) {
    fmt::print("WRONG {} [{}]\n{}\n", spec.name, to_string(spec.dtype), error.what());
    return {.calls = 1, .wrong = 1};
  }
}

int run(const Settings& settings) {
  const std::filesystem::path root = source_root(TILEWRIGHT_SOURCE_DIR);
  std::vector<Subject> subjects;
  read_folder(root / "examples", true, subjects);
  read_folder(root / "tests/battery/variants", false, subjects);
  const auto start = std::chrono::steady_clock::now();
  Tally tally;
  int specs = 0;
  int position = 0;
  for (const Subject& subject : subjects) {
    if (!is_wanted(settings, subject.spec.name)) continue;
    if (position++ % settings.parts != settings.part) continue;
    ++specs;
    Settings of_spec = settings;
    of_spec.full = settings.full && is_in_share(static_cast<std::size_t>(specs), settings.shares);
    for (const Spec& spec : in_dtypes(subject, of_spec.full)) {
      tally.add(run_spec_or_report(spec, of_spec));
    }
  }
  fmt::print(
      "\n{} specs, {} calls on {}: {} wrong; the nearest to its bound came to {:.2f} of it{}; "
      "{:.1f} "
      "s\n",
      specs, tally.calls, settings.device.name(), tally.wrong, tally.worst,
      apart_text(settings, tally), seconds_since(start));
  if (tally.calls == 0) fmt::print("nothing was run\n");
  return tally.wrong == 0 && tally.calls > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = environment("TILEWRIGHT_TEST_DEVICE");
  const std::string no_gpu = cuda::why_not_available();
  if (device.starts_with("cuda") && !no_gpu.empty()) {
    test::say_skipped("no GPU: " + no_gpu);
    return test::kSkipped;
  }
  try {
    return run(read_settings(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
