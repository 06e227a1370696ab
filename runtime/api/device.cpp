#include "runtime/api/device.hpp"

#include <array>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "generator/messages/usual_mistakes.hpp"
#include "runtime/cuda/targets.hpp"

namespace tilewright {
namespace {

constexpr const char* kVariable = "TILEWRIGHT_DEVICE";

[[noreturn]] void refuse(std::string_view name) {
  const std::array<std::string, 4> allowed = {"auto", "cpu", "cuda", "cuda:0"};
  std::string hint(usual_mistake(MistakeIn::device, name));
  if (hint.empty()) hint = did_you_mean(name, allowed);
  if (hint.empty()) hint = "allowed: auto, cpu, cuda or cuda:N";
  throw Error(ErrorCode::usage, fmt::format("unknown device \"{}\"", name), hint);
}

// Of "cuda" and "cuda:N".
int gpu_ordinal(std::string_view name) {
  if (name == "cuda") return 0;
  std::string_view number = name;
  number.remove_prefix(std::string_view("cuda:").size());
  int ordinal = -1;
  const char* const end = number.data() + number.size();
  const auto [rest, error] = std::from_chars(number.data(), end, ordinal);
  if (error != std::errc{} || rest != end || ordinal < 0) refuse(name);
  return ordinal;
}

Device device_of_variable(std::string_view named) {
  try {
    return Device::parse(named);
  } catch (const Error& error) {
    const bool is_name = error.code() == ErrorCode::usage;  // else the device is not there
    throw Error({.code = error.code(),
                 .message = fmt::format("{}: {}", kVariable, error.message()),
                 .notes = error.notes(),
                 .hint = is_name ? error.hint() : "unset it, or set it to \"cpu\""});
  }
}

}  // namespace

Device Device::automatic() {
  const char* named = std::getenv(kVariable);
  if (named && *named && std::string_view(named) != "auto") return device_of_variable(named);
  static const bool has_gpu = cuda::why_not_available().empty();
  return has_gpu ? Device(Kind::cuda, 0) : cpu();
}

Device Device::parse(std::string_view name) {
  if (name == "auto") return automatic();
  if (name == "cpu") return cpu();
  if (name != "cuda" && !name.starts_with("cuda:")) refuse(name);
  const int ordinal = gpu_ordinal(name);
  std::string reason;
  const cuda::Driver* driver = cuda::Driver::find(&reason);
  if (!driver) {
    throw Error(ErrorCode::device, fmt::format("device \"{}\" is not there: {}", name, reason),
                "use Device::cpu() or Device::automatic()");
  }
  cuda::device_facts(*driver, ordinal);  // throws where it is not there or too old
  return Device(Kind::cuda, ordinal);
}

std::string Device::name() const {
  return kind_ == Kind::cpu ? "cpu" : fmt::format("cuda:{}", index_);
}

}  // namespace tilewright
