#pragma once

#include <memory>

#include "cache/store.hpp"
#include "fuzz/run_case.hpp"

namespace tilewright::test {

/// Options of cases that find no kernel of another test.
inline verify::fuzz::RunOptions with_own_store() {
  verify::fuzz::RunOptions options;
  options.kernels.store = std::make_shared<cache::Store>(cache::Store::Options{});
  return options;
}

}  // namespace tilewright::test
