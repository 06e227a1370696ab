#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/diagnostics.hpp"
#include "base/error.hpp"

namespace tilewright::cli {

/// Objects keep the order in which their keys were written.
using Json = nlohmann::ordered_json;

/// Writes a report to stdout, escaped(). A reader that went away is no error; a full disk is.
/// @throws Error with code disk
void print(std::string_view text);

/// print() for text that another program reads as it is: a kernel's source.
void print_verbatim(std::string_view text);

/// From now on reports go to stderr: stdout takes an output file's bytes.
void report_to_stderr();

/// Prints a JSON value and a line break. Text that is not UTF-8 is replaced; control characters and
/// those that turn the direction of writing are escaped.
void print_json(const Json& value);

/// Writes what the library has to say to stderr, a line each.
DiagnosticsSink diagnostics_to_stderr();

/// {"error": {code, message, place, notes, hint}}
Json to_json(const Error& error);

/// "850 ns", "12.3 us", "4.56 ms", "1.23 s", "-4.56 ms"
std::string format_ms(double ms);

/// "512 B", "1.50 MiB"
std::string format_bytes(std::uint64_t bytes);

/// Text in columns; those that hold only numbers are flush right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace tilewright::cli
