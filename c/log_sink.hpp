#pragma once

#include <memory>

#include "tilewright.hpp"

namespace tilewright::capi {

/// A program's log callback. The library's shared parts (the default cache, bundles of the
/// environment) keep the first sink that they were given; when the owner of that one is gone, the
/// program's oldest other sink gets their messages.
class LogSink {
 public:
  using Callback = void (*)(void* user, std::int32_t severity, const char* message);

  LogSink(Callback callback, void* user);
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;
  /// Waits for calls of the callback that run on other threads; none starts afterwards.
  ~LogSink();

  /// May outlive this object.
  DiagnosticsSink diagnostics() const;

  struct Target;

 private:
  std::shared_ptr<Target> target_;
};

}  // namespace tilewright::capi
