#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright {

/// How a C++ number is spelled.
struct NumberLiteral {
  bool is_floating = false;
  bool has_suffix = false;
  bool is_int = false;  ///< of that very type: 0x80000000 is unsigned, 3000000000 is a long
  bool is_unsigned = false;
  std::int64_t integer = 0;  ///< value of a whole number that is not unsigned
  double floating = 0;       ///< value of a floating number, rounded to a float if it ends in f
  std::string fault;  ///< why no interpretation takes it, to stand after "the number 0x"; empty: it
                      ///< is right
  bool is_out_of_range = false;  ///< the fault is that no type holds the value
};

/// Reads one preprocessing number: decimal, hexadecimal, binary, octal, with digit separators.
NumberLiteral read_number(std::string_view text);

}  // namespace tilewright
