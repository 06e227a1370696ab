#include "cli/fuzz_machine.hpp"

#include <array>
#include <cerrno>
#include <exception>

#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "cli/machine.hpp"
#include "runtime/api/device.hpp"
#include "runtime/cuda/nvrtc.hpp"

namespace tilewright::cli {
namespace {

bool nvrtc_is_there() {
  try {
    cuda::Nvrtc::get();
    return true;
  } catch (const Error&) {
    return false;
  }
}

nlohmann::json look_for_gpu(const std::string& wanted) {
  try {
    const Device device = Device::parse(wanted);
    if (device.kind() == Device::Kind::cpu) {
      return {{"device", "cpu"}, {"gpu_target", ""}, {"has_nvrtc", nvrtc_is_there()}};
    }
    return {{"device", "cuda"}, {"gpu_target", gpu_facts(device).target}, {"has_nvrtc", true}};
  } catch (const Error& error) {
    return {{"is_usage", error.code() == ErrorCode::usage},
            {"is_compiler", error.code() == ErrorCode::compiler},
            {"message", error.message()},
            {"hint", error.hint()}};
  }
}

std::string read_to_end(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer = {};
  while (true) {
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

[[noreturn]] void look_and_exit(const std::string& wanted, int descriptor) {
  const std::string text = look_for_gpu(wanted).dump();
  const ssize_t written = ::write(descriptor, text.data(), text.size());
  ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

}  // namespace

FuzzMachine fuzz_machine(const std::string& device) {
  if (device.starts_with("cuda:")) {
    throw Error(ErrorCode::usage, "--device is \"" + device + "\", but fuzz takes the first GPU",
                "write --device cuda and choose the GPU by CUDA_VISIBLE_DEVICES");
  }
  std::array<int, 2> ends = {};
  const pid_t child = ::pipe(ends.data()) == 0 ? ::fork() : -1;
  if (child < 0) throw Error(ErrorCode::internal, "cannot start a process that looks for a GPU");
  if (child == 0) look_and_exit(device, ends[1]);
  ::close(ends[1]);
  const std::string text = read_to_end(ends[0]);
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  const nlohmann::json found = nlohmann::json::parse(text, nullptr, false);
  if (found.is_discarded()) {
    throw Error(ErrorCode::device, "the process that looked for a GPU died",
                "run `tilewright doctor`, or use --device cpu");
  }
  if (found.contains("message")) {
    throw Error(found.at("is_usage").get<bool>()      ? ErrorCode::usage
                : found.at("is_compiler").get<bool>() ? ErrorCode::compiler
                                                      : ErrorCode::device,
                found.at("message").get<std::string>(), found.at("hint").get<std::string>());
  }
  return {.device = found.at("device"),
          .gpu_target = found.at("gpu_target"),
          .has_nvrtc = found.at("has_nvrtc")};
}

}  // namespace tilewright::cli
