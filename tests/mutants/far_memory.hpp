#pragma once

#include <cstddef>

#include "runtime/api/device.hpp"

namespace tilewright::mutants {

/// Memory of the host that a GPU reads and writes across its bus: what copies to and from it is
/// late, by microseconds instead of a fraction of one.
class FarMemory {
 public:
  /// @throws Error with code device
  FarMemory(const Device& device, std::size_t bytes);
  FarMemory(const FarMemory&) = delete;
  FarMemory& operator=(const FarMemory&) = delete;
  ~FarMemory();

  /// For the host and for kernels alike.
  void* data() const { return data_; }

 private:
  int ordinal_ = 0;
  void* data_ = nullptr;
};

}  // namespace tilewright::mutants
