#include "tests/mutants/trial_report.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright::mutants {
namespace {

constexpr std::string_view kReport = "trial:\t";

}  // namespace

std::string report_of(const Trial& trial) {
  std::string detail = trial.detail.substr(0, 300);
  std::replace(detail.begin(), detail.end(), '\n', ' ');
  return fmt::format("\n{}{}\t{}\t{}\n", kReport, to_string(trial.fate), trial.calls, detail);
}

Trial read_trial(const std::string& output) {
  const std::size_t begin = output.rfind(kReport);
  if (begin == std::string::npos) throw Error(ErrorCode::internal, "a child said " + output);
  const std::string line = output.substr(begin + kReport.size());
  const std::size_t first = line.find('\t');
  const std::size_t second = line.find('\t', first + 1);
  if (second == std::string::npos) throw Error(ErrorCode::internal, "a child said " + line);
  return {fate_from_string(line.substr(0, first)),
          std::atoi(line.substr(first + 1, second - first - 1).c_str()),
          line.substr(second + 1, line.find('\n', second) - second - 1)};
}

}  // namespace tilewright::mutants
