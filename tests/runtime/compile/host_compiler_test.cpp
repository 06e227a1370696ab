#include "runtime/compile/host_compiler.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "runtime/compile/shared_object.hpp"
#include "runtime/compile/temporary_directory.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

const std::string kAdd = "extern \"C\" int add(int a, int b) { return a + b; }\n";

/// Sets or removes a variable of the environment for one test.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~ScopedVariable() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(const char* value) {
    if (value) {
      setenv(name_, value, 1);
    } else {
      unsetenv(name_);
    }
  }
  const char* name_;
  std::optional<std::string> before_;
};

/// A compiler that answers --version and otherwise does what a test says.
class FakeCompiler {
 public:
  explicit FakeCompiler(const std::string& action) : directory_("fake") {
    std::ofstream(path()) << "#!/bin/sh\ncase \"$*\" in *--version*) echo fake 1.0; exit;; esac\n"
                          << action << "\n";
    fs::permissions(path(), fs::perms::owner_all);
  }
  std::string path() const { return (directory_.path() / "fake-c++").string(); }

 private:
  TemporaryDirectory directory_;
};

std::string message_of_failure(const HostCompiler& compiler) {
  try {
    compiler.compile(kAdd, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool holds(const std::vector<std::byte>& binary, std::string_view text) {
  const auto* data = reinterpret_cast<const char*>(binary.data());
  return std::string_view(data, binary.size()).find(text) != std::string_view::npos;
}

}  // namespace

TEST_CASE("host compiler: a source becomes a shared object that runs") {
  const HostCompiler::Result result = HostCompiler::find().compile(kAdd, {"-O2"});
  REQUIRE(result.succeeded);
  CHECK(result.milliseconds > 0);
  const SharedObject object = SharedObject::load(result.binary, "add");
  CHECK(reinterpret_cast<int (*)(int, int)>(object.symbol("add"))(2, 3) == 5);
}

TEST_CASE("host compiler: the same source and options give the same bytes, wherever it runs") {
  const std::string source = "namespace { int hidden = 1; }\n" + kAdd +
                             "inline int counter = 0;\n"
                             "extern \"C\" int next() { return ++counter + ++hidden; }\n";
  const HostCompiler compiler = HostCompiler::find();
  const TemporaryDirectory elsewhere("a-directory-with-a-longer-name");
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"-O2"}, {"-O2", "-g"}, {"-fsanitize=undefined"}}) {
    const HostCompiler::Result first = compiler.compile(source, options);
    const ScopedVariable variable("TMPDIR", elsewhere.path().c_str());
    const HostCompiler::Result second = compiler.compile(source, options);
    REQUIRE(first.succeeded);
    CHECK(first.binary == second.binary);
    CHECK_FALSE(holds(first.binary, "tilewright-compile"));
  }
  CHECK(compiler.compile(source, {"-O2"}).binary != compiler.compile(source, {"-O0"}).binary);
}

TEST_CASE("host compiler: an error in the source comes back with its line and column") {
  const ScopedVariable language("LC_ALL", "de_DE.UTF-8");
  const ScopedVariable directories("CPATH", "/no/such/directory");
  const HostCompiler::Result result =
      HostCompiler::find().compile(kAdd + "int broken() { return slope; }\n", {});
  CHECK_FALSE(result.succeeded);
  CHECK(result.binary.empty());
  CHECK_THAT(result.log, ContainsSubstring("kernel.cpp:2:23: error: "));
  CHECK_THAT(result.log, !ContainsSubstring("\x1b["));
}

TEST_CASE("host compiler: a function that nothing defines is the source's error") {
  const HostCompiler::Result result = HostCompiler::find().compile(
      "int nowhere(int); extern \"C\" int f(int x) { return nowhere(x); }\n", {"-O2"});
  CHECK_FALSE(result.succeeded);
  CHECK(result.binary.empty());
  CHECK_THAT(result.log, ContainsSubstring("nowhere(int)"));
}

TEST_CASE("host compiler: a call that may throw needs no library of C++") {
  const HostCompiler::Result result = HostCompiler::find().compile(
      "struct Guard { ~Guard(); volatile int x = 0; };\nGuard::~Guard() { x = 1; }\n"
      "extern \"C\" void f(void (*g)()) { Guard guard; g(); }\n",
      {"-O0"});
  INFO(result.log);
  CHECK(result.succeeded);
}

TEST_CASE("host compiler: an instruction that the assembler refuses is the source's error") {
  const HostCompiler::Result result =
      HostCompiler::find().compile("void f() { asm(\"no_such_instruction\"); }\n", {});
  CHECK_FALSE(result.succeeded);
  CHECK_THAT(result.log, ContainsSubstring("no_such_instruction"));
}

TEST_CASE("host compiler: TILEWRIGHT_CXX is asked first, then CXX, then c++") {
  const FakeCompiler first("exit 1"), second("exit 1");
  {
    const ScopedVariable ours("TILEWRIGHT_CXX", first.path().c_str());
    const ScopedVariable general("CXX", second.path().c_str());
    CHECK(HostCompiler::find().path() == fs::canonical(first.path()));
  }
  {
    const ScopedVariable ours("TILEWRIGHT_CXX", " ");
    const ScopedVariable general("CXX", second.path().c_str());
    CHECK(HostCompiler::find().path() == fs::canonical(second.path()));
  }
  const ScopedVariable ours("TILEWRIGHT_CXX", nullptr);
  const ScopedVariable general("CXX", nullptr);
  CHECK(HostCompiler::find().command() == "c++");
}

TEST_CASE("host compiler: words before the compiler are kept, and no shell reads them") {
  const HostCompiler compiler = HostCompiler::find("env  WORD=$HOME c++");
  CHECK(compiler.compile(kAdd, {}).succeeded);
}

TEST_CASE("host compiler: a missing compiler is an error that names the variable and a package") {
  const ScopedVariable variable("TILEWRIGHT_CXX", "/no/such/c++ -O1");
  REQUIRE_THROWS_WITH(HostCompiler::find(), ContainsSubstring("error[compiler]") &&
                                                ContainsSubstring("/no/such/c++") &&
                                                ContainsSubstring("from TILEWRIGHT_CXX") &&
                                                ContainsSubstring("apt-get install g++"));
  const ScopedVariable path("PATH", "/no/such/directory");
  REQUIRE_THROWS_WITH(HostCompiler::find("c++"), ContainsSubstring("no C++ compiler: \"c++\""));
  REQUIRE_THROWS_AS(HostCompiler::find("/tmp"), Error);
  REQUIRE_THROWS_AS(HostCompiler::find(" "), Error);
}

TEST_CASE("host compiler: a compiler that hangs is stopped, and leaves nothing behind") {
  const TemporaryDirectory temporary("test");
  const FakeCompiler fake("echo partial > kernel.so; sleep 60");
  const ScopedVariable directory("TMPDIR", temporary.path().c_str());
  const ScopedVariable limit("TILEWRIGHT_COMPILE_TIMEOUT", "1");
  const auto start = std::chrono::steady_clock::now();
  CHECK_THAT(message_of_failure(HostCompiler::find(fake.path())),
             ContainsSubstring("error[compiler]") && ContainsSubstring("more than 1 s") &&
                 ContainsSubstring("TILEWRIGHT_COMPILE_TIMEOUT"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
  CHECK(fs::is_empty(temporary.path()));
}

TEST_CASE("host compiler: a time limit that is no number is refused") {
  for (const char* value : {"0", "-1", "soon", "1.5", "99999999999"}) {
    const ScopedVariable limit("TILEWRIGHT_COMPILE_TIMEOUT", value);
    CHECK_THAT(message_of_failure(HostCompiler::find()), ContainsSubstring("error[usage]"));
  }
}

TEST_CASE("host compiler: failures that are not the source's are errors of code compiler") {
  struct Case {
    const char* action;
    const char* expected;
  };
  const Case cases[] = {
      {"kill -SEGV $$", "signal 11"},
      {"echo 'kernel.cpp:1:1: internal compiler error: oops' >&2; exit 1", "oops"},
      {"echo 'kernel.cpp:1: fatal error: error writing to x: No space left on device' >&2; exit 1",
       "free some space"},
      {"echo \"c++: fatal error: cannot execute 'cc1plus'\" >&2; exit 1", "apt-get install g++"},
      {"echo 'c++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1", "memory"},
      {"echo 'collect2: error: ld returned 1 exit status' >&2; exit 1", "ld returned"},
      {"exit 0", "wrote no output"},
      {"exit 3", "exit status 3"},
  };
  for (const Case& c : cases) {
    const FakeCompiler fake(c.action);
    CHECK_THAT(message_of_failure(HostCompiler::find(fake.path())),
               ContainsSubstring("error[compiler]") && ContainsSubstring(c.expected));
  }
}

TEST_CASE("host compiler: a source that cannot be written is an error of code disk") {
  const HostCompiler compiler = HostCompiler::find();
  const ScopedVariable directory("TMPDIR", "/proc");
  CHECK_THAT(message_of_failure(compiler), ContainsSubstring("error[disk]"));
}

TEST_CASE("host compiler: sanitizers instrument the code, and none is linked") {
  const HostCompiler::Result result =
      HostCompiler::find().compile(kAdd, {"-O1", "-fsanitize=signed-integer-overflow"});
  REQUIRE(result.succeeded);
  CHECK(holds(result.binary, "__ubsan_handle_add_overflow"));
  CHECK_FALSE(holds(result.binary, "libubsan"));
}

TEST_CASE("host compiler: a compile leaves nothing in TMPDIR, whether it works or not") {
  const TemporaryDirectory temporary("test");
  const ScopedVariable directory("TMPDIR", temporary.path().c_str());
  CHECK(HostCompiler::find().compile(kAdd, {}).succeeded);
  CHECK_FALSE(HostCompiler::find().compile("error", {}).succeeded);
  CHECK(fs::is_empty(temporary.path()));
}

TEST_CASE("host compiler: the identity changes with the program, and with nothing else") {
  const FakeCompiler fake("exit 0");
  const std::string before = HostCompiler::find(fake.path()).identity();
  CHECK(HostCompiler::find(fake.path()).identity() == before);
  CHECK(HostCompiler::find(fake.path() + " -B/opt").identity() != before);
  std::ofstream(fake.path(), std::ios::app) << "# upgraded\n";
  const std::string after = HostCompiler::find(fake.path()).identity();
  CHECK(after != before);
  fs::last_write_time(fake.path(), fs::last_write_time(fake.path()) + std::chrono::seconds(1));
  CHECK(HostCompiler::find(fake.path()).identity() != after);
}

TEST_CASE("host compiler: a compiler hidden behind ccache's link is part of the identity") {
  const TemporaryDirectory front("front"), back("back");
  std::ofstream(back.path() / "my-c++") << "#!/bin/sh\n";
  fs::permissions(back.path() / "my-c++", fs::perms::owner_all);
  fs::create_symlink("/bin/true", front.path() / "my-c++");
  const std::string directories = front.path().string() + ":" + back.path().string();
  const ScopedVariable path("PATH", directories.c_str());
  const std::string before = HostCompiler::find("my-c++").identity();
  std::ofstream(back.path() / "my-c++", std::ios::app) << "# upgraded\n";
  CHECK(HostCompiler::find("my-c++").identity() != before);
}

TEST_CASE("host compiler: finding it and its identity costs less than 3 ms") {
  double least = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    REQUIRE_FALSE(HostCompiler::find().identity().empty());
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    least = std::min(least, time.count());
  }
  CHECK(least < 3.0);
}

TEST_CASE("host compiler: the version is one line") {
  const std::string version = HostCompiler::find().version();
  CHECK_FALSE(version.empty());
  CHECK(version.find('\n') == std::string::npos);
}

TEST_CASE("host compiler: several threads may compile at once") {
  const HostCompiler compiler = HostCompiler::find();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&compiler, &wrong, t] {
      const std::string source =
          "extern \"C\" int number() { return " + std::to_string(t) + "; }\n";
      const SharedObject object = SharedObject::load(compiler.compile(source, {}).binary, "number");
      wrong += reinterpret_cast<int (*)()>(object.symbol("number"))() != t;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
