#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "driver.hpp"

namespace tilewright::cuda {

/// A kernel that does nothing, with parameters as large as forward's: measured next to forward, it
/// says how much of a call's time is the driver's own. Needs the same context to be current
/// whenever it is used.
class EmptyKernel {
 public:
  /// Its cubin for a target ("sm_90a").
  /// @throws Error with code compiler
  static std::vector<std::byte> compile(std::string_view target);

  /// @throws Error with code device
  EmptyKernel(const Driver& driver, std::span<const std::byte> cubin);
  ~EmptyKernel();
  EmptyKernel(const EmptyKernel&) = delete;
  EmptyKernel& operator=(const EmptyKernel&) = delete;

  void launch(Stream stream = nullptr);

 private:
  const Driver& driver_;
  Module module_ = nullptr;
  Function function_ = nullptr;
  std::vector<std::byte> parameters_;  // never read: only their size counts
};

}  // namespace tilewright::cuda
