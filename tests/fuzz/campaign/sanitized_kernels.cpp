// Kernels for the CPU under AddressSanitizer and UndefinedBehaviorSanitizer: this program has their
// runtimes, and the kernels are compiled with them when they are rendered. Inputs lie in memory of
// exactly their size, so an element read before or after one ends the process, and so does
// undefined behaviour. First planted faults, which must be found; then the specs of examples/
// and of the battery, and random ones.
//
//     sanitized_kernels [SPECS]
//
// SPECS random specs, ten calls each. TILEWRIGHT_TEST_SEED makes the same kernels again.
// TILEWRIGHT_TEST_FULL=1: 20 of them, all examples and each day half of the battery's small specs;
// all: those too; else a sample.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache/store.hpp"
#include "fuzz/case_inputs.hpp"
#include "fuzz/random_case.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/api/attention.hpp"
#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/support/full_run.hpp"
#include "tests/support/test_seed.hpp"
#include "verify/outputs.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify;
using namespace tilewright::verify::fuzz;

// -O1 halves the time that a kernel takes to compile; the loops and their bounds are the same.
Toolchain with_sanitizers() {
  Toolchain toolchain;
  toolchain.store = std::make_shared<cache::Store>(cache::Store::Options{});
  toolchain.instrumentation = {"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1"};
  return toolchain;
}

// A call's inputs, each in an allocation of its own that ends where the tensor does.
class ExactInputs {
 public:
  explicit ExactInputs(const FuzzCase& fuzz_case)
      : inputs_(dense_inputs(fuzz_case)), problem_(inputs_.problem()) {
    problem_.scale = fuzz_case.scale;
    for (TensorView* view : {&problem_.q, &problem_.k, &problem_.v}) move(*view);
    for (auto& [name, view] : problem_.snippet.buffers) move(view);
  }

  const Problem& problem() const { return problem_; }

 private:
  void move(TensorView& view) {
    const auto bytes = static_cast<std::size_t>(view.numel()) * size_of(view.dtype);
    memory_.emplace_back(static_cast<std::byte*>(::operator new(bytes, kAlignment)));
    std::memcpy(memory_.back().get(), view.data, bytes);
    view.data = memory_.back().get();
  }

  static constexpr std::align_val_t kAlignment{64};
  struct Delete {
    void operator()(std::byte* data) const { ::operator delete(data, kAlignment); }
  };

  Inputs inputs_;
  Problem problem_;
  std::vector<std::unique_ptr<std::byte, Delete>> memory_ = {};
};

void run_calls(const std::vector<FuzzCase>& cases, const Toolchain& kernels) {
  const Attention attention(cases.front().spec, {.device = Device::cpu(), .kernels = kernels});
  for (const FuzzCase& fuzz_case : cases) {
    const ExactInputs inputs(fuzz_case);
    run_call(attention, inputs.problem());
  }
}

// A snippet that reads a trusted buffer one element past its end.
FuzzCase reading_behind_the_end() {
  FuzzCase fuzz_case;
  fuzz_case.spec = {
      .dtype = f32,
      .head_dim = 16,
      .score_mod = "score + bias[kv_idx + 1]",
      .buffers = {
          {"bias", {.dtype = f32, .shape = {NamedDim::kv_len}, .bounds = Bounds::trusted}}}};
  fuzz_case.shape = {.q_len = 4, .kv_len = 61, .kv_offset = 1};
  return fuzz_case;
}

FuzzCase reading_inside() {
  FuzzCase fuzz_case = reading_behind_the_end();
  fuzz_case.spec.score_mod = "score + bias[kv_idx - 1]";
  return fuzz_case;
}

// In a process of its own, and before this one starts threads.
bool ends_its_process(const FuzzCase& fuzz_case, const Toolchain& kernels) {
  const pid_t process = ::fork();
  if (process == 0) {
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDERR_FILENO);
    try {
      run_calls({fuzz_case}, kernels);
    } catch (const std::exception& error) {  // nothing was found: the kernel did not run
      fmt::print("{}\n", error.what());
      std::fflush(stdout);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(process, &status, 0);
  return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

bool finds_fault(const test::Fault& fault) {
  Toolchain kernels = with_sanitizers();
  kernels.templates = std::make_shared<const test::FaultyTemplates>(fault);
  return ends_its_process(reading_inside(), kernels);
}

// How many of the planted faults were not found.
int missed_faults() {
  int missed = 0;
  const auto require = [&](bool holds, const std::string& what) {
    if (holds) return;
    fmt::print("FAILED {}\n", what);
    ++missed;
  };
  require(ends_its_process(reading_behind_the_end(), with_sanitizers()),
          "a snippet's read behind the end of a buffer was not found");
  require(!ends_its_process(reading_inside(), with_sanitizers()),
          "a kernel that reads nothing but its buffer ended its process");
  require(finds_fault({"a row of K behind the last", "cpu/gemm.hpp",
                       "(kv + r < count ? kv + r : count - 1)", "(kv + r)"}),
          "a template's read behind the end of K was not found");
  require(finds_fault({"an index that overflows", "cpu/forward.hpp",
                       "place.first_kv_idx = first + item.kv_offset;",
                       "place.first_kv_idx = first + item.kv_offset + 2147483647;"}),
          "a template's signed overflow was not found");
  return missed;
}

// A call of odd lengths, with every offset that the checked interpretation allows to be missing.
FuzzCase small_call(const Spec& spec) {
  FuzzCase fuzz_case;
  fuzz_case.spec = spec;
  fuzz_case.spec.tactic.reset();
  fuzz_case.shape = {.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 137, .kv_len = 149};
  return fuzz_case;
}

// The specs of a folder in the order of their names; of every `part` of them one, by the seed.
std::vector<FuzzCase> calls_of(const std::string& folder, std::int64_t most_head_dim,
                               std::size_t part) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<FuzzCase> calls;
  for (std::size_t i = test_seed() % part; i < files.size(); i += part) {
    const Spec spec = spec_from_file(files[i]);
    if (spec.head_dim <= most_head_dim) calls.push_back(small_call(spec));
  }
  return calls;
}

int run(int specs) {
  if (missed_faults() > 0) return 1;
  const std::uint64_t seed = test_seed();
  const std::size_t part = is_full_run() ? 1 : 16;
  const std::size_t part_of_battery = is_whole_run() ? 1 : is_full_run() ? 2 : 16;
  const Toolchain kernels = with_sanitizers();
  std::vector<std::vector<FuzzCase>> groups;
  const std::string root = TILEWRIGHT_SOURCE_DIR;
  for (const FuzzCase& call : calls_of(root + "/examples", 256, part)) groups.push_back({call});
  for (const FuzzCase& call : calls_of(root + "/tests/battery/variants", 64, part_of_battery)) {
    groups.push_back({call});
  }
  CaseMaker maker({.max_elements = 20'000}, seed);
  // Packed calls run the same kernels, sequence by sequence.
  for (int i = 0; i < specs;) {
    std::vector<FuzzCase> group = maker.next_group(10);
    if (group.front().spec.is_packed()) continue;
    groups.push_back(std::move(group));
    ++i;
  }
  fmt::print("seed {}: {} specs, {} of them random\n", seed, groups.size(), specs);
  std::size_t calls = 0;
  for (const std::vector<FuzzCase>& cases : groups) {
    // What is printed last is what a report is about.
    fmt::print("{} {}\n", cases.front().spec.name, describe(cases.front()));
    std::fflush(stdout);
    run_calls(cases, kernels);
    calls += cases.size();
  }
  fmt::print("{} calls of {} specs: no foreign memory was touched, no behaviour was undefined\n",
             calls, groups.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int specs = argc > 1 ? std::atoi(argv[1]) : 2;
    return run(is_full_run() ? 10 * specs : specs);
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
    return 1;
  }
}
