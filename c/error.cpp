#include "c/error.hpp"

#include <new>
#include <string>
#include <utility>

using tilewright::Error;
using tilewright::ErrorCode;

struct tw_error {
  tw_status status;
  Error error;
};

namespace tilewright::capi {
namespace {

// What is reported when no memory is left for an error.
tw_error& out_of_memory() {
  static tw_error& error = *new tw_error{
      TW_MEMORY, Error(ErrorCode::memory, "out of memory", "use smaller shapes or more memory")};
  return error;
}

// Made when the library is loaded, while there is memory.
[[maybe_unused]] const tw_error& made_early = out_of_memory();

Error error_in_flight() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::memory, "out of memory",
                 "use smaller shapes or a machine with more memory");
  } catch (const std::exception& error) {
    return Error(ErrorCode::internal, error.what());
  } catch (...) {
    return Error(ErrorCode::internal, "an exception of an unknown type");
  }
}

}  // namespace

tw_status status_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::usage:
      return TW_USAGE;
    case ErrorCode::spec:
      return TW_SPEC;
    case ErrorCode::snippet:
      return TW_SNIPPET;
    case ErrorCode::kernel_template:
      return TW_TEMPLATE;
    case ErrorCode::tensor:
      return TW_TENSOR;
    case ErrorCode::block_mask:
      return TW_BLOCK_MASK;
    case ErrorCode::file:
      return TW_FILE;
    case ErrorCode::device:
      return TW_DEVICE;
    case ErrorCode::compiler:
      return TW_COMPILER;
    case ErrorCode::missing_kernel:
      return TW_MISSING_KERNEL;
    case ErrorCode::memory:
      return TW_MEMORY;
    case ErrorCode::disk:
      return TW_DISK;
    case ErrorCode::internal:
      break;
  }
  return TW_INTERNAL;
}

tw_status report_exception(tw_error** error) noexcept {
  try {
    Error caught = error_in_flight();
    const tw_status status = status_of(caught.code());
    if (error) *error = new tw_error{status, std::move(caught)};
    return status;
  } catch (...) {
    if (error) *error = &out_of_memory();
    return TW_MEMORY;
  }
}

void refuse_null(const char* name) {
  throw Error(ErrorCode::usage, std::string(name) + " is NULL");
}

}  // namespace tilewright::capi

using tilewright::capi::out_of_memory;

extern "C" {

tw_status tw_error_status(const tw_error* error) {
  return error ? error->status : TW_OK;
}

const char* tw_error_report(const tw_error* error) {
  return error ? error->error.what() : "";
}

const char* tw_error_message(const tw_error* error) {
  return error ? error->error.message().c_str() : "";
}

const char* tw_error_hint(const tw_error* error) {
  return error ? error->error.hint().c_str() : "";
}

const char* tw_error_file(const tw_error* error) {
  return error && error->error.place() ? error->error.place()->file.c_str() : "";
}

int32_t tw_error_line(const tw_error* error) {
  return error && error->error.place() ? error->error.place()->line : 0;
}

int32_t tw_error_column(const tw_error* error) {
  return error && error->error.place() ? error->error.place()->column : 0;
}

size_t tw_error_note_count(const tw_error* error) {
  return error ? error->error.notes().size() : 0;
}

const char* tw_error_note(const tw_error* error, size_t note) {
  return note < tw_error_note_count(error) ? error->error.notes()[note].c_str() : "";
}

void tw_error_destroy(tw_error* error) {
  if (error != &out_of_memory()) delete error;
}

const char* tw_status_name(tw_status status) {
  if (status == TW_OK) return "ok";
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    const auto of_code = static_cast<ErrorCode>(code);
    if (tilewright::capi::status_of(of_code) == status) {
      return tilewright::to_string(of_code).data();
    }
  }
  return "unknown";
}

}  // extern "C"
