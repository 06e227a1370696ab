#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tilewright {

/// A shared object that is loaded from memory and unloaded at the end of its life: the bytes that
/// were verified are the bytes that run, whatever happens to files meanwhile.
class SharedObject {
 public:
  /// No object.
  SharedObject() = default;

  /// Loads an ELF shared object. Its symbols stay invisible to other objects, and the calling
  /// thread's floating-point modes are as before (objects linked with -ffast-math change them).
  /// Loading the same bytes twice gives two objects, each with its own variables.
  /// @param name stands in messages
  /// @throws Error with code compiler where the loader refuses the bytes, with code disk where
  ///         neither memory nor TMPDIR takes them
  static SharedObject load(std::span<const std::byte> bytes, std::string_view name);

  /// The same through a private file in TMPDIR, unlinked at once: what load() does on systems that
  /// forbid to run code from anonymous memory.
  static SharedObject load_through_file(std::span<const std::byte> bytes, std::string_view name);

  SharedObject(SharedObject&& other) noexcept;
  SharedObject& operator=(SharedObject&& other) noexcept;
  ~SharedObject();

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& name() const { return name_; }

  /// The address of a symbol; valid as long as this object lives.
  /// @throws Error with code compiler where there is none of that name
  void* symbol(const char* symbol_name) const;
  /// The same; null where there is none.
  void* find(const char* symbol_name) const;

 private:
  SharedObject(void* handle, std::string_view name) : handle_(handle), name_(name) {}
  void unload() noexcept;
  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace tilewright
