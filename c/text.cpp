#include "c/text.hpp"

#include <cstring>
#include <string>

#include "c/error.hpp"

namespace tilewright::capi {

void copy_text(std::string_view text, char* buffer, std::size_t* size) {
  const std::size_t room = required(size, "size");
  *size = text.size() + 1;
  if (!buffer) return;
  if (room < *size) {
    throw Error(ErrorCode::usage, "the buffer has " + std::to_string(room) +
                                      " bytes, and the text takes " + std::to_string(*size));
  }
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
}

}  // namespace tilewright::capi
