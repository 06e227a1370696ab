#pragma once

// Catch2 v2 (Debian 12) and v3 through one include. Not to be used, as they differ between the two:
// Catch::Approx (use Matchers::WithinAbs/WithinRel) and SKIP (print "[SKIP] reason" and return).
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
#else
#include <catch2/catch.hpp>
namespace Catch::Matchers {
inline auto ContainsSubstring(const std::string& text) {
  return Contains(text);
}
}  // namespace Catch::Matchers
#endif
