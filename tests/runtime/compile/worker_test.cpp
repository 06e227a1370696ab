#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/sanitizers.hpp"
#include "runtime/compile/host_compiler.hpp"
#include "runtime/compile/session.hpp"
#include "runtime/compile/temporary_directory.hpp"
#include "runtime/compile/worker_pool.hpp"
#include "runtime/compile/worker_process.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/holds_soon.hpp"
#include "tests/support/nvrtc.hpp"

using namespace tilewright;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using test::holds_soon;
namespace fs = std::filesystem;

namespace {

const std::string kAdd = "extern \"C\" int add(int a, int b) { return a + b; }\n";
const std::string kKernel = "extern \"C\" __global__ void add(int* a) { *a += 1; }\n";
constexpr const char* kWorker = TILEWRIGHT_TEST_WORKER;

// Expands to three million words.
const std::string kMacroBomb = [] {
  std::string text = "#define A0 x+x+x+x+x+x+x+x+x+x+x+x\n";
  for (int i = 1; i < 8; ++i) {
    const std::string a = "A" + std::to_string(i - 1);
    text += "#define A" + std::to_string(i) + " " + a;
    for (int k = 0; k < 11; ++k) text += "+" + a;
    text += "\n";
  }
  return text + "extern \"C\" long f(long x) { return A7; }\n";
}();

WorkerRequest host_request(const std::string& source) {
  const HostCompiler compiler = HostCompiler::find();
  return {.task = WorkerRequest::Task::host,
          .limits = {.wall = 60s},
          .environment = current_environment(),
          .directory = "/",
          .words = compiler.words(),
          .compiler = compiler.version(),
          .options = {"-O2"},
          .source = source};
}

WorkerRequest nvrtc_request(const std::string& source) {
  const cuda::NvrtcFacts& facts = cuda::Nvrtc::get().facts();
  return {.task = WorkerRequest::Task::nvrtc,
          .limits = {.wall = 60s},
          .environment = current_environment(),
          .words = {facts.path},
          .compiler = facts.identity,
          .target = "sm_90",
          .source = source};
}

// One that has answered: under sanitizers a new one may take longer to start than a test waits.
pid_t started_worker(WorkerPool& pool) {
  pool.run(host_request(kAdd), "add");
  return pool.idle_workers().at(0);
}

// A worker leads a session, in which the compiler that it starts stays.
bool has_no_process_soon(pid_t worker) {
  return holds_soon([&] { return processes_of_session(worker).empty(); });
}

template <typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  } catch (const NoWorker& problem) {
    return problem.error().what();
  }
  return "no error";
}

bool is_alive(pid_t process) {
  return ::kill(process, 0) == 0;
}

}  // namespace

TEST_CASE("worker: a compile there gives the bytes that a compile here gives") {
  WorkerPool pool(kWorker, 2);
  const WorkerRequest request = host_request(kAdd);
  const WorkerResponse response = pool.run(request, "add");
  CHECK(response.succeeded);
  CHECK(response.binary == HostCompiler::find().compile(kAdd, {"-O2"}).binary);

  if (test::nvrtc_is_missing()) return;
  const WorkerResponse cubin = pool.run(nvrtc_request(kKernel), "add");
  CHECK(cubin.succeeded);
  CHECK(cubin.binary == cuda::Nvrtc::get().compile(kKernel, "sm_90", {}).cubin);
  CHECK(pool.run({.task = WorkerRequest::Task::find_nvrtc, .environment = current_environment()},
                 "nothing")
            .nvrtc == cuda::Nvrtc::get().facts());
}

TEST_CASE("worker: what is wrong with a source comes back as the compiler's log") {
  WorkerPool pool(kWorker, 1);
  const WorkerResponse response = pool.run(host_request("int f() { return slope; }\n"), "f");
  CHECK_FALSE(response.succeeded);
  CHECK_THAT(response.log, ContainsSubstring("kernel.cpp:1:18: error"));
  if (test::nvrtc_is_missing()) return;
  const WorkerResponse cubin = pool.run(nvrtc_request("__global__ void f() { slope; }"), "f");
  CHECK_FALSE(cubin.succeeded);
  CHECK_THAT(cubin.log, ContainsSubstring("kernel.cu(1): error"));
}

TEST_CASE("worker: one serves several compiles") {
  WorkerPool pool(kWorker, 4);
  REQUIRE(pool.run(host_request(kAdd), "add").succeeded);
  const std::vector<pid_t> first = pool.idle_workers();
  REQUIRE(first.size() == 1);
  REQUIRE(pool.run(host_request(kAdd + "\n"), "add").succeeded);
  REQUIRE(pool.idle_workers() == first);
}

TEST_CASE("worker: its allocator keeps memory, and what the user sets for glibc comes last") {
  ::setenv("GLIBC_TUNABLES", "glibc.malloc.top_pad=4096", 1);
  WorkerPool pool(kWorker, 1);
  pool.run(host_request(kAdd), "something");
  ::unsetenv("GLIBC_TUNABLES");
  // Not split into settings: glibc ends each with a zero where it stands.
  std::ifstream file("/proc/" + std::to_string(pool.idle_workers().at(0)) + "/environ");
  const std::string environment{std::istreambuf_iterator<char>(file), {}};
  const std::size_t ours = environment.find("GLIBC_TUNABLES=glibc.malloc.hugetlb=1");
  REQUIRE(ours != std::string::npos);
  CHECK(environment.find("glibc.malloc.top_pad=4096", ours) != std::string::npos);
}

TEST_CASE("worker: idle ones end with their pool, and are replaced where they died") {
  std::vector<pid_t> workers;
  {
    WorkerPool pool(kWorker, 2);
    pool.warm_up(2);
    workers = pool.idle_workers();
    REQUIRE(workers.size() == 2);
    for (const pid_t worker : workers) ::kill(worker, SIGKILL);
    std::this_thread::sleep_for(50ms);
    REQUIRE(pool.run(host_request(kAdd), "add").succeeded);
    workers = pool.idle_workers();
  }
  for (const pid_t worker : workers) REQUIRE_FALSE(is_alive(worker));
}

TEST_CASE("worker: one that dies at work is an error, and the next compile has a new one") {
  WorkerPool pool(kWorker, 1);
  const pid_t worker = started_worker(pool);
  std::thread killer([&] {
    std::this_thread::sleep_for(100ms);
    ::kill(worker, SIGABRT);
  });
  WorkerRequest request = host_request(kMacroBomb);
  const std::string message = message_of([&] { pool.run(request, "forward for cpu"); });
  killer.join();
  CHECK_THAT(message, ContainsSubstring("error[compiler]: the compiler ended without an answer: "
                                        "signal 6") &&
                          ContainsSubstring("while compiling forward for cpu"));
  CHECK(pool.run(host_request(kAdd), "add").succeeded);
}

TEST_CASE("worker: one that somebody ends says nothing of the source") {
  const int signal = GENERATE(SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXFSZ, SIGABRT);
  CAPTURE(signal);
  WorkerPool pool(kWorker, 1);
  const pid_t worker = started_worker(pool);
  std::thread killer([&] {
    std::this_thread::sleep_for(100ms);
    ::kill(worker, signal);
  });
  bool lasts = false;
  std::string message;
  try {
    pool.run(host_request(kMacroBomb), "forward for cpu");
  } catch (const LimitReached&) {
    lasts = true;
  } catch (const Error& error) {
    message = error.what();
  }
  killer.join();
  CHECK(lasts == (signal == SIGABRT));
  CHECK(has_no_process_soon(worker));
  if (signal == SIGXFSZ) CHECK_THAT(message, ContainsSubstring("ulimit -f"));
  if (signal == SIGTERM)
    CHECK_THAT(message, ContainsSubstring("another process ended it; try again"));
}

TEST_CASE(
    "worker: where the process that asked is killed, it ends with its compiler and its files") {
  const TemporaryDirectory folder("orphan");
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    ::setenv("TMPDIR", folder.path().c_str(), 1);
    WorkerPool pool(kWorker, 1);
    const pid_t worker = started_worker(pool);
    if (::write(ends[1], &worker, sizeof worker) != sizeof worker) ::_exit(1);
    pool.run(host_request(kMacroBomb), "f");
    ::_exit(0);
  }
  ::close(ends[1]);
  pid_t worker = 0;
  REQUIRE(::read(ends[0], &worker, sizeof worker) == sizeof worker);
  ::close(ends[0]);
  REQUIRE(holds_soon([&] { return processes_of_session(worker).size() > 1; }));
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  CHECK(has_no_process_soon(worker));
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("worker: a macro bomb ends within its limits") {
  WorkerPool pool(kWorker, 1);
  const auto start = std::chrono::steady_clock::now();
  WorkerRequest request = host_request(kMacroBomb);
  SECTION("of memory") {
    if (kHasSanitizer) return;  // whose shadow takes all address space: none is limited then
    request.limits.address_space = 512;
    CHECK_THAT(
        message_of([&] { pool.run(request, "f"); }),
        ContainsSubstring("ran out of memory") && ContainsSubstring("TILEWRIGHT_COMPILE_MEMORY"));
  }
  SECTION("of processor time") {
    request.limits.cpu = 1s;
    request.limits.address_space = 16 << 10;
    CHECK_THAT(
        message_of([&] { pool.run(request, "f"); }),
        ContainsSubstring("processor time") && ContainsSubstring("TILEWRIGHT_COMPILE_TIMEOUT"));
  }
  SECTION("of time, which the worker watches") {
    ::setenv("TILEWRIGHT_COMPILE_TIMEOUT", "1", 1);
    request.environment = current_environment();
    ::unsetenv("TILEWRIGHT_COMPILE_TIMEOUT");
    CHECK_THAT(message_of([&] { pool.run(request, "f"); }),
               ContainsSubstring("took more than 1 s"));
  }
  SECTION("in NVRTC") {
    if (kHasSanitizer || test::nvrtc_is_missing()) return;
    request = nvrtc_request("#define __global__\n" + kMacroBomb);
    request.limits.cpu = 2s;
    request.limits.address_space = 1024;
    CHECK_THAT(message_of([&] { pool.run(request, "f"); }), ContainsSubstring("error[compiler]"));
  }
  CHECK(pool.run(host_request(kAdd), "add").succeeded);
  CHECK(std::chrono::steady_clock::now() - start < 30s);
}

TEST_CASE("worker: a hanging one is killed") {
  const TemporaryDirectory folder("hang");
  const fs::path program = folder.path() / "tilewright";
  // The socket is its stdin, which may be written as well.
  std::ofstream(program) << "#!/bin/bash\necho '"
                         << worker_greeting().substr(0, worker_greeting().size() - 1)
                         << "' >&0\nsleep 60\n";
  fs::permissions(program, fs::perms::owner_all);
  WorkerPool pool(program, 1);
  WorkerRequest request;
  request.limits.wall = 1s;
  const auto start = std::chrono::steady_clock::now();
  CHECK_THAT(message_of([&] { pool.run(request, "f"); }), ContainsSubstring("took more than 1 s"));
  CHECK(std::chrono::steady_clock::now() - start < 10s);
}

TEST_CASE("worker: one that never greets is given up after seconds, once") {
  const TemporaryDirectory folder("silent");
  const fs::path program = folder.path() / "tilewright";
  std::ofstream(program) << "#!/bin/bash\nprintf '\\e[31mevil\\u202e' >&2\nexec sleep 600\n";
  fs::permissions(program, fs::perms::owner_all);
  WorkerPool pool(program, 2);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) {
    const std::string message = message_of([&] { pool.run({}, "f"); });
    CHECK_THAT(message, ContainsSubstring("did not greet in time") &&
                            ContainsSubstring("TILEWRIGHT_WORKER"));
    CHECK_THAT(message, ContainsSubstring("\\x1b[31mevil") && !ContainsSubstring("\x1b"));
  }
  CHECK(std::chrono::steady_clock::now() - start < 20s);
}

TEST_CASE("worker: a program that is none is recognised") {
  WorkerRequest request;
  CHECK_THAT(message_of([&] { WorkerPool("/bin/true", 1).run(request, "f"); }),
             ContainsSubstring("is no compile worker"));
  CHECK_THAT(message_of([&] { WorkerPool("/bin/echo", 1).run(request, "f"); }),
             ContainsSubstring("is no compile worker"));
  CHECK_THAT(message_of([&] { WorkerPool("/nowhere/tilewright", 1).run(request, "f"); }),
             ContainsSubstring("cannot start"));
}

TEST_CASE("worker: NVRTC reads no file, whatever a source names") {
  if (test::nvrtc_is_missing()) return;
  const TemporaryDirectory folder("secret");
  const fs::path secret = folder.path() / "secret.h";
  std::ofstream(secret) << "the secret words of this file\n";
  WorkerPool pool(kWorker, 1);
  REQUIRE(pool.run(nvrtc_request(kKernel), "f").succeeded);
  for (const std::string& name : {secret.string(), std::string("/etc/passwd")}) {
    const WorkerResponse response =
        pool.run(nvrtc_request("#include \"" + name + "\"\n" + kKernel), "f");
    CHECK_FALSE(response.succeeded);
    CHECK(response.log.find("secret words") == std::string::npos);
    CHECK(response.log.find("root:") == std::string::npos);
  }
}

TEST_CASE("worker: a forked child starts workers of its own") {
  WorkerPool pool(kWorker, 2);
  pool.warm_up(1);
  const std::vector<pid_t> before = pool.idle_workers();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool compiled = pool.run(host_request(kAdd), "add").succeeded;
    ::_exit(compiled && pool.idle_workers() != before ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  REQUIRE(pool.run(host_request(kAdd), "add").succeeded);
  REQUIRE(pool.idle_workers() == before);
}

TEST_CASE("worker: messages survive the way, and no part of one is taken for the whole") {
  const WorkerRequest request = {.task = WorkerRequest::Task::nvrtc,
                                 .limits = {.wall = 7s, .address_space = 300, .cpu = 3s},
                                 .environment = {"A=1", "B="},
                                 .directory = "/tmp",
                                 .words = {"g++", "-B/opt"},
                                 .compiler = "gcc 12",
                                 .target = "sm_80",
                                 .options = {"-O2", ""},
                                 .source = std::string("a\0b", 3)};
  const std::vector<std::byte> bytes = encode(request);
  CHECK(decode_worker_request(bytes) == request);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_THROWS_AS(decode_worker_request(std::span(bytes).first(size)), Error);
  }
  WorkerResponse response{.succeeded = true, .binary = {std::byte{1}}, .log = "l"};
  response.nvrtc = cuda::NvrtcFacts{"/lib", 13, 0, {80, 90}, "id"};
  const std::vector<std::byte> answer = encode(response);
  CHECK(decode_worker_response(answer).nvrtc == response.nvrtc);
  CHECK(decode_worker_response(answer).binary == response.binary);
  for (std::size_t size = 0; size < answer.size(); ++size) {
    CHECK_THROWS_AS(decode_worker_response(std::span(answer).first(size)), Error);
  }
}
