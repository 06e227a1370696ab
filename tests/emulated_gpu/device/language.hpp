// In place of templates/cuda/device/language.hpp: gcc has its own builtins.

#define TW_INLINE static inline
#define TW_MEMBER inline

namespace tw_kernel {
constexpr float kInfinity = __builtin_inff();
constexpr float kLog2E = 1.44269504088896341f;
constexpr float kLn2 = 0.693147180559945309f;

template <int kThreads>
TW_INLINE unsigned thread_number() {
  return threadIdx.x;
}

TW_INLINE unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
}  // namespace tw_kernel
