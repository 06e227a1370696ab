#pragma once

// Whether a number is a float or a double.

namespace tw_snippet {

template <typename T>
constexpr bool tw_is_floating = false;
template <>
constexpr bool tw_is_floating<float> = true;
template <>
constexpr bool tw_is_floating<double> = true;

}  // namespace tw_snippet
