#include "runtime/cuda/device_memory.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/activity.hpp"
#include "base/error.hpp"
#include "runtime/cuda/context.hpp"

namespace tilewright::cuda {
namespace {

constexpr std::size_t kGuardAlignment = 64;
constexpr unsigned char kFilling = 0xff;
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;

DevicePointer pointer_of(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data);
}

// Bytes from a tensor's first element to the end of its last one.
std::size_t bytes_spanned(const TensorView& view) {
  std::int64_t last = 0;
  for (int i = 0; i < view.rank; ++i) {
    if (view.shape[i] < 1) return 0;
    last += (view.shape[i] - 1) * view.strides[i];
  }
  return static_cast<std::size_t>(last + 1) * size_of(view.dtype);
}

}  // namespace

DeviceMemory::DeviceMemory(const Device& device, std::size_t bytes)
    : ordinal_(device.index()), bytes_(bytes) {
  const Driver& driver = Driver::get();
  const ContextScope scope(driver, ordinal_);
  DevicePointer pointer = 0;
  driver.check(driver.functions().allocate(&pointer, bytes > 0 ? bytes : 1),
               fmt::format("allocating {} bytes of GPU memory", bytes));
  data_ = reinterpret_cast<void*>(pointer);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : ordinal_(other.ordinal_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(ordinal_, other.ordinal_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (!data_) return;
  try {
    const Driver& driver = Driver::get();
    const ContextScope scope(driver, ordinal_);
    driver.functions().free(pointer_of(data_));
  } catch (const Error&) {
    // The context is gone, and the memory with it.
  }
}

void DeviceMemory::require_inside(std::size_t count, std::size_t offset) const {
  if (offset <= bytes_ && count <= bytes_ - offset) return;
  throw Error(ErrorCode::internal, fmt::format("{} bytes from {} on lie outside GPU memory of {}",
                                               count, offset, bytes_));
}

void DeviceMemory::copy_from(const void* host, std::size_t count, std::size_t offset) {
  require_inside(count, offset);
  if (count == 0) return;
  const Driver& driver = Driver::get();
  const ContextScope scope(driver, ordinal_);
  driver.check(driver.functions().copy_to_device(pointer_of(data_) + offset, host, count, nullptr),
               "copying to the GPU");
  driver.check(driver.functions().context_synchronize(), "copying to the GPU");
}

void DeviceMemory::copy_to(void* host, std::size_t count, std::size_t offset) const {
  require_inside(count, offset);
  if (count == 0) return;
  const Driver& driver = Driver::get();
  const ContextScope scope(driver, ordinal_);
  driver.check(driver.functions().context_synchronize(), "waiting for the GPU");
  driver.check(driver.functions().copy_to_host(host, pointer_of(data_) + offset, count, nullptr),
               "copying from the GPU");
  driver.check(driver.functions().stream_synchronize(nullptr), "copying from the GPU");
}

void DeviceMemory::fill(unsigned char value) {
  if (bytes_ == 0) return;
  const Driver& driver = Driver::get();
  const ContextScope scope(driver, ordinal_);
  driver.check(driver.functions().fill_bytes(pointer_of(data_), value, bytes_, nullptr),
               "filling GPU memory");
  driver.check(driver.functions().context_synchronize(), "filling GPU memory");
}

void synchronize(const Device& device) {
  const Driver& driver = Driver::get();
  const ContextScope scope(driver, device.index());
  const Activity activity("waits for the GPU, in cuCtxSynchronize");
  driver.check(driver.functions().context_synchronize(), "running kernels");
}

DeviceTensor::DeviceTensor(const Device& device, const TensorView& host, std::size_t margin,
                           bool copies_margin)
    : view_(host) {
  margin = (margin + kGuardAlignment - 1) / kGuardAlignment * kGuardAlignment;
  const std::size_t span = bytes_spanned(host);
  data_offset_ = margin + reinterpret_cast<std::uintptr_t>(host.data) % kGuardAlignment;
  memory_ = DeviceMemory(device, data_offset_ + span + margin);
  const std::size_t copied_margin = copies_margin ? margin : 0;
  host_ = static_cast<char*>(host.data) - copied_margin;
  host_bytes_ = span + 2 * copied_margin;
  host_offset_ = data_offset_ - copied_margin;
  memory_.fill(kFilling);
  memory_.copy_from(host_, host_bytes_, host_offset_);
  view_.data = static_cast<char*>(memory_.data()) + data_offset_;
}

void DeviceTensor::copy_back() const {
  memory_.copy_to(host_, host_bytes_, host_offset_);
}

std::optional<std::ptrdiff_t> DeviceTensor::first_change() const {
  const auto expected = [&](std::size_t i) {
    const bool is_copy = i >= host_offset_ && i - host_offset_ < host_bytes_;
    return is_copy ? static_cast<unsigned char>(host_[i - host_offset_]) : kFilling;
  };
  std::vector<unsigned char> bytes(std::min(memory_.bytes(), kReadAtOnce));
  for (std::size_t begin = 0; begin < memory_.bytes(); begin += bytes.size()) {
    bytes.resize(std::min(bytes.size(), memory_.bytes() - begin));
    memory_.copy_to(bytes.data(), bytes.size(), begin);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == expected(begin + i)) continue;
      return static_cast<std::ptrdiff_t>(begin + i) - static_cast<std::ptrdiff_t>(data_offset_);
    }
  }
  return std::nullopt;
}

}  // namespace tilewright::cuda
