#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "../../base/dynamic_library.hpp"

namespace tilewright::cuda {

/// What ptxas says of one kernel.
struct KernelResources {
  std::string entry;    ///< the kernel's name
  int registers = 0;    ///< of a thread
  int spill_bytes = 0;  ///< stored plus loaded, of a thread
  int stack_bytes = 0;  ///< of a thread
  int static_shared_bytes = 0;
};

/// Reads the verbose log of ptxas.
std::vector<KernelResources> parse_ptxas_log(std::string_view log);

/// Warnings of ptxas that cost speed silently: C7508 and C7510 to C7515 (setmaxnreg ignored, wgmma
/// serialised). Their lines.
std::vector<std::string> performance_warnings(std::string_view log);

/// Which NVRTC there is.
struct NvrtcFacts {
  std::string path;  ///< of the library's file
  int major = 0;
  int minor = 0;
  std::vector<int> architectures;  ///< real ones that it compiles for, as numbers: 80, 90, 120
  /// Changes whenever the same source and options could give other bytes: the version, and size and
  /// time of the files of the library and of its builtins.
  std::string identity;

  bool operator==(const NvrtcFacts&) const = default;
};

/// NVIDIA's run-time compiler, opened at run time.
class Nvrtc {
 public:
  struct Result {
    bool succeeded = false;        ///< false: the source is wrong, and the log says where
    std::vector<std::byte> cubin;  ///< empty where it did not succeed
    std::string log;               ///< messages read "kernel.cu(12): error: ..."
    double milliseconds = 0;
  };

  /// Looks in TILEWRIGHT_NVRTC (a file or a folder), the loader's path, /usr/local/cuda*, and the
  /// nvidia-cuda-nvrtc Python wheel. Found once per process.
  /// @throws Error with code compiler, listing where it looked
  static const Nvrtc& get();
  /// The one in a given file. Each file is opened once per process.
  /// @throws Error with code compiler where it is none that can be used
  static const Nvrtc& at(const std::string& path);
  /// The identity that facts.path would have if it was opened now.
  static std::string identity_of(const NvrtcFacts& facts);
  /// Where get() looks, in its order.
  static std::vector<std::string> candidates();

  const NvrtcFacts& facts() const { return facts_; }
  const std::string& path() const { return facts_.path; }
  int major() const { return facts_.major; }
  int minor() const { return facts_.minor; }
  const std::vector<int>& architectures() const { return facts_.architectures; }
  const std::string& identity() const { return facts_.identity; }

  /// Compiles one translation unit for one target ("sm_90a"). May be called from many threads.
  /// @throws Error with code compiler where NVRTC itself fails, not the source
  Result compile(const std::string& source, std::string_view target,
                 const std::vector<std::string>& options) const;

 private:
  explicit Nvrtc(DynamicLibrary library);
  static Nvrtc find();

  using Program = struct OpaqueProgram*;
  struct Functions {
    int (*version)(int*, int*);
    int (*num_architectures)(int*);
    int (*architectures)(int*);
    int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
    int (*destroy)(Program*);
    int (*compile)(Program, int, const char* const*);
    int (*cubin_size)(Program, std::size_t*);
    int (*cubin)(Program, char*);
    int (*log_size)(Program, std::size_t*);
    int (*log)(Program, char*);
    const char* (*error_text)(int);
  };
  void check(int result, std::string_view what) const;
  std::string program_log(Program program) const;

  DynamicLibrary library_;
  Functions functions_ = {};
  NvrtcFacts facts_;
};

}  // namespace tilewright::cuda
