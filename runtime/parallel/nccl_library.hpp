#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "../../base/dynamic_library.hpp"
#include "../api/nccl.hpp"

namespace tilewright::parallel {

using NcclComm = struct ncclComm*;

// NCCL's own types, declared here because building needs no NCCL.
struct NcclIdBytes {
  NcclId bytes;
};

// Its form in NCCL 2.14, which later versions accept.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 1;
};

inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInProgress = 7;
inline constexpr int kNcclBytes = 1;  // ncclUint8

/// The functions of libnccl that are used, under their names without "nccl".
struct NcclFunctions {
  int (*version)(int* version);
  int (*unique_id)(NcclIdBytes* id);
  int (*init_rank)(NcclComm* comm, int size, NcclIdBytes id, int rank, NcclConfig* config);
  int (*destroy)(NcclComm comm);
  int (*abort)(NcclComm comm);
  int (*async_error)(NcclComm comm, int* state);
  int (*count)(NcclComm comm, int* count);
  int (*rank)(NcclComm comm, int* rank);
  int (*send)(const void* data, std::size_t count, int type, int peer, NcclComm comm, void* stream);
  int (*receive)(void* data, std::size_t count, int type, int peer, NcclComm comm, void* stream);
  int (*all_gather)(const void* from, void* to, std::size_t count, int type, NcclComm comm,
                    void* stream);
  int (*group_start)();
  int (*group_end)();
  const char* (*error_string)(int result);
  const char* (*last_error)(NcclComm comm);  // or null
};

/// NCCL, opened at run time.
class NcclLibrary {
 public:
  /// Found once per process.
  /// @throws Error with code device, listing where it looked
  static const NcclLibrary& get();
  /// Where get() looks, in its order.
  static std::vector<std::string> candidates();

  const NcclFunctions& functions() const { return functions_; }
  const std::string& path() const { return library_.path(); }
  int version() const { return version_; }  ///< as 22705 for 2.27.5

  /// "unhandled cuda error: Cuda failure 'out of memory'"
  std::string describe(int result, NcclComm comm) const;
  /// Takes success and "in progress".
  /// @throws Error with code device
  void check(int result, NcclComm comm, std::string_view doing) const;

 private:
  explicit NcclLibrary(DynamicLibrary library);
  static NcclLibrary find();

  DynamicLibrary library_;
  NcclFunctions functions_ = {};
  int version_ = 0;
};

}  // namespace tilewright::parallel
