#pragma once

#include <cstdio>
#include <string>

namespace tilewright::test {

/// The exit status of a test that ran nothing: ctest's SKIP_RETURN_CODE.
inline constexpr int kSkipped = 77;

inline int skips_said = 0;

/// Says "[SKIP] reason" for a test that this machine cannot run. A test case that returns after it
/// without an assertion counts as skipped (main.cpp).
inline void say_skipped(const std::string& reason) {
  ++skips_said;
  std::printf("[SKIP] %s\n", reason.c_str());
}

}  // namespace tilewright::test
