#include "c/sized.hpp"

#include <string>

namespace tilewright::capi {

void refuse_size(const char* name, std::size_t given, std::size_t known) {
  const std::string message = std::string(name) + " has struct_size " + std::to_string(given);
  if (given > known) {
    throw Error(ErrorCode::usage,
                message + ", and this library (" + version() + ", ABI version " +
                    std::to_string(TW_ABI_VERSION) + ") knows " + std::to_string(known) + " bytes",
                "the program was compiled with the header of a later version: load that version's "
                "library, or compile with this one's header");
  }
  throw Error(ErrorCode::usage, message,
              std::string("set it to sizeof(") + name + ") and the other fields to zero");
}

void refuse_reserved(const char* name) {
  throw Error(ErrorCode::usage, std::string(name) + ".reserved is not 0",
              "set all fields that you do not use to zero");
}

}  // namespace tilewright::capi
