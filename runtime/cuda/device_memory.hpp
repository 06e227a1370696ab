#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "../api/device.hpp"
#include "../api/tensor.hpp"

namespace tilewright::cuda {

/// Memory of a GPU, for tests, tools and examples: every function waits until it is done. Works in
/// the calling thread's current CUDA context, else in the GPU's primary one.
class DeviceMemory {
 public:
  /// Nothing.
  DeviceMemory() = default;
  /// @throws Error with code memory or device
  DeviceMemory(const Device& device, std::size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  /// Writes `count` bytes from the host, from byte `offset` on.
  /// @throws Error with code internal outside the memory, with code device
  void copy_from(const void* host, std::size_t count, std::size_t offset = 0);
  /// Reads `count` bytes from byte `offset` on, when the GPU is done with everything before.
  void copy_to(void* host, std::size_t count, std::size_t offset = 0) const;
  /// Fills all of it with one byte: 0xff is NaN in every floating dtype.
  void fill(unsigned char value);

 private:
  void require_inside(std::size_t count, std::size_t offset) const;

  int ordinal_ = 0;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Waits until the GPU has nothing left to do in the current context, else the primary one.
/// @throws Error with code device: also what went wrong in a kernel
void synchronize(const Device& device);

/// A host tensor's copy in a GPU's memory, with the same strides, the same distance from a multiple
/// of 64 bytes, and the same bytes in the gaps between its rows.
class DeviceTensor {
 public:
  /// @param margin bytes before and after the tensor; with `copies_margin` the host's are copied,
  ///        which must be there, else they are 0xff
  DeviceTensor(const Device& device, const TensorView& host, std::size_t margin = 0,
               bool copies_margin = false);

  /// The same tensor; its data are a device pointer.
  const TensorView& view() const { return view_; }

  /// Writes the copy, its gaps and copied margins, back to where it came from.
  void copy_back() const;

  /// The first byte, counted from the tensor's first element, that is no longer what the host holds
  /// or, in margins of 0xff, what they were filled with. Nothing where all are.
  std::optional<std::ptrdiff_t> first_change() const;

 private:
  DeviceMemory memory_;
  TensorView view_;
  char* host_ = nullptr;         // of the first byte that was copied
  std::size_t host_bytes_ = 0;   // that were copied
  std::size_t host_offset_ = 0;  // where they begin in memory_
  std::size_t data_offset_ = 0;  // where the tensor's first element is
};

}  // namespace tilewright::cuda
