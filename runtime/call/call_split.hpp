#pragma once

#include <cstdint>
#include <string>

#include "../../generator/spec/spec.hpp"
#include "../../generator/spec/target.hpp"
#include "../api/shape.hpp"

namespace tilewright {

/// Into how many parts Hopper's kernel cuts the q tiles of a call.
struct CallSplit {
  std::int64_t multiprocessors = 0;
  std::int64_t q_tiles = 0;
  std::int64_t parts = 1;
  std::string why_not = {};  ///< empty if parts is not 1
};

/// For tools that know the sizes of a call: what the library does with them, a packed call being
/// one of batch sequences of equal lengths and a dense one having a workspace.
/// @throws Error with code spec where the forced tactic does not fit the target
CallSplit split_of_call(const Spec& spec, const Target& target, std::int64_t multiprocessors,
                        const Shape& shape);

}  // namespace tilewright
