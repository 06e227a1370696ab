#include "errors.hpp"

#include <exception>
#include <string>
#include <tuple>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "base/error.hpp"

namespace nb = nanobind;

namespace tilewright::py {
namespace {

// file, line, column, the text of the line
using Location = std::tuple<std::string, int, int, std::string>;

ErrorCode code_of(const std::string& name) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    if (to_string(static_cast<ErrorCode>(code)) == name) return static_cast<ErrorCode>(code);
  }
  return ErrorCode::internal;
}

std::string report(const std::string& code, const std::string& message, const std::string& hint,
                   const std::optional<Location>& place, const std::vector<std::string>& notes) {
  Error::Details details{.code = code_of(code), .message = message, .notes = notes, .hint = hint};
  if (place) {
    const auto& [file, line, column, excerpt] = *place;
    details.place = SourceLocation{file, line, column, excerpt};
  }
  return Error(std::move(details)).what();
}

void raise(const Error& error) {
  nb::object place = nb::none();
  if (error.place()) {
    const SourceLocation& at = *error.place();
    place = nb::make_tuple(at.file, at.line, at.column, at.excerpt);
  }
  const nb::object type = nb::module_::import_("tilewright._error").attr("Error");
  const nb::object raised = type(std::string(to_string(error.code())), error.message(),
                                 error.hint(), place, error.notes());
  PyErr_SetObject(type.ptr(), raised.ptr());
}

}  // namespace

void declare_errors(nb::module_& module) {
  module.def("report", &report, nb::arg("code"), nb::arg("message"), nb::arg("hint"),
             nb::arg("place").none(), nb::arg("notes"));
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error);
    }
  });
}

}  // namespace tilewright::py
