// Random kernels for the CPU under AddressSanitizer: this program has its runtime, and the kernels
// are compiled with it when they are rendered. Inputs lie in memory of exactly their size, so an
// element read in front of or behind one ends the process.
//
//     sanitized_kernels [SPECS]
//
// TILEWRIGHT_TEST_SEED makes the same kernels again; TILEWRIGHT_TEST_FULL=1: five times as
// many; all: ten times.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache/store.hpp"
#include "runtime/attention.hpp"
#include "tests/support/full_run.hpp"
#include "tests/support/test_seed.hpp"
#include "verify/fuzz/case_inputs.hpp"
#include "verify/fuzz/random_case.hpp"
#include "verify/outputs.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify;
using namespace tilewright::verify::fuzz;

KernelContext with_address_sanitizer() {
  KernelContext context;
  context.store = std::make_shared<cache::Store>(cache::Store::Options{});
  context.instrumentation = {"-fsanitize=address"};
  return context;
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

void run_calls(const std::vector<FuzzCase>& cases, const KernelContext& kernels) {
  const Attention attention(cases.front().spec, {.device = Device::cpu(), .kernels = kernels});
  for (const FuzzCase& fuzz_case : cases) {
    const ExactInputs inputs(fuzz_case);
    run_call(attention, inputs.problem());
  }
}

// A snippet that reads a trusted buffer one element behind its end.
FuzzCase reading_behind_the_end() {
  FuzzCase fuzz_case;
  fuzz_case.spec = {
      .dtype = f32,
      .head_dim = 16,
      .score_mod = "score + bias[kv_idx + 1]",
      .buffers = {
          {"bias", {.dtype = f32, .shape = {NamedDim::kv_len}, .bounds = Bounds::trusted}}}};
  fuzz_case.shape = {.q_len = 4, .kv_len = 64};
  return fuzz_case;
}

// In a process of its own, and before this one starts threads.
bool ends_its_process(const FuzzCase& fuzz_case) {
  const pid_t process = ::fork();
  if (process == 0) {
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDERR_FILENO);
    run_calls({fuzz_case}, with_address_sanitizer());
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(process, &status, 0);
  return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int run(int specs) {
  if (!ends_its_process(reading_behind_the_end())) {
    fmt::print("FAILED a read behind the end of a buffer was not found\n");
    return 1;
  }
  FuzzCase inside = reading_behind_the_end();
  inside.spec.score_mod = "score + bias[kv_idx]";
  if (ends_its_process(inside)) {
    fmt::print("FAILED a kernel that reads nothing but its buffer ended its process\n");
    return 1;
  }
  const std::uint64_t seed = test_seed();
  fmt::print("seed {}: {} specs\n", seed, specs);
  std::fflush(stdout);
  CaseMaker maker({.max_elements = 20'000}, seed);
  const KernelContext kernels = with_address_sanitizer();
  for (int i = 0; i < specs; ++i) {
    const std::vector<FuzzCase> cases = maker.next_group(3);
    // What is printed last is what a report is about.
    fmt::print("{}\n", describe(cases.front()));
    std::fflush(stdout);
    run_calls(cases, kernels);
  }
  fmt::print("{} calls of {} specs: nothing was read outside of the inputs\n", 3 * specs, specs);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int specs = argc > 1 ? std::atoi(argv[1]) : 2;
    return run(is_whole_run() ? 10 * specs : is_full_run() ? 5 * specs : specs);
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
    return 1;
  }
}
