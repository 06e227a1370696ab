#include "base/dynamic_library.hpp"

#include <dlfcn.h>

namespace tilewright {

DynamicLibrary DynamicLibrary::open(const std::string& path) {
  DynamicLibrary library;
  library.path_ = path;
  library.handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library.handle_) {
    const char* reason = dlerror();
    library.reason_ = reason ? reason : "unknown";
  }
  return library;
}

void* DynamicLibrary::symbol(const char* name) const {
  return handle_ ? dlsym(handle_, name) : nullptr;
}

}  // namespace tilewright
