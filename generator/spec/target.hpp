#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright {

/// What a kernel is compiled for: "sm_80", "sm_90a", "cpu-x86-64-v3", "cpu-x86-64-v4", or "cpu",
/// which is this machine's own instruction set and for JIT only.
class Target {
 public:
  /// @throws Error with code usage for a name that is no target, naming the nearest ones
  static Target parse(std::string_view name);
  /// "cpu"
  static Target host_cpu();
  /// Every name that parse takes: what NVRTC 13 compiles for from sm_80 up, and the CPUs.
  static const std::vector<std::string>& all_names();

  const std::string& name() const { return name_; }
  bool is_cpu() const { return name_.starts_with("cpu"); }
  /// 80 for sm_80, 90 for sm_90a; 0 for a cpu.
  int sm() const;

  friend bool operator==(const Target&, const Target&) = default;

 private:
  explicit Target(std::string name) : name_(std::move(name)) {}
  std::string name_;
};

}  // namespace tilewright
