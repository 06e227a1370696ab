#include "runtime/compile/shared_object.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "runtime/compile/host_compiler.hpp"
#include "runtime/compile/process.hpp"
#include "runtime/compile/temporary_directory.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

using Bytes = std::vector<std::byte>;

Bytes compile(const std::string& source) {
  HostCompiler::Result result = HostCompiler::find().compile(source, {"-O2"});
  REQUIRE(result.succeeded);
  return std::move(result.binary);
}

Bytes number_object(int number) {
  return compile(
      "static int calls = 0;\n"
      "extern \"C\" int number() { return " +
      std::to_string(number) +
      "; }\n"
      "extern \"C\" int count() { return ++calls; }\n");
}

int call(const SharedObject& object, const char* name) {
  return reinterpret_cast<int (*)()>(object.symbol(name))();
}

int next_descriptor() {
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(next);
  return next;
}

using Loader = SharedObject (*)(std::span<const std::byte>, std::string_view);
constexpr Loader kLoaders[] = {SharedObject::load, SharedObject::load_through_file};

#if defined(__x86_64__)

struct Modes {
  unsigned mxcsr = 0;
  unsigned short x87 = 0;
  bool operator==(const Modes&) const = default;
};

Modes current_modes() {
  Modes modes;
  __asm__ volatile("stmxcsr %0" : "=m"(modes.mxcsr));
  __asm__ volatile("fnstcw %0" : "=m"(modes.x87));
  modes.mxcsr &= ~0x3fu;  // without the exceptions that have happened
  return modes;
}

void set_mxcsr(unsigned value) {
  __asm__ volatile("ldmxcsr %0" : : "m"(value));
}

/// dlopen with nothing around it.
struct RawObject {
  explicit RawObject(const std::filesystem::path& path)
      : handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~RawObject() {
    if (handle) dlclose(handle);
  }
  void* handle;
};

Bytes contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(data, data + text.size());
}

#endif

}  // namespace

TEST_CASE("shared object: two objects are never mixed up, one after the other or together") {
  const Bytes one = number_object(1), two = number_object(2);
  for (Loader load : kLoaders) {
    for (int round = 0; round < 20; ++round) {
      CHECK(call(load(one, "kernel"), "number") == 1);
      CHECK(call(load(two, "kernel"), "number") == 2);
      const SharedObject first = load(one, "kernel");
      const SharedObject second = load(two, "kernel");
      CHECK(call(first, "number") == 1);
      CHECK(call(second, "number") == 2);
    }
  }
}

TEST_CASE("shared object: the same bytes loaded twice have variables of their own") {
  const Bytes bytes = number_object(1);
  for (Loader load : kLoaders) {
    const SharedObject first = load(bytes, "kernel"), second = load(bytes, "kernel");
    CHECK(call(first, "count") == 1);
    CHECK(call(first, "count") == 2);
    CHECK(call(second, "count") == 1);
  }
}

TEST_CASE("shared object: variables of inline functions are not shared between two kernels") {
  const auto source = [](int start) {
    return "inline int& state() { static int value = " + std::to_string(start) +
           "; return value; }\n"
           "template <typename T> struct Table { static T entry; };\n"
           "template <typename T> T Table<T>::entry = " +
           std::to_string(start) +
           ";\n"
           "extern \"C\" int count() { return ++state() + Table<int>::entry; }\n";
  };
  const SharedObject first = SharedObject::load(compile(source(10)), "first");
  const SharedObject second = SharedObject::load(compile(source(20)), "second");
  CHECK(call(first, "count") == 21);
  CHECK(call(second, "count") == 41);
}

TEST_CASE("shared object: it leaves neither a descriptor nor a file nor a global symbol") {
  const Bytes bytes = number_object(1);
  const TemporaryDirectory temporary("test");
  const int before = next_descriptor();
  setenv("TMPDIR", temporary.path().c_str(), 1);
  for (Loader load : kLoaders) {
    const SharedObject object = load(bytes, "kernel");
    CHECK(next_descriptor() == before);
    CHECK(std::filesystem::is_empty(temporary.path()));
    CHECK(dlsym(RTLD_DEFAULT, "number") == nullptr);
  }
  unsetenv("TMPDIR");
}

TEST_CASE("shared object: bytes that are no object are refused with the object's name") {
  Bytes torn = number_object(1);
  torn.resize(100);
  for (const Bytes& bytes : {Bytes(), Bytes(64), torn}) {
    REQUIRE_THROWS_WITH(
        SharedObject::load(bytes, "forward_masked"),
        ContainsSubstring("error[compiler]") && ContainsSubstring("\"forward_masked\""));
  }
}

TEST_CASE("shared object: an object that needs what nobody has is refused, naming the symbol") {
  // HostCompiler refuses to link it; a bundle of an older version may hold one.
  const TemporaryDirectory folder("undefined");
  const std::string source = (folder.path() / "kernel.cpp").string();
  const std::string object = (folder.path() / "kernel.so").string();
  std::ofstream(source) << "extern \"C\" int tilewright_nowhere();\n"
                           "extern \"C\" int f() { return tilewright_nowhere(); }\n";
  REQUIRE(run_process({"c++", "-shared", "-fPIC", source, "-o", object}).succeeded());
  const Bytes bytes = read_file(object);
  REQUIRE_THROWS_WITH(SharedObject::load(bytes, "kernel"), ContainsSubstring("tilewright_nowhere"));
}

TEST_CASE("shared object: a symbol that is missing is an error, or null where that is expected") {
  const SharedObject object = SharedObject::load(number_object(1), "kernel");
  CHECK(object.find("numbers") == nullptr);
  REQUIRE_THROWS_WITH(object.symbol("numbers"), ContainsSubstring("\"kernel\" has no symbol "
                                                                  "\"numbers\""));
  const SharedObject none;
  CHECK_FALSE(none);
  CHECK(none.find("malloc") == nullptr);
}

TEST_CASE("shared object: moving hands the object on, and it is unloaded once") {
  SharedObject first = SharedObject::load(number_object(1), "one");
  SharedObject second = SharedObject::load(number_object(2), "two");
  first = std::move(second);
  CHECK(call(first, "number") == 2);
  CHECK(first.name() == "two");
  CHECK_FALSE(second);
  const SharedObject third(std::move(first));
  CHECK(call(third, "number") == 2);
}

#if defined(__x86_64__)

TEST_CASE("shared object: loading a kernel leaves the floating-point modes alone") {
  const TemporaryDirectory directory("test");
  const auto path = [&](const char* name) { return directory.path() / name; };
  const std::string source = "extern \"C\" float f(float x) { return x * x; }\n";
  std::ofstream(path("f.cpp")) << source;
  REQUIRE(run_process({"c++", "-O2", "-ffast-math", "-shared", "-fPIC", path("f.cpp"), "-o",
                       path("fast.so")})
              .succeeded());
  const Bytes kernel = HostCompiler::find().compile(source, {"-O2", "-ffast-math"}).binary;
  std::ofstream(path("kernel.so"), std::ios::binary)
      .write(reinterpret_cast<const char*>(kernel.data()), static_cast<long>(kernel.size()));
  const Modes before = current_modes();

  {  // That the check can fail at all.
    const RawObject object(path("fast.so"));
    REQUIRE(object.handle);
    const Modes after = current_modes();
    set_mxcsr(before.mxcsr);
    if (after == before) {
      test::say_skipped("this compiler's -ffast-math changes no floating-point modes");
    } else {
      CHECK((after.mxcsr & 0x8040u) == 0x8040u);  // flush to zero, denormals are zero
    }
  }
  {  // Our way of linking has nothing that would change them, even with the worst option.
    const RawObject object(path("kernel.so"));
    REQUIRE(object.handle);
    CHECK(current_modes() == before);
  }
  for (Loader load : kLoaders) {  // And loading restores them, whatever the bytes are.
    const SharedObject object = load(contents(path("fast.so")), "fast");
    CHECK(current_modes() == before);
    const unsigned rounding_up = before.mxcsr | 0x4000u;
    set_mxcsr(rounding_up);
    const SharedObject again = load(contents(path("fast.so")), "fast");
    CHECK(current_modes().mxcsr == rounding_up);
    set_mxcsr(before.mxcsr);
  }
}

#endif
