#include "verify/fuzz/workers.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <signal.h>

#include "cache/store.hpp"
#include "generator/spec.hpp"
#include "runtime/temporary_directory.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/holds_soon.hpp"
#include "verify/fuzz/outcome.hpp"

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

}  // namespace

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
