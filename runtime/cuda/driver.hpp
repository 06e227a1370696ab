#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "../../base/dynamic_library.hpp"

namespace tilewright::cuda {

// The driver's own types, declared here because building needs no CUDA.
using DeviceHandle = int;
using DevicePointer = unsigned long long;
using Context = struct CUctx_st*;
using Stream = struct CUstream_st*;
using Module = struct CUmod_st*;
using Function = struct CUfunc_st*;
using EventHandle = struct CUevent_st*;

/// Attributes of cuda.h that are asked for.
enum class DeviceAttribute : int {
  multiprocessor_count = 16,
  l2_cache_bytes = 38,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  max_shared_bytes_per_block_optin = 97,
};
enum class FunctionAttribute : int { max_dynamic_shared_bytes = 8 };

/// An address of the device as the driver takes it.
inline DevicePointer device_pointer(const void* pointer) {
  return reinterpret_cast<DevicePointer>(pointer);
}

/// CUDA_MEMCPY2D, for copies within a device.
struct PitchedCopyArguments {
  std::size_t from_x = 0, from_y = 0;
  int from_memory = 2;  // CU_MEMORYTYPE_DEVICE
  const void* from_host = nullptr;
  DevicePointer from;
  void* from_array = nullptr;
  std::size_t from_pitch;
  std::size_t to_x = 0, to_y = 0;
  int to_memory = 2;
  void* to_host = nullptr;
  DevicePointer to;
  void* to_array = nullptr;
  std::size_t to_pitch;
  std::size_t width;  // bytes
  std::size_t height;
};

/// The functions of libcuda that are used, under their names without "cu" and version.
struct DriverFunctions {
  int (*init)(unsigned flags);
  int (*driver_version)(int* version);
  int (*error_name)(int result, const char** name);
  int (*error_string)(int result, const char** text);

  int (*device_count)(int* count);
  int (*device_get)(DeviceHandle* device, int ordinal);
  int (*device_name)(char* name, int length, DeviceHandle device);
  int (*device_attribute)(int* value, int attribute, DeviceHandle device);

  int (*primary_context_retain)(Context* context, DeviceHandle device);
  int (*primary_context_state)(DeviceHandle device, unsigned* flags, int* is_active);
  int (*context_current)(Context* context);
  int (*context_push)(Context context);
  int (*context_pop)(Context* context);
  int (*context_device)(DeviceHandle* device);
  int (*context_synchronize)();
  int (*context_id)(Context context, unsigned long long* id);  // null before CUDA 12

  int (*module_load)(Module* module, const void* image);
  int (*module_unload)(Module module);
  int (*module_function)(Function* function, Module module, const char* name);
  int (*function_load)(Function function);  // null before CUDA 12.4
  int (*function_set_attribute)(Function function, int attribute, int value);
  int (*launch)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                Stream stream, void** arguments, void** extra);

  int (*tensor_map_encode)(void* map, int element_type, unsigned rank, void* base,
                           const std::uint64_t* extents, const std::uint64_t* strides,
                           const std::uint32_t* box, const std::uint32_t* element_strides,
                           int interleave, int swizzle, int l2_promotion,
                           int outside);  // null before CUDA 12

  int (*allocate)(DevicePointer* pointer, std::size_t bytes);
  int (*free)(DevicePointer pointer);
  int (*allocate_async)(DevicePointer* pointer, std::size_t bytes, Stream stream);  // or null
  int (*free_async)(DevicePointer pointer, Stream stream);                          // or null
  int (*copy_to_device)(DevicePointer to, const void* from, std::size_t bytes, Stream stream);
  int (*copy_to_host)(void* to, DevicePointer from, std::size_t bytes, Stream stream);
  int (*fill_bytes)(DevicePointer to, unsigned char value, std::size_t count, Stream stream);
  int (*stream_synchronize)(Stream stream);
  int (*exchange_capture_mode)(int* mode);  // of the calling thread; or null

  // For exchanges between GPUs; null where a stand-in for the driver lacks them.
  int (*stream_create)(Stream* stream, unsigned flags, int priority);
  int (*stream_destroy)(Stream stream);
  int (*stream_priorities)(int* least, int* greatest);
  int (*stream_wait)(Stream stream, EventHandle event, unsigned flags);
  int (*stream_query)(Stream stream);
  int (*copy_pitched)(const PitchedCopyArguments* copy, Stream stream);

  int (*event_create)(EventHandle* event, unsigned flags);
  int (*event_destroy)(EventHandle event);
  int (*event_record)(EventHandle event, Stream stream);
  int (*event_synchronize)(EventHandle event);
  int (*event_elapsed)(float* ms, EventHandle start, EventHandle end);
};

/// NVIDIA's driver, opened at run time.
class Driver {
 public:
  /// Opens libcuda.so.1 and initialises it, once per process.
  /// @throws Error with code device where there is none, or it refuses
  static const Driver& get();
  /// The same, but null instead of an exception, with the reason.
  static const Driver* find(std::string* reason = nullptr);

  const DriverFunctions& functions() const { return functions_; }
  int version() const { return version_; }  ///< of CUDA, as 13000 for 13.0
  int device_count() const { return device_count_; }

  /// "no kernel image is available (CUDA_ERROR_NO_BINARY_FOR_GPU)"
  std::string describe(int result) const;

  /// @throws Error with code memory for want of memory, else device, naming what was done
  void check(int result, std::string_view doing) const {
    if (result != 0) fail(result, doing);
  }

 private:
  Driver();
  [[noreturn]] void fail(int result, std::string_view doing) const;

  DynamicLibrary library_;
  DriverFunctions functions_ = {};
  int version_ = 0;
  int device_count_ = 0;
};

/// What is known of one GPU.
struct DeviceFacts {
  int ordinal = 0;
  std::string name;
  int compute_capability = 0;  ///< 90 for 9.0
  int multiprocessors = 0;
  int max_shared_bytes = 0;  ///< that a block may ask for
  int l2_bytes = 0;          ///< of the cache that all multiprocessors share

  /// The most specific target: "sm_90a" for 90 (wgmma and setmaxnreg need the "a"), else "sm_80".
  std::string target() const;
  /// "GPU 0 (NVIDIA H200, sm_90)"
  std::string describe() const;
};

/// The driver's handle of a GPU.
/// @throws Error with code device for an ordinal that is not there
DeviceHandle device_handle(const Driver& driver, int ordinal);

/// @throws Error with code device for an ordinal that is not there, or a GPU older than sm_80
DeviceFacts device_facts(const Driver& driver, int ordinal);

}  // namespace tilewright::cuda
