#include "cli/numbers.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright::cli {

std::uint64_t parse_whole(std::string_view text, std::string_view option, WholeRange range) {
  const bool is_negative = text.starts_with('-');
  const std::string_view digits = text.substr(is_negative ? 1 : 0);
  std::uint64_t magnitude = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, failure] = std::from_chars(digits.data(), end, magnitude);
  bool fits = failure == std::errc() && stop == end && !digits.empty();
  if (is_negative) {
    fits = fits && range.least < 0 && magnitude <= 0 - static_cast<std::uint64_t>(range.least);
  } else {
    fits = fits && magnitude <= range.most &&
           (range.least <= 0 || magnitude >= static_cast<std::uint64_t>(range.least));
  }
  if (fits) return is_negative ? 0 - magnitude : magnitude;
  throw Error(ErrorCode::usage, fmt::format("{}: \"{}\" is no whole number from {} to {}", option,
                                            text, range.least, range.most));
}

std::uint64_t parse_whole(std::string_view text, std::string_view option, WholeRange range,
                          const std::string& form) {
  try {
    return parse_whole(text, option, range);
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), form);
  }
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure == std::errc() && stop == end) return value;
  return std::nullopt;
}

std::optional<double> finite_number(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure == std::errc() && stop == end && std::isfinite(value)) return value;
  return std::nullopt;
}

double parse_number(std::string_view text, std::string_view option) {
  if (const std::optional<double> value = finite_number(text)) return *value;
  throw Error(ErrorCode::usage,
              fmt::format("{}: \"{}\" is no finite number, such as 0.5 or 1e-4", option, text));
}

double parse_positive(std::string_view text, std::string_view option) {
  const double value = parse_number(text, option);
  if (value > 0) return value;
  throw Error(ErrorCode::usage, fmt::format("{}: \"{}\" is not above 0", option, text));
}

CLI::Option* add_positive(CLI::App& app, const std::string& names, double& value,
                          const std::string& help) {
  const auto read = [&value, option = detail::longest_name(names)](const std::string& text) {
    value = parse_positive(text, option);
  };
  return app.add_option_function<std::string>(names, read, help)->type_name("FLOAT");
}

std::string detail::longest_name(const std::string& names) {
  std::string longest;
  for (std::string& name : CLI::detail::split(names, ',')) {
    if (name.size() > longest.size()) longest = std::move(name);
  }
  return longest;
}

}  // namespace tilewright::cli
