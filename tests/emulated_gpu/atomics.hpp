#pragma once

// CUDA's atomic functions for threads of the host.

inline float atomicAdd(float* to, float x) {
  auto* const bits = reinterpret_cast<unsigned*>(to);
  unsigned seen = __atomic_load_n(bits, __ATOMIC_RELAXED);
  float sum = 0;
  do {
    sum = __builtin_bit_cast(float, seen) + x;
  } while (!__atomic_compare_exchange_n(bits, &seen, __builtin_bit_cast(unsigned, sum), false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return __builtin_bit_cast(float, seen);
}
template <typename T, typename U>
T atomicAdd(T* to, U x) {
  return __atomic_fetch_add(to, x, __ATOMIC_RELAXED);
}
template <typename T, typename U>
T atomicAnd(T* to, U x) {
  return __atomic_fetch_and(to, x, __ATOMIC_RELAXED);
}
template <typename T, typename U>
T atomicOr(T* to, U x) {
  return __atomic_fetch_or(to, x, __ATOMIC_RELAXED);
}
template <typename T, typename U>
T atomicMin(T* to, U x) {
  T seen = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (x < seen &&
         !__atomic_compare_exchange_n(to, &seen, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return seen;
}
template <typename T, typename U>
T atomicMax(T* to, U x) {
  T seen = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (seen < x &&
         !__atomic_compare_exchange_n(to, &seen, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return seen;
}
template <typename T>
T atomicCAS(T* to, T expected, T wanted) {
  __atomic_compare_exchange_n(to, &expected, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
inline void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
