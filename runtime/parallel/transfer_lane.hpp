#pragma once

#include <cstdint>
#include <memory>

#include "../api/device.hpp"
#include "../api/stream.hpp"

namespace tilewright::parallel {

/// Bytes of a matrix, by rows, that are copied on one device.
struct PitchedCopy {
  void* to;
  std::int64_t to_pitch;  ///< bytes from row to row
  const void* from;
  std::int64_t from_pitch;
  std::int64_t width;  ///< bytes of a row
  std::int64_t height;
};

/// Where exchanges run in parallel with the kernels of a call. This class serves a CPU, whose
/// exchanges are done when they return.
class TransferLane {
 public:
  /// On a GPU a stream of the highest priority in the calling thread's context: an exchange then
  /// starts before the blocks of a kernel that waits at the same time.
  static std::unique_ptr<TransferLane> make(const Device& device);

  TransferLane() = default;
  TransferLane(const TransferLane&) = delete;
  TransferLane& operator=(const TransferLane&) = delete;
  virtual ~TransferLane() = default;

  virtual Stream stream() const { return nullptr; }
  /// Exchanges that come later wait for the work that `compute` has now.
  virtual void follow(Stream compute);
  /// Marks the exchanges so far.
  /// @param turn 0 or 1
  virtual void mark(int turn);
  /// Kernels that come later in `compute` wait for what was marked last with this turn.
  virtual void join(Stream compute, int turn);
  /// Copies on the device, in the stream's order.
  virtual void copy(const PitchedCopy& copy, Stream stream);
};

}  // namespace tilewright::parallel
