#pragma once

#include "tests/support/catch.hpp"
#include "tests/support/full_run.hpp"
#include "tests/support/skip.hpp"

namespace tilewright::test {

/// Whether a test has the programs that it needs. Where it has not it says "[SKIP]", but not in a
/// full run, whose script installs them: that fails.
/// @param what "there is no nginx (Debian: nginx-light)"
inline bool is_installed(bool is_there, const char* what) {
  if (is_there) return true;
  REQUIRE_FALSE(is_full_run());
  say_skipped(what);
  return false;
}

}  // namespace tilewright::test
