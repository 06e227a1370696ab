#include "fuzz/workers.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <signal.h>
#include <unistd.h>

#include "base/error.hpp"
#include "cache/store.hpp"
#include "fuzz/outcome.hpp"
#include "fuzz/relations.hpp"
#include "generator/spec/spec.hpp"
#include "runtime/compile/temporary_directory.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/holds_soon.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify::fuzz;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

// A compiler that never ends, which leaves its number in a file.
fs::path make_endless_compiler(const fs::path& directory) {
  const fs::path program = directory / "c++";
  std::ofstream(program) << "#!/bin/sh\n"
                            "[ \"$1\" = --version ] && exec echo g++ 12\n"
                            "echo $$ > "
                         << (directory / "process") << "\nexec sleep 600\n";
  fs::permissions(program, fs::perms::owner_all);
  return program;
}

// A GPU whose kernel says something and traps; the process that has it is good for nothing more.
class TrappingRunner : public KernelRelationRunner {
 public:
  TrappingRunner() : KernelRelationRunner(Device::cpu()) {}
  verify::AttentionValues forward(const Spec&, const verify::Problem&, Way) override {
    std::printf("block 0 waits; process %d\n", static_cast<int>(::getpid()));
    throw Error(ErrorCode::device, "an illegal instruction was encountered");
  }
};

}  // namespace

TEST_CASE("workers: an error of the device ends the process, and has what the kernel said") {
  RunOptions options;
  options.relations = [](const Device&, const Toolchain&) {
    return std::make_unique<TrappingRunner>();
  };
  FuzzCase fuzz_case;
  fuzz_case.spec = Spec{.head_dim = 16};
  fuzz_case.shape = {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 4, .kv_len = 4};
  fuzz_case.relation = std::string(to_string(Relation::added_constant));
  Workers workers({.run = options, .count = 1, .time_limit = 60s});
  workers.submit({fuzz_case, fuzz_case});
  std::vector<std::string> messages;
  while (messages.size() < 2) {
    if (const auto finished = workers.wait(1s)) messages.push_back(finished->outcome.message);
  }
  for (const std::string& message : messages) {
    CHECK_THAT(message, ContainsSubstring("an illegal instruction was encountered") &&
                            ContainsSubstring("kernels printed: block 0 waits; process "));
  }
  CHECK(messages[0] != messages[1]);
}

TEST_CASE("workers: what takes too long ends with the compiler that it waits for") {
  const TemporaryDirectory directory("workers");
  const char* before = std::getenv("TILEWRIGHT_CXX");
  const std::string compiler = before ? before : "";
  ::setenv("TILEWRIGHT_CXX", make_endless_compiler(directory.path()).c_str(), 1);
  RunOptions options;
  options.kernels.store = std::make_shared<cache::Store>(cache::Store::Options{});
  FuzzCase fuzz_case;
  fuzz_case.spec = Spec{.head_dim = 16};
  fuzz_case.shape = {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 4, .kv_len = 4};
  const Outcome outcome = run_isolated(fuzz_case, options, 2s);
  ::setenv("TILEWRIGHT_CXX", compiler.c_str(), 1);  // an empty variable counts as unset
  CHECK(outcome.failure == Failure::time_out);
  CHECK_THAT(outcome.message, ContainsSubstring("it ran for more than 2 s; "));
  CHECK_THAT(outcome.message, ContainsSubstring("sleep, "));
  CHECK_THAT(outcome.message, ContainsSubstring(" s of processor time: "));
  pid_t process = 0;
  std::ifstream(directory.path() / "process") >> process;
  REQUIRE(process > 0);
  CHECK(test::holds_soon([&] { return ::kill(process, 0) != 0; }));
}

TEST_CASE("workers: a late case is reported once, with stacks and processes, and goes on") {
  const TemporaryDirectory directory("workers");
  const char* before = std::getenv("TILEWRIGHT_CXX");
  const std::string compiler = before ? before : "";
  ::setenv("TILEWRIGHT_CXX", make_endless_compiler(directory.path()).c_str(), 1);
  RunOptions options;
  options.kernels.store = std::make_shared<cache::Store>(cache::Store::Options{});
  FuzzCase fuzz_case;
  fuzz_case.spec = Spec{.name = "the late one", .head_dim = 16};
  fuzz_case.shape = {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 4, .kv_len = 4};
  std::vector<std::string> reports;
  Workers workers({.run = options,
                   .count = 1,
                   .time_limit = 4s,
                   .late_after = 1s,
                   .late = [&](const std::string& report) { reports.push_back(report); }});
  workers.submit({fuzz_case});
  std::optional<Workers::Finished> finished;
  while (!finished) finished = workers.wait(1s);
  ::setenv("TILEWRIGHT_CXX", compiler.c_str(), 1);
  REQUIRE(reports.size() == 1);
  CHECK_THAT(reports[0], ContainsSubstring("makes the kernel forward for cpu"));
  CHECK_THAT(reports[0], ContainsSubstring("process ") && ContainsSubstring("sleep 600"));
  CHECK_THAT(reports[0], ContainsSubstring("kernels of the case: forward for cpu"));
  CHECK_THAT(reports[0], ContainsSubstring("the late one"));
  CHECK_THAT(reports[0], ContainsSubstring("poll"));  // of a stack: where it waits for the compiler
  CHECK(finished->outcome.failure == Failure::time_out);
  CHECK_THAT(finished->outcome.message, ContainsSubstring("earlier a case of process"));
}

TEST_CASE("workers: an answer that came while nobody asked is not late") {
  const TemporaryDirectory directory("workers");
  RunOptions options;
  options.kernels.store = std::make_shared<cache::Store>(
      cache::Store::Options{.directory = directory.path(), .diagnostics = {}});
  FuzzCase fuzz_case;
  fuzz_case.spec = Spec{.head_dim = 16};
  fuzz_case.shape = {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 4, .kv_len = 4};
  REQUIRE(run_isolated(fuzz_case, options).ok());  // from here on its kernel is on disk
  Workers workers({.run = options, .count = 1, .time_limit = 3s});
  workers.submit({fuzz_case});
  std::this_thread::sleep_for(4s);
  const auto finished = workers.wait(1s);
  REQUIRE(finished);
  CHECK(finished->outcome.ok());
}
