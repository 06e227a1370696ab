#pragma once

#include <string>

namespace tilewright::verify {

/// Says that no element of a tensor was judged, or none that a kept score reaches.
/// @param some_unreached whether the tensor has elements that no kept score reaches
inline std::string nothing_judged(const std::string& name, bool some_unreached) {
  return "nothing of " + name +
         " was judged, so this check says nothing of it: NaN, infinity or an overflow of float32 "
         "reaches all of its elements" +
         (some_unreached ? " that a kept score reaches, and the others are 0" : "") +
         ". Give it smaller or finite numbers";
}

}  // namespace tilewright::verify
