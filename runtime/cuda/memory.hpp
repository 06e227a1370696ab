#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "context.hpp"

namespace tilewright::cuda {

/// Device memory that is taken in a stream's order where the driver can, else at once: so while its
/// memory pool is being made (memory_pool.hpp), for which a first block mask does not wait.
///
/// Needs the context to be current when it is made.
class StreamMemory {
 public:
  /// Who gives the memory back, and when.
  enum class Release {
    in_order,   ///< the destructor, in the stream's order, with the context current
    when_idle,  ///< the destructor, when the context has nothing left to do, from any thread
  };

  StreamMemory(const Driver& driver, const ContextScope& scope, std::size_t bytes, Stream stream,
               Release release);
  ~StreamMemory();
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;

  DevicePointer pointer() const { return pointer_; }

 private:
  const Driver& driver_;
  Context context_;
  std::uint64_t context_id_;
  Stream stream_;
  Release release_;
  DevicePointer pointer_ = 0;
  bool is_ordered_ = false;
};

}  // namespace tilewright::cuda
