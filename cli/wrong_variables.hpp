#pragma once

#include <string>
#include <vector>

namespace tilewright::cli {

/// A variable TILEWRIGHT_* whose value is refused where it is read.
struct WrongVariable {
  std::string what;    ///< "TILEWRIGHT_TUNED is "junk", so ..."
  std::string advice;  ///< what to set it to
  bool stops_all;      ///< nothing can run; else only the calls that read it, which `what` names
};

/// Of the variables that calls read and that no other part of `doctor` looks at.
/// @param has_gpu whether calls can run elsewhere than on the CPU
std::vector<WrongVariable> wrong_variables(bool has_gpu);

}  // namespace tilewright::cli
