#include "fuzz/gpu_state.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/compile/process.hpp"

namespace tilewright::verify::fuzz {
namespace {

std::string indented(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines += fmt::format("  {}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string ask_nvidia_smi(std::vector<std::string> words) {
  words.insert(words.begin(), "nvidia-smi");
  try {
    const ProcessResult result = run_process(words, {.timeout = std::chrono::seconds(10)});
    if (result.succeeded()) return indented(result.output);
    return indented(
        fmt::format("nvidia-smi: {}; {}{}", result.describe_end(), result.output, result.errors));
  } catch (const Error& error) {
    return indented(error.message());
  }
}

}  // namespace

std::string describe_gpus() {
  return ask_nvidia_smi({"--query-gpu=index,utilization.gpu,memory.used,clocks.sm,pstate,"
                         "clocks_event_reasons.active",
                         "--format=csv"}) +
         ask_nvidia_smi({"pmon", "-c", "1", "-s", "u"});
}

}  // namespace tilewright::verify::fuzz
