#include "runtime/parallel/nccl_library.hpp"

#include <cstdlib>
#include <filesystem>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "runtime/cuda/python_packages.hpp"

namespace tilewright::parallel {
namespace {

constexpr const char* kNcclFile = "libnccl.so.2";
constexpr int kOldestVersion = 21400;  // of ncclCommInitRankConfig

}  // namespace

std::vector<std::string> NcclLibrary::candidates() {
  if (const char* given = std::getenv("TILEWRIGHT_NCCL"); given && *given) {
    // What the user names is taken or refused, never passed over.
    if (!std::filesystem::is_directory(given)) return {given};
    return {(std::filesystem::path(given) / kNcclFile).string()};
  }
  std::vector<std::string> paths = {kNcclFile};
  for (const std::filesystem::path& packages : cuda::python_packages()) {
    for (const char* folder : {"nvidia/nccl/lib", "nvidia/cu13/lib"}) {
      const std::filesystem::path path = packages / folder / kNcclFile;
      std::error_code error;
      if (std::filesystem::exists(path, error)) paths.push_back(path.string());
    }
  }
  return paths;
}

const NcclLibrary& NcclLibrary::get() {
  static const NcclLibrary& library = *new NcclLibrary(find());
  return library;
}

NcclLibrary NcclLibrary::find() {
  std::vector<std::string> reasons;
  for (const std::string& path : candidates()) {
    DynamicLibrary library = DynamicLibrary::open(path);
    if (library) return NcclLibrary(std::move(library));
    reasons.push_back(fmt::format("{}: {}", path, library.reason()));
  }
  throw Error({.code = ErrorCode::device,
               .message = "NCCL was not found",
               .place = {},
               .notes = std::move(reasons),
               .hint = "install NCCL or the nvidia-nccl wheel, or set TILEWRIGHT_NCCL to "
                       "libnccl.so.2 or its folder"});
}

NcclLibrary::NcclLibrary(DynamicLibrary library) : library_(std::move(library)) {
  const auto find = [&](auto& function, const char* name) {
    using Type = std::remove_pointer_t<std::remove_reference_t<decltype(function)>>;
    function = library_.function<Type>(name);
    return function != nullptr;
  };
  const auto load = [&](auto& function, const char* name) {
    if (find(function, name)) return;
    throw Error(ErrorCode::device, fmt::format("{} has no function {}", path(), name),
                "NCCL 2.14 is the oldest that is supported");
  };
  load(functions_.version, "ncclGetVersion");
  load(functions_.unique_id, "ncclGetUniqueId");
  load(functions_.init_rank, "ncclCommInitRankConfig");
  load(functions_.destroy, "ncclCommDestroy");
  load(functions_.abort, "ncclCommAbort");
  load(functions_.async_error, "ncclCommGetAsyncError");
  load(functions_.count, "ncclCommCount");
  load(functions_.rank, "ncclCommUserRank");
  load(functions_.send, "ncclSend");
  load(functions_.receive, "ncclRecv");
  load(functions_.all_gather, "ncclAllGather");
  load(functions_.group_start, "ncclGroupStart");
  load(functions_.group_end, "ncclGroupEnd");
  load(functions_.error_string, "ncclGetErrorString");
  find(functions_.last_error, "ncclGetLastError");
  check(functions_.version(&version_), nullptr, "asking for its version");
  if (version_ >= kOldestVersion) return;
  throw Error(ErrorCode::device, fmt::format("{} is NCCL {}", path(), version_),
              "NCCL 2.14 is the oldest that is supported");
}

std::string NcclLibrary::describe(int result, NcclComm comm) const {
  const char* const text = functions_.error_string(result);
  const char* const more = functions_.last_error ? functions_.last_error(comm) : nullptr;
  const std::string first = text ? text : fmt::format("error {}", result);
  return more && *more ? fmt::format("{}: {}", first, more) : first;
}

void NcclLibrary::check(int result, NcclComm comm, std::string_view doing) const {
  if (result == kNcclSuccess || result == kNcclInProgress) return;
  throw Error(ErrorCode::device,
              fmt::format("NCCL failed while {}: {}", doing, describe(result, comm)),
              "NCCL_DEBUG=WARN prints what NCCL knows");
}

}  // namespace tilewright::parallel
