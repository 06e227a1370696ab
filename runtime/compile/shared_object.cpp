#include "runtime/compile/shared_object.hpp"

#include <atomic>
#include <cerrno>
#include <cfenv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.hpp"
#include "runtime/compile/temporary_directory.hpp"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U  // since Linux 6.3
#endif

namespace tilewright {
namespace {

struct Loaded {
  void* handle = nullptr;
  std::string error;  // the loader's, where there is no handle
};

/// Restores rounding, exception masks, flush-to-zero and the x87 control word.
class FloatingPointModes {
 public:
  FloatingPointModes() { std::fegetenv(&saved_); }
  FloatingPointModes(const FloatingPointModes&) = delete;
  FloatingPointModes& operator=(const FloatingPointModes&) = delete;
  ~FloatingPointModes() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
};

Loaded open_path(const std::string& path) {
  const FloatingPointModes unchanged;
  Loaded loaded;
  loaded.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded.handle) {
    const char* error = dlerror();
    loaded.error = error ? error : "unknown reason";
    if (loaded.error.starts_with(path + ": ")) loaded.error.erase(0, path.size() + 2);
  }
  return loaded;
}

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

// The loader takes an object of the same path for the same object, without looking into the file.
// Numbers of file descriptors are used again, so each path is spelled differently: "/" and "./"
// lead nowhere, and their sequence counts in binary. A process may hold several copies of this
// library; each counts from the address of its own counter.
std::string unique_descriptor_path(int file) {
  static std::atomic<std::uint64_t> counter = reinterpret_cast<std::uintptr_t>(&counter);
  std::string path = "/proc/self/fd/";
  for (std::uint64_t rest = counter.fetch_add(1); rest > 0; rest /= 2) {
    path += rest % 2 ? "./" : "/";
  }
  return path + std::to_string(file);
}

int make_memory_file(const std::string& name) {
  int file = memfd_create(name.c_str(), MFD_CLOEXEC | MFD_EXEC);
  if (file < 0 && errno == EINVAL) file = memfd_create(name.c_str(), MFD_CLOEXEC);
  return file;
}

// Empty where the system has no anonymous memory files, or where they take no more bytes.
std::optional<Loaded> load_from_memory(std::span<const std::byte> bytes, const std::string& name) {
  const int file = make_memory_file(name.substr(0, 200));
  if (file < 0) return std::nullopt;
  std::optional<Loaded> loaded;
  if (write_all(file, bytes)) loaded = open_path(unique_descriptor_path(file));
  close(file);
  return loaded;
}

Loaded load_from_file(std::span<const std::byte> bytes) {
  const TemporaryDirectory directory("kernel");
  const std::string path = (directory.path() / "kernel.so").string();
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool written = file >= 0 && write_all(file, bytes);
  const int error = errno;
  if (file >= 0) close(file);
  if (!written) {
    throw Error(ErrorCode::disk, fmt::format("cannot write {}: {}", path, std::strerror(error)),
                "set TMPDIR to a directory that can be written to and has free space");
  }
  return open_path(path);
}

Error refused(std::string_view name, const std::string& error) {
  return Error(ErrorCode::compiler, fmt::format("cannot load \"{}\": {}", name, error),
               "if TMPDIR is mounted noexec, set it to a directory that is not; otherwise have "
               "the kernel built again: cache::Store::clear()");
}

}  // namespace

SharedObject SharedObject::load(std::span<const std::byte> bytes, std::string_view name) {
  const std::optional<Loaded> loaded = load_from_memory(bytes, std::string(name));
  if (loaded && loaded->handle) return SharedObject(loaded->handle, name);
  return load_through_file(bytes, name);
}

SharedObject SharedObject::load_through_file(std::span<const std::byte> bytes,
                                             std::string_view name) {
  const Loaded loaded = load_from_file(bytes);
  if (!loaded.handle) throw refused(name, loaded.error);
  return SharedObject(loaded.handle, name);
}

SharedObject::SharedObject(SharedObject&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}

SharedObject& SharedObject::operator=(SharedObject&& other) noexcept {
  if (this != &other) {
    unload();
    handle_ = std::exchange(other.handle_, nullptr);
    name_ = std::move(other.name_);
  }
  return *this;
}

SharedObject::~SharedObject() {
  unload();
}

void SharedObject::unload() noexcept {
  if (handle_) dlclose(handle_);
  handle_ = nullptr;
}

void* SharedObject::symbol(const char* symbol_name) const {
  if (void* address = find(symbol_name)) return address;
  throw Error(ErrorCode::compiler, fmt::format("\"{}\" has no symbol \"{}\"", name_, symbol_name),
              "it was built by another version; have it built again: cache::Store::clear()");
}

void* SharedObject::find(const char* symbol_name) const {
  // A null handle would be RTLD_DEFAULT: every object of the process.
  return handle_ ? dlsym(handle_, symbol_name) : nullptr;
}

}  // namespace tilewright
