#pragma once

#include <string>
#include <string_view>

namespace tilewright::compile_matrix {

/// The first asm statement of a kernel that writes a variable twice, as `"+f"(s[0]), "+f"(s[0])`
/// for s[0] and s[1] would. C++ and ptxas take that; the register that is not named may then be
/// moved while a matrix product writes it (decision 16).
/// @return "an asm statement writes s[0] twice", or empty
std::string repeated_operand(std::string_view kernel);

}  // namespace tilewright::compile_matrix
