#pragma once

#include <cstdint>

#include "driver.hpp"

namespace tilewright::cuda {

/// While it lives, a CUDA context is current in the calling thread: the one that already was, else
/// the primary one of a GPU. Afterwards the thread's is what it was.
class ContextScope {
 public:
  /// @param ordinal of the GPU whose primary context is taken where the thread has no context
  /// @throws Error with code device or memory
  ContextScope(const Driver& driver, int ordinal);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  Context context() const { return context_; }
  /// Tells contexts apart even where one was destroyed and another has its handle now.
  std::uint64_t id() const { return id_; }
  /// Of the context's GPU.
  int ordinal() const;
  /// Whether it is its GPU's primary one.
  bool is_primary() const;

 private:
  const Driver& driver_;
  Context context_ = nullptr;
  std::uint64_t id_ = 0;
  bool pushed_ = false;
};

/// Makes a context current where something of it is given back. Never throws: the context may be
/// gone, and what belonged to it with it.
class ReleaseScope {
 public:
  ReleaseScope(const Driver& driver, Context context, std::uint64_t id) noexcept;
  ~ReleaseScope();
  ReleaseScope(const ReleaseScope&) = delete;
  ReleaseScope& operator=(const ReleaseScope&) = delete;

  explicit operator bool() const { return pushed_; }

 private:
  const Driver& driver_;
  bool pushed_ = false;
};

}  // namespace tilewright::cuda
