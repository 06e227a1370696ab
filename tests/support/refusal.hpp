#pragma once

#include <functional>
#include <string>

#include "base/error.hpp"

namespace tilewright::test {

/// The message of the error that a call throws; empty where it throws none.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  }
  return {};
}

}  // namespace tilewright::test
