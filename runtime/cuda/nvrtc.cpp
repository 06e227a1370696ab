#include "runtime/cuda/nvrtc.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/error.hpp"
#include "base/float_environment.hpp"
#include "runtime/cuda/python_packages.hpp"

namespace tilewright::cuda {
namespace {

namespace fs = std::filesystem;

// Results of nvrtc.h that are told apart: wrong sources fail with the second.
constexpr int kSuccess = 0;
constexpr int kCompilationError = 6;

constexpr int kOldestMajor = 12;

constexpr const char* kFileName = "kernel.cu";

// Newest first, so that "libnvrtc.so.13" is taken before "libnvrtc.so.12".
void append_libraries_of(const fs::path& folder, std::vector<std::string>& paths) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder, error)) {
    const std::string name = file.path().filename().string();
    if (name.starts_with("libnvrtc.so.") && name.find('.', 12) == std::string::npos) {
      found.push_back(file.path().string());
    }
  }
  std::sort(found.rbegin(), found.rend());
  paths.insert(paths.end(), found.begin(), found.end());
}

void append_toolkits(std::vector<std::string>& paths) {
  std::vector<fs::path> toolkits;
  std::error_code error;
  for (const auto& folder : fs::directory_iterator("/usr/local", error)) {
    if (folder.path().filename().string().starts_with("cuda")) toolkits.push_back(folder.path());
  }
  std::sort(toolkits.rbegin(), toolkits.rend());
  for (const fs::path& toolkit : toolkits) append_libraries_of(toolkit / "lib64", paths);
}

void append_wheels(std::vector<std::string>& paths) {
  for (const fs::path& packages : python_packages()) {
    append_libraries_of(packages / "nvidia/cuda_nvrtc/lib", paths);
    append_libraries_of(packages / "nvidia/cu13/lib", paths);
  }
}

// The file that a function was loaded from, links resolved; empty if unknown.
fs::path file_of(const void* symbol) {
  Dl_info info{};
  if (!dladdr(symbol, &info) || !info.dli_fname) return {};
  std::error_code error;
  fs::path path = fs::canonical(info.dli_fname, error);
  return error ? fs::path(info.dli_fname) : path;
}

std::string file_identity(const fs::path& path) {
  struct stat status {};
  if (path.empty() || stat(path.c_str(), &status) != 0) return "unknown file";
  return fmt::format("{} bytes, modified {}.{:09}", status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

fs::path builtins_of(const NvrtcFacts& facts) {
  return fs::path(facts.path).parent_path() /
         fmt::format("libnvrtc-builtins.so.{}.{}", facts.major, facts.minor);
}

}  // namespace

std::vector<std::string> Nvrtc::candidates() {
  std::vector<std::string> paths;
  if (const char* given = std::getenv("TILEWRIGHT_NVRTC"); given && *given) {
    if (fs::is_directory(given)) {
      append_libraries_of(given, paths);
    } else {
      paths.emplace_back(given);
    }
    return paths;  // what the user names is taken or refused, never passed over
  }
  paths.insert(paths.end(), {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});
  append_toolkits(paths);
  append_wheels(paths);
  return paths;
}

const Nvrtc& Nvrtc::get() {
  static const Nvrtc& nvrtc = *new Nvrtc(find());
  return nvrtc;
}

const Nvrtc& Nvrtc::at(const std::string& path) {
  static std::mutex mutex;
  static auto& opened = *new std::map<std::string, Nvrtc>;
  const std::lock_guard lock(mutex);
  const auto found = opened.find(path);
  if (found != opened.end()) return found->second;
  DynamicLibrary library = DynamicLibrary::open(path);
  if (!library) {
    throw Error(ErrorCode::compiler, fmt::format("cannot open NVRTC: {}", library.reason()),
                "it was moved or removed meanwhile; try again");
  }
  return opened.emplace(path, Nvrtc(std::move(library))).first->second;
}

Nvrtc Nvrtc::find() {
  std::vector<std::string> refused;
  for (const std::string& path : candidates()) {
    DynamicLibrary library = DynamicLibrary::open(path);
    if (!library) {
      refused.push_back(fmt::format("{}: {}", path, library.reason()));
      continue;
    }
    try {
      return Nvrtc(std::move(library));
    } catch (const Error& error) {
      refused.push_back(fmt::format("{}: {}", path, error.message()));
    }
  }
  std::string looked;
  for (const std::string& line : refused) looked += (looked.empty() ? "" : "\n") + line;
  throw Error({.code = ErrorCode::compiler,
               .message = "NVRTC, CUDA's run-time compiler, was not found",
               .place = std::nullopt,
               .notes = {"looked for:\n" + looked},
               .hint =
                   "install it (pip install nvidia-cuda-nvrtc, or the CUDA toolkit), or name the "
                   "library in TILEWRIGHT_NVRTC"});
}

Nvrtc::Nvrtc(DynamicLibrary library) : library_(std::move(library)) {
  const auto load = [&](auto& function, const char* name) {
    function =
        library_.function<std::remove_pointer_t<std::remove_reference_t<decltype(function)>>>(name);
    if (function) return;
    throw Error(ErrorCode::compiler, fmt::format("{} has no function {}", library_.path(), name),
                "it is no NVRTC, or one older than CUDA 12");
  };
  load(functions_.version, "nvrtcVersion");
  load(functions_.num_architectures, "nvrtcGetNumSupportedArchs");
  load(functions_.architectures, "nvrtcGetSupportedArchs");
  load(functions_.create, "nvrtcCreateProgram");
  load(functions_.destroy, "nvrtcDestroyProgram");
  load(functions_.compile, "nvrtcCompileProgram");
  load(functions_.cubin_size, "nvrtcGetCUBINSize");
  load(functions_.cubin, "nvrtcGetCUBIN");
  load(functions_.log_size, "nvrtcGetProgramLogSize");
  load(functions_.log, "nvrtcGetProgramLog");
  load(functions_.error_text, "nvrtcGetErrorString");

  check(functions_.version(&facts_.major, &facts_.minor), "asking for its version");
  if (major() < kOldestMajor) {
    throw Error(ErrorCode::compiler,
                fmt::format("{} is NVRTC {}.{}; {} is the oldest that is supported",
                            library_.path(), major(), minor(), kOldestMajor));
  }
  int count = 0;
  check(functions_.num_architectures(&count), "asking for its targets");
  facts_.architectures.resize(static_cast<size_t>(count));
  check(functions_.architectures(facts_.architectures.data()), "asking for its targets");
  const fs::path file = file_of(reinterpret_cast<const void*>(functions_.version));
  facts_.path = file.empty() ? library_.path() : file.string();
  // NVRTC opens its builtins at the first compile, by their bare name. A wheel's folder, or a
  // toolkit's, need not be in the loader's path, but what is open already is found.
  DynamicLibrary::open(builtins_of(facts_).string());
  facts_.identity = identity_of(facts_);
}

std::string Nvrtc::identity_of(const NvrtcFacts& facts) {
  return fmt::format("nvrtc {}.{}, {}, builtins {}", facts.major, facts.minor,
                     file_identity(facts.path), file_identity(builtins_of(facts)));
}

void Nvrtc::check(int result, std::string_view what) const {
  if (result == kSuccess) return;
  throw Error(ErrorCode::compiler,
              fmt::format("NVRTC failed while {}: {}", what, functions_.error_text(result)),
              fmt::format("the library is {}", library_.path()));
}

std::string Nvrtc::program_log(Program program) const {
  std::size_t size = 0;
  check(functions_.log_size(program, &size), "reading its log");
  std::string log(size, '\0');
  check(functions_.log(program, log.data()), "reading its log");
  while (!log.empty() && log.back() == '\0') log.pop_back();
  return log;
}

Nvrtc::Result Nvrtc::compile(const std::string& source, std::string_view target,
                             const std::vector<std::string>& options) const {
  const DefaultFloatEnvironment floats;  // NVRTC folds constants in this thread
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::string> all = {fmt::format("--gpu-architecture={}", target)};
  all.insert(all.end(), options.begin(), options.end());
  // NVRTC's own cache in the home directory would answer in place of the compiler: what is kept,
  // and where, is for our cache to say.
  if (major() >= 13) all.emplace_back("--no-cache");
  // What stands in the working directory must not be included, whatever a source says.
  if (major() >= 13) all.emplace_back("--no-source-include");
  std::vector<const char*> pointers;
  for (const std::string& option : all) pointers.push_back(option.c_str());

  Program program = nullptr;
  check(functions_.create(&program, source.c_str(), kFileName, 0, nullptr, nullptr),
        "creating a program");
  const auto destroy = [this](Program p) { functions_.destroy(&p); };
  const std::unique_ptr<OpaqueProgram, decltype(destroy)> owner(program, destroy);

  const int status =
      functions_.compile(program, static_cast<int>(pointers.size()), pointers.data());
  Result result;
  result.log = program_log(program);
  result.succeeded = status == kSuccess;
  if (!result.succeeded && status != kCompilationError) {
    throw Error({.code = ErrorCode::compiler,
                 .message = fmt::format("NVRTC failed: {}", functions_.error_text(status)),
                 .place = std::nullopt,
                 .notes = result.log.empty() ? std::vector<std::string>{}
                                             : std::vector<std::string>{result.log},
                 .hint = fmt::format("target {}, NVRTC {}.{} at {}", target, major(), minor(),
                                     library_.path())});
  }
  if (result.succeeded) {
    std::size_t size = 0;
    check(functions_.cubin_size(program, &size), "reading the cubin");
    result.cubin.resize(size);
    check(functions_.cubin(program, reinterpret_cast<char*>(result.cubin.data())),
          "reading the cubin");
  }
  result.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace tilewright::cuda
