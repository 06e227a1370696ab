#include "runtime/parallel/nccl_communicator.hpp"

#include <thread>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/cuda/context.hpp"

namespace tilewright::parallel {
namespace {

constexpr int kNotReady = 600;             // CUDA_ERROR_NOT_READY
constexpr unsigned kSetupStreamFlags = 1;  // CU_STREAM_NON_BLOCKING

// Device memory for what is done before calls.
class SetupMemory {
 public:
  SetupMemory(const cuda::Driver& driver, std::size_t bytes) : driver_(driver) {
    driver.check(driver.functions().allocate(&pointer_, bytes), "allocating memory for NCCL");
  }
  ~SetupMemory() { driver_.functions().free(pointer_); }
  SetupMemory(const SetupMemory&) = delete;
  SetupMemory& operator=(const SetupMemory&) = delete;

  std::byte* at(std::size_t offset) const {
    return reinterpret_cast<std::byte*>(pointer_) + offset;  // NOLINT(performance-no-int-to-ptr)
  }

 private:
  const cuda::Driver& driver_;
  cuda::DevicePointer pointer_ = 0;
};

}  // namespace

NcclCommunicator::NcclCommunicator(NcclComm comm, NcclOwner owner, const Device& device,
                                   const NcclOptions& options)
    : nccl_(NcclLibrary::get()),
      driver_(cuda::Driver::get()),
      comm_(comm),
      owner_(owner),
      device_(device),
      options_(options) {
  const cuda::ContextScope scope(driver_, device_.index());
  wait_until_enqueued("meeting the other ranks");
  nccl_.check(nccl_.functions().rank(comm_, &rank_), comm_, "asking for the rank");
  nccl_.check(nccl_.functions().count(comm_, &size_), comm_, "counting ranks");
  if (!driver_.functions().stream_create || !driver_.functions().stream_query) {
    throw Error(ErrorCode::device, "the NVIDIA driver has no functions for streams",
                "install a newer driver");
  }
  driver_.check(driver_.functions().stream_create(&setup_, kSetupStreamFlags, 0),
                "making a stream");
}

NcclCommunicator::~NcclCommunicator() {
  try {
    const cuda::ContextScope scope(driver_, device_.index());
    if (setup_) driver_.functions().stream_destroy(setup_);
    if (comm_ && owner_ == NcclOwner::library) nccl_.functions().destroy(comm_);
  } catch (const Error&) {
    return;  // the context is gone, and what belonged to it with it
  }
}

void NcclCommunicator::require_usable() const {
  if (comm_) return;
  throw Error(ErrorCode::device, "the communicator was aborted after an error",
              "make a new group of the ranks that are left");
}

int NcclCommunicator::state() const {
  int state = kNcclSuccess;
  const int result = nccl_.functions().async_error(comm_, &state);
  return result == kNcclSuccess ? state : result;
}

void NcclCommunicator::fail(std::string_view doing, int state) {
  const std::string why =
      state == kNcclSuccess || state == kNcclInProgress
          ? fmt::format("not done after {} ms, so a peer is gone or late", options_.timeout.count())
          : nccl_.describe(state, comm_);
  nccl_.functions().abort(comm_);  // ends kernels that wait for a peer
  comm_ = nullptr;
  throw Error(ErrorCode::device, fmt::format("NCCL stopped while {}: {}", doing, why),
              "make a new group of the ranks that are left, or give a longer "
              "NcclOptions::timeout");
}

void NcclCommunicator::wait_until_enqueued(std::string_view doing) {
  const Deadline end = deadline();
  for (int now = state(); now != kNcclSuccess; now = state()) {
    if (now != kNcclInProgress || std::chrono::steady_clock::now() > end) fail(doing, now);
    std::this_thread::yield();
  }
}

void NcclCommunicator::wait_for_stream(cuda::Stream stream, std::string_view doing) {
  const Deadline end = deadline();
  for (int found = driver_.functions().stream_query(stream); found != 0;
       found = driver_.functions().stream_query(stream)) {
    if (found != kNotReady) driver_.check(found, doing);
    const int now = state();
    const bool failed = now != kNcclSuccess && now != kNcclInProgress;
    if (failed || std::chrono::steady_clock::now() > end) fail(doing, now);
    std::this_thread::yield();
  }
}

void NcclCommunicator::run_group(std::span<const Message> sends, std::span<const Message> receives,
                                 Stream stream) {
  if (sends.empty() && receives.empty()) return;
  const NcclFunctions& f = nccl_.functions();
  nccl_.check(f.group_start(), comm_, "starting an exchange");
  int result = kNcclSuccess;
  const auto note = [&](int given) {
    if (result == kNcclSuccess && given != kNcclInProgress) result = given;
  };
  for (const Message& message : sends) {
    note(f.send(message.data, static_cast<std::size_t>(message.bytes), kNcclBytes, message.peer,
                comm_, stream));
  }
  for (const Message& message : receives) {
    note(f.receive(message.data, static_cast<std::size_t>(message.bytes), kNcclBytes, message.peer,
                   comm_, stream));
  }
  note(f.group_end());
  if (result != kNcclSuccess) fail("starting an exchange", result);
  wait_until_enqueued("starting an exchange");
}

std::vector<std::byte> NcclCommunicator::all_gather(std::span<const std::byte> mine) {
  require_usable();
  const std::size_t bytes = mine.size();
  std::vector<std::byte> all(bytes * static_cast<std::size_t>(size_));
  if (bytes == 0) return all;
  const cuda::ContextScope scope(driver_, device_.index());
  const SetupMemory memory(driver_, bytes + all.size());
  const cuda::DriverFunctions& f = driver_.functions();
  driver_.check(f.copy_to_device(cuda::device_pointer(memory.at(0)), mine.data(), bytes, setup_),
                "copying to the GPU");
  const int result = nccl_.functions().all_gather(memory.at(0), memory.at(bytes), bytes, kNcclBytes,
                                                  comm_, setup_);
  if (result != kNcclSuccess && result != kNcclInProgress) fail("gathering from all ranks", result);
  wait_until_enqueued("gathering from all ranks");
  wait_for_stream(setup_, "gathering from all ranks");
  driver_.check(
      f.copy_to_host(all.data(), cuda::device_pointer(memory.at(bytes)), all.size(), setup_),
      "copying from the GPU");
  driver_.check(f.stream_synchronize(setup_), "copying from the GPU");
  return all;
}

void NcclCommunicator::connect(std::span<const int> send_to, std::span<const int> receive_from) {
  require_usable();
  constexpr std::size_t kBytes = 256;
  const cuda::ContextScope scope(driver_, device_.index());
  const SetupMemory memory(driver_, kBytes * (1 + receive_from.size()));
  std::vector<Message> sends;
  std::vector<Message> receives;
  for (const int peer : send_to) sends.push_back({peer, memory.at(0), kBytes});
  for (const int peer : receive_from) {
    receives.push_back({peer, memory.at(kBytes * (1 + receives.size())), kBytes});
  }
  run_group(sends, receives, setup_);
  wait_for_stream(setup_, "connecting to the other ranks");
}

void NcclCommunicator::exchange(std::span<const Message> sends, std::span<const Message> receives,
                                Stream stream) {
  require_usable();
  const cuda::ContextScope scope(driver_, device_.index());
  run_group(sends, receives, stream);
}

void NcclCommunicator::wait(Stream stream) {
  require_usable();
  const cuda::ContextScope scope(driver_, device_.index());
  wait_for_stream(static_cast<cuda::Stream>(stream), "waiting for a stream");
}

}  // namespace tilewright::parallel
