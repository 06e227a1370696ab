#pragma once

#include <chrono>
#include <string_view>

#include "../cuda/driver.hpp"
#include "nccl_library.hpp"

namespace tilewright::parallel {

/// Whether a communicator destroys its ncclComm_t.
enum class NcclOwner { library, caller };

/// One rank of NCCL.
class NcclCommunicator final : public Communicator {
 public:
  /// @param comm ready, or being made where it is not blocking
  NcclCommunicator(NcclComm comm, NcclOwner owner, const Device& device,
                   const NcclOptions& options);
  ~NcclCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<std::byte> all_gather(std::span<const std::byte> mine) override;
  void connect(std::span<const int> send_to, std::span<const int> receive_from) override;
  void exchange(std::span<const Message> sends, std::span<const Message> receives,
                Stream stream) override;
  void wait(Stream stream) override;

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  Deadline deadline() const { return std::chrono::steady_clock::now() + options_.timeout; }

  void require_usable() const;
  int state() const;
  void run_group(std::span<const Message> sends, std::span<const Message> receives, Stream stream);
  // Until NCCL has enqueued what it was given.
  void wait_until_enqueued(std::string_view doing);
  void wait_for_stream(cuda::Stream stream, std::string_view doing);
  [[noreturn]] void fail(std::string_view doing, int state);

  const NcclLibrary& nccl_;
  const cuda::Driver& driver_;
  NcclComm comm_;
  NcclOwner owner_;
  Device device_;
  NcclOptions options_;
  cuda::Stream setup_ = nullptr;  // for what is done before calls
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace tilewright::parallel
