#pragma once

// How functions of a kernel are compiled: into their caller, on their own, or for the runtime to find.

#define TW_INLINE static inline __attribute__((always_inline))
#define TW_MEMBER __attribute__((always_inline))
#define TW_NOINLINE static __attribute__((noinline))
#define TW_EXPORT __attribute__((visibility("default")))
