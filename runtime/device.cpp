#include "runtime/device.hpp"

#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"

namespace tilewright {

Device Device::automatic() {
  return cpu();
}

Device Device::parse(std::string_view name) {
  if (name == "auto") return automatic();
  if (name == "cpu") return cpu();
  if (name == "cuda" || name.starts_with("cuda:")) {
    throw Error(ErrorCode::device,
                fmt::format("device \"{}\" is not there: this version runs on the CPU only", name),
                "use --device cpu or auto");
  }
  const std::array<std::string, 4> allowed = {"auto", "cpu", "cuda", "cuda:0"};
  std::string hint = did_you_mean(name, allowed);
  if (hint.empty()) hint = "allowed: auto, cpu, cuda or cuda:N";
  throw Error(ErrorCode::usage, fmt::format("unknown device \"{}\"", name), hint);
}

std::string Device::name() const {
  return kind_ == Kind::cpu ? "cpu" : fmt::format("cuda:{}", index_);
}

}  // namespace tilewright
