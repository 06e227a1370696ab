#include <charconv>

#include "runtime/cuda/nvrtc.hpp"

// ptxas -v writes for each kernel:
//
//   ptxas info    : Compiling entry function 'forward' for 'sm_90a'
//   ptxas info    : Function properties for forward
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 168 registers, used 1 barriers, 1024 bytes smem, 400 bytes cmem[0]

namespace tilewright::cuda {
namespace {

// Every line of a text, without its end.
template <typename Body>
void for_each_line(std::string_view text, Body body) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    body(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

// The number that stands before `unit`; 0 where there is none.
int number_before(std::string_view line, std::string_view unit) {
  const size_t end = line.find(unit);
  if (end == std::string_view::npos || end == 0) return 0;
  size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int value = 0;
  std::from_chars(line.data() + begin, line.data() + end, value);
  return value;
}

std::string quoted_name(std::string_view line) {
  const size_t begin = line.find('\'');
  const size_t end = line.find('\'', begin + 1);
  if (begin == std::string_view::npos || end == std::string_view::npos) return {};
  return std::string(line.substr(begin + 1, end - begin - 1));
}

bool is_performance_warning(std::string_view line) {
  for (const std::string_view code :
       {"C7508", "C7510", "C7511", "C7512", "C7513", "C7514", "C7515"}) {
    if (line.find(code) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

std::vector<KernelResources> parse_ptxas_log(std::string_view log) {
  std::vector<KernelResources> kernels;
  for_each_line(log, [&](std::string_view line) {
    if (line.find("Compiling entry function") != std::string_view::npos) {
      kernels.push_back({.entry = quoted_name(line)});
    } else if (!kernels.empty() && line.find("bytes stack frame") != std::string_view::npos) {
      kernels.back().stack_bytes = number_before(line, " bytes stack frame");
      kernels.back().spill_bytes =
          number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
    } else if (!kernels.empty() && line.find(" registers") != std::string_view::npos) {
      kernels.back().registers = number_before(line, " registers");
      kernels.back().static_shared_bytes = number_before(line, " bytes smem");
    }
  });
  return kernels;
}

std::vector<std::string> performance_warnings(std::string_view log) {
  std::vector<std::string> warnings;
  for_each_line(log, [&](std::string_view line) {
    if (is_performance_warning(line)) warnings.emplace_back(line);
  });
  return warnings;
}

}  // namespace tilewright::cuda
