// In place of templates/cuda/device/language.hpp: gcc has its own builtins.

#define TW_INLINE static inline
#define TW_MEMBER inline
