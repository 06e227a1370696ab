#include "tests/mutants/far_memory.hpp"

#include "base/dynamic_library.hpp"
#include "base/error.hpp"
#include "runtime/cuda/context.hpp"
#include "runtime/cuda/driver.hpp"

namespace tilewright::mutants {
namespace {

using Allocate = int(void** data, std::size_t bytes, unsigned flags);
using Free = int(void* data);

template <typename Function>
Function& driver_function(const char* name) {
  static const DynamicLibrary library = DynamicLibrary::open("libcuda.so.1");
  Function* const function = library.function<Function>(name);
  if (!function) throw Error(ErrorCode::device, std::string("the driver has no ") + name);
  return *function;
}

}  // namespace

FarMemory::FarMemory(const Device& device, std::size_t bytes) : ordinal_(device.index()) {
  constexpr unsigned kDeviceMap = 2;  // CU_MEMHOSTALLOC_DEVICEMAP
  const cuda::Driver& driver = cuda::Driver::get();
  const cuda::ContextScope scope(driver, ordinal_);
  driver.check(driver_function<Allocate>("cuMemHostAlloc")(&data_, bytes, kDeviceMap),
               "allocating memory of the host for a GPU");
}

FarMemory::~FarMemory() {
  const cuda::ContextScope scope(cuda::Driver::get(), ordinal_);
  driver_function<Free>("cuMemFreeHost")(data_);
}

}  // namespace tilewright::mutants
