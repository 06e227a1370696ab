#include "runtime/api/nccl.hpp"

#include <exception>
#include <thread>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/cuda/context.hpp"
#include "runtime/parallel/nccl_communicator.hpp"

namespace tilewright {
namespace {

using parallel::NcclComm;
using parallel::NcclCommunicator;
using parallel::NcclLibrary;
using parallel::NcclOwner;

void require_gpu(const Device& device) {
  if (device.kind() == Device::Kind::cuda) return;
  throw Error(ErrorCode::usage, "NCCL was given the CPU", "give each rank a GPU: \"cuda:N\"");
}

}  // namespace

NcclId nccl_id() {
  const NcclLibrary& nccl = NcclLibrary::get();
  parallel::NcclIdBytes id = {};
  nccl.check(nccl.functions().unique_id(&id), nullptr, "naming a group");
  return id.bytes;
}

std::shared_ptr<Communicator> nccl_rank(const NcclId& id, int rank, int size, const Device& device,
                                        const NcclOptions& options) {
  require_gpu(device);
  if (size < 1 || rank < 0 || rank >= size) {
    throw Error(ErrorCode::usage, fmt::format("rank {} of a group of {}", rank, size),
                "ranks are from 0 to size - 1");
  }
  const NcclLibrary& nccl = NcclLibrary::get();
  const cuda::ContextScope scope(cuda::Driver::get(), device.index());
  NcclComm comm = nullptr;
  parallel::NcclConfig config;
  config.blocking = options.blocking ? 1 : 0;
  nccl.check(nccl.functions().init_rank(&comm, size, {id}, rank, &config), nullptr,
             "making a communicator");
  return std::make_shared<NcclCommunicator>(comm, NcclOwner::library, device, options);
}

std::vector<std::shared_ptr<Communicator>> nccl_group(std::span<const Device> devices,
                                                      const NcclOptions& options) {
  const NcclId id = nccl_id();
  std::vector<std::shared_ptr<Communicator>> ranks(devices.size());
  std::vector<std::exception_ptr> errors(devices.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        ranks[i] = nccl_rank(id, static_cast<int>(i), static_cast<int>(devices.size()), devices[i],
                             options);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return ranks;
}

std::shared_ptr<Communicator> nccl_communicator(void* nccl_comm, const Device& device,
                                                const NcclOptions& options) {
  require_gpu(device);
  if (!nccl_comm) throw Error(ErrorCode::usage, "the ncclComm_t is null", "make it first");
  return std::make_shared<NcclCommunicator>(static_cast<NcclComm>(nccl_comm), NcclOwner::caller,
                                            device, options);
}

std::string nccl_version() {
  const NcclLibrary& nccl = NcclLibrary::get();
  return fmt::format("NCCL {}.{}.{} ({})", nccl.version() / 10000, nccl.version() / 100 % 100,
                     nccl.version() % 100, nccl.path());
}

}  // namespace tilewright
