#pragma once

#include "driver.hpp"

namespace tilewright::cuda {

/// A place in the order of a stream's work, whose time the GPU itself takes: what lies between two
/// events is measured without the host. Needs the same context to be current whenever it is used.
class Event {
 public:
  /// @throws Error with code device or memory
  explicit Event(const Driver& driver);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// After everything that the stream has to do so far.
  void record(Stream stream = nullptr);
  /// Until the GPU has come to it.
  /// @throws Error with code device: also what went wrong in a kernel before it
  void wait() const;
  /// Milliseconds from an earlier event to this one; waits for both.
  double ms_since(const Event& earlier) const;

 private:
  const Driver& driver_;
  EventHandle event_ = nullptr;
};

}  // namespace tilewright::cuda
