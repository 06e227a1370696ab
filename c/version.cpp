#include "c/tilewright.h"
#include "tilewright.hpp"

extern "C" int32_t tw_abi_version(void) {
  return TW_ABI_VERSION;
}

extern "C" const char* tw_version(void) {
  return tilewright::version();
}
