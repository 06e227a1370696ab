#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "communicator.hpp"
#include "device.hpp"

namespace tilewright {

// Communicators over NCCL. libnccl.so.2 is opened at run time. It is looked for in TILEWRIGHT_NCCL
// (a file or a folder), the loader's path, and the nvidia-nccl Python wheel.

struct NcclOptions {
  /// How long a rank waits for its peers: to start an exchange, and in Communicator::wait for the
  /// work of a stream, kernels included.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  /// Makes communicators whose functions return only when NCCL has enqueued them. A rank whose peer
  /// is gone may then hang inside NCCL. Communicators that are not blocking never do.
  bool blocking = false;
};

/// Names a group of ranks that are about to meet.
using NcclId = std::array<char, 128>;

/// One rank makes it and gives it to the others, for example over MPI or a file.
/// @throws Error with code device where there is no NCCL
NcclId nccl_id();

/// A rank of a group; returns when all its ranks have called it.
/// @param device a GPU, another one for each rank
/// @throws Error with code device where NCCL is missing or fails, or a peer does not come
std::shared_ptr<Communicator> nccl_rank(const NcclId& id, int rank, int size, const Device& device,
                                        const NcclOptions& options = {});

/// All ranks of a group in this process: rank i on the i-th device.
/// @throws Error as nccl_rank
std::vector<std::shared_ptr<Communicator>> nccl_group(std::span<const Device> devices,
                                                      const NcclOptions& options = {});

/// Over the caller's ncclComm_t, which outlives what is returned. An Error with code device from it
/// aborts the ncclComm_t (ncclCommAbort): the caller then neither uses nor destroys it. One that
/// was made with config.blocking = 0 cannot hang inside NCCL.
std::shared_ptr<Communicator> nccl_communicator(void* nccl_comm, const Device& device,
                                                const NcclOptions& options = {});

/// "NCCL 2.27.5 (/usr/lib/.../libnccl.so.2)".
/// @throws Error with code device where there is none
std::string nccl_version();

}  // namespace tilewright
