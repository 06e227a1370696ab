// fmt's functions that the library calls, compiled into libtilewright.so.1: a program that brings
// another fmt keeps it to itself, and so does this library.
#include <fmt/format-inl.h>

template auto fmt::detail::thousands_sep_impl<char>(fmt::detail::locale_ref)
    -> fmt::detail::thousands_sep_result<char>;
template auto fmt::detail::decimal_point_impl<char>(fmt::detail::locale_ref) -> char;
