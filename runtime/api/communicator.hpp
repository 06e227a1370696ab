#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stream.hpp"

namespace tilewright {

/// Contiguous bytes that this rank sends to a peer, or receives from it.
struct Message {
  int peer = 0;
  void* data = nullptr;  ///< on the device of the ranks; a send only reads it
  std::int64_t bytes = 0;
};

/// A group of ranks that exchange tensors. NCCL fills it (nccl.hpp); a program with other means
/// derives a class. Each rank has an object, which one thread at a time uses. All ranks make the
/// same calls in the same order. Where a peer is gone, each function ends with an Error of code
/// device within a time-out that the implementation sets.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  ///< from 0 to size() - 1
  virtual int size() const = 0;  ///< ranks of the group, at least 1

  /// Waits for what each rank gives: host memory, the same number of bytes from each.
  /// @return the bytes of rank 0, of rank 1, ...
  virtual std::vector<std::byte> all_gather(std::span<const std::byte> mine) = 0;

  /// Makes connections to the peers that later exchanges name, so that those allocate nothing.
  /// Each rank calls it, also with empty lists.
  virtual void connect(std::span<const int> send_to, std::span<const int> receive_from);

  /// Sends and receives as one group. Messages between two ranks meet in the order in which both
  /// list them. On a GPU it works in the stream's order; on a CPU it returns with the bytes
  /// received, and the sent memory may change.
  virtual void exchange(std::span<const Message> sends, std::span<const Message> receives,
                        Stream stream) = 0;

  /// Waits for the work of a stream that contains exchanges; does nothing on a CPU. A plain wait
  /// for the stream would last for ever where a peer is gone.
  virtual void wait(Stream stream);
};

}  // namespace tilewright
