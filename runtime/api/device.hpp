#pragma once

#include <string>
#include <string_view>

namespace tilewright {

/// Where a kernel runs.
class Device {
 public:
  enum class Kind { cpu, cuda };

  /// "auto" (a GPU where there is one, else the CPU), "cpu", "cuda" or "cuda:N".
  /// @throws Error with code usage for any other text, with code device where the GPU is missing
  static Device parse(std::string_view name);
  static Device cpu() { return Device(Kind::cpu, 0); }
  /// What "auto" means on this machine: TILEWRIGHT_DEVICE where it is set, else the first GPU where
  /// there are a driver, a GPU from sm_80 up and NVRTC, else the CPU.
  /// @throws Error as parse, for what TILEWRIGHT_DEVICE names
  static Device automatic();

  Kind kind() const { return kind_; }
  int index() const { return index_; }  ///< of the GPU; 0 for the CPU
  std::string name() const;             ///< "cpu" or "cuda:0"

  friend bool operator==(const Device&, const Device&) = default;

 private:
  Device(Kind kind, int index) : kind_(kind), index_(index) {}
  Kind kind_;
  int index_;
};

}  // namespace tilewright
