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
  std::int64_t q_tiles = 0;     ///< that the call can have; 0 where no kernel splits them
  bool may_have_fewer = false;  ///< of a packed call, whose lengths the device knows
  std::int64_t parts = 1;
  std::string why_not = {};  ///< empty if parts is not 1

  /// "32 q tiles", "at most 32 q tiles"
  std::string q_tiles_text() const;
};

/// For tools that know the sizes of a call: what the library does with them. A packed call is
/// one of batch sequences of equal lengths, with max_kv_len; a dense one has a workspace.
/// @param shape as validate() has it
/// @throws Error with code tensor where a packed call may not have so many rows; with code spec
/// where the forced tactic does not fit the target
CallSplit split_of_call(const Spec& spec, const Target& target, std::int64_t multiprocessors,
                        const Shape& shape);

}  // namespace tilewright
