#include "base/version.hpp"

#define TILEWRIGHT_TEXT_(x) #x
#define TILEWRIGHT_TEXT(x) TILEWRIGHT_TEXT_(x)

namespace tilewright {

const char* version() {
  return TILEWRIGHT_TEXT(TILEWRIGHT_VERSION_MAJOR) "." TILEWRIGHT_TEXT(
      TILEWRIGHT_VERSION_MINOR) "." TILEWRIGHT_TEXT(TILEWRIGHT_VERSION_PATCH);
}

}  // namespace tilewright
