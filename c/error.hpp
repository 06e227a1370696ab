#pragma once

#include <cstddef>
#include <string>

#include "c/tilewright.h"
#include "tilewright.hpp"

namespace tilewright::capi {

/// The status of a code.
tw_status status_of(ErrorCode code) noexcept;

/// Turns the exception that is being handled into a status and, if `error` is not null, an error.
/// If even the error cannot be allocated, *error is a static one that says so.
tw_status report_exception(tw_error** error) noexcept;

/// Runs the body of a function of the C ABI.
template <typename Body>
tw_status guarded(tw_error** error, const Body& body) noexcept {
  if (error) *error = nullptr;
  try {
    body();
    return TW_OK;
  } catch (...) {
    return report_exception(error);
  }
}

/// The same for a function that makes something.
template <typename Handle, typename Body>
tw_status guarded(Handle** made, tw_error** error, const Body& body) noexcept;

[[noreturn]] void refuse_null(const char* name);

/// Refuses a null pointer. `name` is the parameter's.
template <typename T>
T& required(T* pointer, const char* name) {
  if (!pointer) refuse_null(name);
  return *pointer;
}

template <typename Handle, typename Body>
tw_status guarded(Handle** made, tw_error** error, const Body& body) noexcept {
  if (made) *made = nullptr;
  return guarded(error, [&] {
    Handle*& result = required(made, "the pointer to the result");
    result = body();
  });
}

}  // namespace tilewright::capi
