#pragma once

// CUDA's language for the host's compiler: what rendered kernels use of it.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/emulated_gpu/atomics.hpp"
#include "tests/emulated_gpu/block.hpp"
#include "tests/emulated_gpu/tensor_map.hpp"

extern "C" const emulated::Core* emulated_core;

namespace emulated {

inline Thread& thread() {
  return emulated_core->current();
}

/// Waits until `is_there()`.
template <typename Condition>
void wait_until(const char* what, Condition&& is_there) {
  if (is_there()) return;
  emulated_core->progress();
  do {
    emulated_core->pause(what);
  } while (!is_there());
  emulated_core->progress();
}

/// What each lane of the calling thread's warp gives.
template <typename T>
struct OfLanes {
  T of[kLanes];
};

template <typename T>
OfLanes<T> exchange(const T& mine) {
  static_assert(sizeof(T) <= Warp::kSlotBytes && std::is_trivially_copyable_v<T>);
  Warp& warp = *thread().warp;
  const unsigned number = warp.exchanges;
  auto& slots = warp.slots[number % 2];
  std::memcpy(slots[thread().index % kLanes], &mine, sizeof(T));
  if (++warp.arrived == kLanes) {
    warp.arrived = 0;
    ++warp.exchanges;
  } else {
    wait_until("the lanes of its warp", [&] { return warp.exchanges != number; });
  }
  OfLanes<T> all;
  for (unsigned lane = 0; lane < kLanes; ++lane) std::memcpy(&all.of[lane], slots[lane], sizeof(T));
  return all;
}

inline void arrive_at(NamedBarrier& barrier, unsigned threads) {
  if (++barrier.arrived < threads) return;
  if (barrier.arrived > threads) emulated_core->fail("more threads at a named barrier than it has");
  barrier.arrived = 0;
  barrier.any_before = std::exchange(barrier.any, false);
  ++barrier.phase;
}

inline void sync_at(NamedBarrier& barrier, unsigned threads, const char* what) {
  const unsigned phase = barrier.phase;
  arrive_at(barrier, threads);
  wait_until(what, [&] { return barrier.phase != phase; });
}

/// The calling thread wrote a word of shared memory, which the copy engine need not see yet.
inline void mark_unfenced(unsigned address) {
  std::vector<bool>& unfenced = thread().block->unfenced_words;
  if (unfenced.size() <= address / 4) unfenced.resize(address / 4 + 1);
  unfenced[address / 4] = true;
  thread().unfenced.push_back(address / 4);
}
/// The copy engine sees what the calling thread wrote.
inline void fence_copies() {
  for (const unsigned word : thread().unfenced) thread().block->unfenced_words[word] = false;
  thread().unfenced.clear();
}
inline bool is_fenced(unsigned address, unsigned bytes) {
  const std::vector<bool>& unfenced = thread().block->unfenced_words;
  for (unsigned word = address / 4; word < (address + bytes) / 4 && word < unfenced.size();
       ++word) {
    if (unfenced[word]) return false;
  }
  return true;
}

struct Index {
  unsigned x;
};

/// Calls a kernel with the parameters of a launch.
template <typename... Parameters>
void call(void (*kernel)(Parameters...), void** parameters) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    kernel(*static_cast<const std::remove_cv_t<Parameters>*>(parameters[i])...);
  }
  (std::index_sequence_for<Parameters...>());
}

/// The sizes of a kernel's parameters, then 0.
template <typename... Parameters>
const std::size_t* parameter_bytes(void (*)(Parameters...)) {
  static const std::size_t bytes[] = {sizeof(Parameters)..., 0};
  return bytes;
}

}  // namespace emulated

#define threadIdx (::emulated::Index{::emulated::thread().index})
#define blockIdx (::emulated::Index{::emulated::thread().block->index})
#define gridDim (::emulated::Index{::emulated::thread().block->grid})

#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __global__
#define __device__
#define __shared__ thread_local
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __grid_constant__
#define __builtin_assume(condition)

struct float2 {
  float x, y;
};
struct float4 {
  float x, y, z, w;
};
struct uint2 {
  unsigned x, y;
};
struct int2 {
  int x, y;
};
struct int4 {
  int x, y, z, w;
};

// In an interpretation, constants of its own types.
#undef INFINITY
#undef NAN

// A block's dynamic shared memory; addresses in shared memory count from its begin.
extern thread_local __align__(1024) unsigned char shared_memory[];

inline std::size_t __cvta_generic_to_shared(const void* pointer) {
  return static_cast<std::size_t>(static_cast<const unsigned char*>(pointer) - shared_memory);
}
namespace emulated {
inline unsigned char* at_shared(unsigned address) {
  return shared_memory + static_cast<int>(address);
}
}  // namespace emulated

inline void __syncthreads() {
  emulated::Block& block = *emulated::thread().block;
  emulated::sync_at(block.barriers[0], block.threads, "__syncthreads");
}
inline int __syncthreads_or(int holds) {
  emulated::NamedBarrier& barrier = emulated::thread().block->barriers[0];
  barrier.any = barrier.any || holds != 0;
  __syncthreads();
  return barrier.any_before;
}
inline void __syncwarp() {
  emulated::exchange(0);
}

template <typename T>
T __shfl_sync(unsigned, T x, int lane) {
  return emulated::exchange(x).of[lane % 32];
}
template <typename T>
T __shfl_xor_sync(unsigned, T x, int mask) {
  const unsigned lane = emulated::thread().index % 32;
  return emulated::exchange(x).of[lane ^ mask];
}
template <typename T>
T __shfl_up_sync(unsigned, T x, unsigned distance) {
  const unsigned lane = emulated::thread().index % 32;
  const auto all = emulated::exchange(x);
  return lane < distance ? x : all.of[lane - distance];
}
inline unsigned __ballot_sync(unsigned, int holds) {
  const auto all = emulated::exchange(holds);
  unsigned lanes = 0;
  for (unsigned i = 0; i < 32; ++i) lanes |= static_cast<unsigned>(all.of[i] != 0) << i;
  return lanes;
}
inline int __any_sync(unsigned mask, int holds) {
  return __ballot_sync(mask, holds) != 0;
}
inline int __all_sync(unsigned mask, int holds) {
  return __ballot_sync(mask, holds) == ~0u;
}

template <typename T>
T __ldg(const T* from) {
  return *from;
}
template <typename T>
T __ldcg(const T* from) {
  return *from;
}
inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
inline int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x));
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline unsigned __float_as_uint(float x) {
  return __builtin_bit_cast(unsigned, x);
}
inline float __uint_as_float(unsigned x) {
  return __builtin_bit_cast(float, x);
}
inline float __fadd_rn(float a, float b) {
  return a + b;
}
// Each digit of `selector` names a byte of the result: 0 to 3 those of a, 4 to 7 those of b.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned which = selector >> (4 * i) & 7u;
    result |= ((which < 4 ? a : b) >> (which % 4 * 8) & 0xffu) << (8 * i);
  }
  return result;
}
// As the instruction does: the nearest int, and 0 for a NaN.
inline int __float2int_rz(float x) {
  if (std::isnan(x)) return 0;
  if (x >= 0x1p31f) return std::numeric_limits<int>::max();
  return x <= -0x1p31f ? std::numeric_limits<int>::min() : static_cast<int>(x);
}
// The least int for a NaN.
inline int __double2int_rz(double x) {
  if (x >= 0x1p31) return std::numeric_limits<int>::max();
  return x > -0x1p31 ? static_cast<int>(x) : std::numeric_limits<int>::min();
}
inline float __frcp_rn(float x) {
  return 1.0f / x;
}
[[noreturn]] inline void __trap() {
  emulated_core->fail("it trapped");
  __builtin_unreachable();
}

template <typename A, typename B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) return std::fmin(static_cast<T>(a), static_cast<T>(b));
  return static_cast<T>(b) < static_cast<T>(a) ? b : a;
}
template <typename A, typename B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) return std::fmax(static_cast<T>(a), static_cast<T>(b));
  return static_cast<T>(a) < static_cast<T>(b) ? b : a;
}
