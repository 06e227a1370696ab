#include "runtime/parallel/transfer_lane.hpp"

#include <array>
#include <cstddef>
#include <cstring>

#include "base/error.hpp"
#include "runtime/cuda/context.hpp"
#include "runtime/cuda/driver.hpp"

namespace tilewright::parallel {
namespace {

constexpr unsigned kLaneNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
constexpr unsigned kDisableTiming = 2;    // CU_EVENT_DISABLE_TIMING

class CudaLane final : public TransferLane {
 public:
  explicit CudaLane(int ordinal) : driver_(cuda::Driver::get()), ordinal_(ordinal) {
    const cuda::ContextScope scope(driver_, ordinal);
    const cuda::DriverFunctions& f = driver_.functions();
    if (!f.stream_create || !f.stream_destroy || !f.stream_wait || !f.copy_pitched) {
      throw Error(ErrorCode::device, "the NVIDIA driver has no functions for streams",
                  "install a newer driver");
    }
    context_id_ = scope.id();
    context_ = scope.context();
    int least = 0;
    int greatest = 0;
    if (f.stream_priorities) f.stream_priorities(&least, &greatest);
    driver_.check(f.stream_create(&stream_, kLaneNonBlocking, greatest), "making a stream");
    for (cuda::EventHandle& event : events_) {
      driver_.check(f.event_create(&event, kDisableTiming), "making an event");
    }
  }

  ~CudaLane() override {
    const cuda::ReleaseScope scope(driver_, context_, context_id_);
    if (!scope) return;
    const cuda::DriverFunctions& f = driver_.functions();
    for (cuda::EventHandle event : events_) {
      if (event) f.event_destroy(event);
    }
    if (stream_) f.stream_destroy(stream_);
  }

  Stream stream() const override { return stream_; }

  void follow(Stream compute) override {
    const cuda::ContextScope scope(driver_, ordinal_);
    require_same_context(scope);
    record(kFollow, static_cast<cuda::Stream>(compute));
    wait(kFollow, stream_);
  }

  void mark(int turn) override {
    const cuda::ContextScope scope(driver_, ordinal_);
    record(turn, stream_);
  }

  void join(Stream compute, int turn) override {
    const cuda::ContextScope scope(driver_, ordinal_);
    wait(turn, static_cast<cuda::Stream>(compute));
  }

  void copy(const PitchedCopy& copy, Stream stream) override {
    const cuda::ContextScope scope(driver_, ordinal_);
    const cuda::PitchedCopyArguments arguments = {
        .from = cuda::device_pointer(copy.from),
        .from_pitch = static_cast<std::size_t>(copy.from_pitch),
        .to = cuda::device_pointer(copy.to),
        .to_pitch = static_cast<std::size_t>(copy.to_pitch),
        .width = static_cast<std::size_t>(copy.width),
        .height = static_cast<std::size_t>(copy.height)};
    driver_.check(driver_.functions().copy_pitched(&arguments, static_cast<cuda::Stream>(stream)),
                  "copying on the GPU");
  }

 private:
  static constexpr int kFollow = 2;

  void require_same_context(const cuda::ContextScope& scope) const {
    if (scope.id() == context_id_) return;
    throw Error(ErrorCode::usage, "the plan was made in another CUDA context",
                "make the plan and the calls with the same context current");
  }

  void record(int event, cuda::Stream stream) {
    driver_.check(
        driver_.functions().event_record(events_[static_cast<std::size_t>(event)], stream),
        "recording an event");
  }

  void wait(int event, cuda::Stream stream) {
    driver_.check(
        driver_.functions().stream_wait(stream, events_[static_cast<std::size_t>(event)], 0),
        "ordering two streams");
  }

  const cuda::Driver& driver_;
  int ordinal_;
  cuda::Context context_ = nullptr;
  std::uint64_t context_id_ = 0;
  cuda::Stream stream_ = nullptr;
  std::array<cuda::EventHandle, 3> events_ = {};
};

}  // namespace

std::unique_ptr<TransferLane> TransferLane::make(const Device& device) {
  if (device.kind() == Device::Kind::cuda) return std::make_unique<CudaLane>(device.index());
  return std::make_unique<TransferLane>();
}

void TransferLane::follow(Stream) {}

void TransferLane::mark(int) {}

void TransferLane::join(Stream, int) {}

void TransferLane::copy(const PitchedCopy& copy, Stream) {
  for (std::int64_t row = 0; row < copy.height; ++row) {
    std::memcpy(static_cast<std::byte*>(copy.to) + row * copy.to_pitch,
                static_cast<const std::byte*>(copy.from) + row * copy.from_pitch,
                static_cast<std::size_t>(copy.width));
  }
}

}  // namespace tilewright::parallel
