#include "cli/target_note.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "cli/output.hpp"

namespace tilewright::cli {
namespace {

// README.md has the table of GPUs and targets.
std::string gpus_of(int sm) {
  static const std::map<int, std::string> kGpus = {{90, "an H100, H200 or GH200"},
                                                   {100, "a B200 or GB200"},
                                                   {103, "a B300 or GB300"},
                                                   {110, "a Jetson Thor"},
                                                   {120, "a GeForce RTX 50 or RTX PRO Blackwell"},
                                                   {121, "a DGX Spark"}};
  const auto found = kGpus.find(sm);
  return found == kGpus.end() ? fmt::format("a GPU of compute capability {}.{}", sm / 10, sm % 10)
                              : found->second;
}

}  // namespace

std::string target_note(const Target& target) {
  constexpr int kFirstWithOwnTarget = 90;
  if (target.sm() < kFirstWithOwnTarget || target.name().ends_with('a')) return {};
  const std::string asked_for = fmt::format("sm_{}a", target.sm());
  const std::vector<std::string>& names = Target::all_names();
  if (std::find(names.begin(), names.end(), asked_for) == names.end()) return {};
  return fmt::format("{} asks for kernels for {} and finds none that are for {}: compile for {}",
                     gpus_of(target.sm()), asked_for, target.name(), asked_for);
}

std::vector<std::string> say_target_notes(std::span<const Target> targets) {
  std::vector<std::string> notes;
  for (const Target& target : targets) {
    const std::string note = target_note(target);
    if (note.empty()) continue;
    notes.push_back(note);
    diagnostics_to_stderr()(Severity::note, note);
  }
  return notes;
}

}  // namespace tilewright::cli
