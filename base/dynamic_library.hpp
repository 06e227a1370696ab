#pragma once

#include <string>

namespace tilewright {

/// A library opened at run time, so that one binary runs with and without CUDA or libcurl. Never
/// closed: drivers and compilers keep their own threads and memory.
class DynamicLibrary {
 public:
  /// Nothing opened.
  DynamicLibrary() = default;

  /// Opens a file or a name that the loader knows. Check with bool; reason() says why not.
  static DynamicLibrary open(const std::string& path);

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& path() const { return path_; }      ///< as given to open()
  const std::string& reason() const { return reason_; }  ///< of a failed open()

  /// A function of the library; null where it has none of that name.
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;

  void* handle_ = nullptr;
  std::string path_;
  std::string reason_;
};

}  // namespace tilewright
