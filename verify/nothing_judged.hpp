#pragma once

#include <string>

namespace tilewright::verify {

/// Says that no element of a tensor was judged.
inline std::string nothing_judged(const std::string& name) {
  return "nothing of " + name +
         " was judged, so this check says nothing of it: NaN, infinity or an overflow of float32 "
         "reaches all of its elements. Give it smaller or finite numbers";
}

}  // namespace tilewright::verify
