#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace tilewright::cli {

/// The whole numbers that an option takes, ends included.
struct WholeRange {
  std::int64_t least;
  std::uint64_t most;
};

inline constexpr WholeRange kAnySeed{0, std::numeric_limits<std::uint64_t>::max()};
/// Of batch, heads and lengths: a kernel's indices are 32-bit, and tiles may go beyond the last
/// row.
inline constexpr WholeRange kAnySize{1, std::numeric_limits<std::int32_t>::max() - 1024};
/// What the shape's own checks then judge, with the lengths at hand.
inline constexpr WholeRange kAnyOffset{
    std::numeric_limits<std::int64_t>::min(),
    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())};
/// An index of a batch or a head; a length whose 0 the shape's own check refuses.
inline constexpr WholeRange kAnyIndex{0, std::numeric_limits<std::int32_t>::max() - 1024};

/// Reads decimal digits with at most a minus sign before them; nothing else may stand in `text`.
/// @param option what the number is called in the message: "--seed"
/// @return a negative number as its two's complement
/// @throws Error with code usage, naming the option and its range
std::uint64_t parse_whole(std::string_view text, std::string_view option, WholeRange range);

/// The same for a number that is a part of an option's text.
/// @param form how the whole text is written: the error's hint
std::uint64_t parse_whole(std::string_view text, std::string_view option, WholeRange range,
                          const std::string& form);

/// A whole number of any size up to 64 bits; nothing for any other text.
std::optional<std::int64_t> whole_number(std::string_view text);

/// A finite decimal number, such as 0.5, -3 or 1e-4; nothing for any other text.
std::optional<double> finite_number(std::string_view text);

/// The same for an option.
/// @throws Error with code usage, naming the option
double parse_number(std::string_view text, std::string_view option);

/// The same for an option that takes numbers above 0 alone.
double parse_positive(std::string_view text, std::string_view option);

namespace detail {
template <typename T>
struct ValueOf {
  using Type = T;
};
template <typename T>
struct ValueOf<std::optional<T>> {
  using Type = T;
};
std::string longest_name(const std::string& names);
}  // namespace detail

/// An option that takes a whole number; `value` is an integer or an optional one.
template <typename T>
CLI::Option* add_whole(CLI::App& app, const std::string& names, T& value, WholeRange range,
                       const std::string& help) {
  const auto read = [&value, range, option = detail::longest_name(names)](const std::string& text) {
    value = static_cast<typename detail::ValueOf<T>::Type>(parse_whole(text, option, range));
  };
  return app.add_option_function<std::string>(names, read, help)->type_name("INT");
}

/// An option that takes a finite number; `value` is a double or an optional one.
template <typename T>
CLI::Option* add_number(CLI::App& app, const std::string& names, T& value,
                        const std::string& help) {
  const auto read = [&value, option = detail::longest_name(names)](const std::string& text) {
    value = parse_number(text, option);
  };
  return app.add_option_function<std::string>(names, read, help)->type_name("FLOAT");
}

/// An option that takes a finite number above 0.
CLI::Option* add_positive(CLI::App& app, const std::string& names, double& value,
                          const std::string& help);

}  // namespace tilewright::cli
