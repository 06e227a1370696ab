#include "cli/wrong_variables.hpp"

#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/render/templates.hpp"
#include "runtime/api/device.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/call/resident_items.hpp"
#include "runtime/library/kernel_library.hpp"
#include "runtime/library/tuned_tactic.hpp"

namespace tilewright::cli {

std::vector<WrongVariable> wrong_variables(bool has_gpu) {
  std::vector<WrongVariable> wrong;
  // broken: the calls that read the variable; empty if all do
  const auto try_to_read = [&](const auto& read, std::string_view broken) {
    try {
      static_cast<void>(read());
    } catch (const Error& error) {
      const std::string& message = error.message();
      wrong.push_back({broken.empty() ? message : fmt::format("{}, so {}", message, broken),
                       error.hint(), broken.empty()});
    }
  };
  try_to_read(line_info_is_wanted, "");
  try_to_read(default_template_loader, "");
  try_to_read(ThreadPool::default_size, has_gpu ? "calls on the CPU fail" : "");
  try_to_read(Device::automatic, "calls that name no device fail");
  try_to_read(uses_tuned_tactics, "dense calls of specs without a tactic fail");
  try_to_read(forced_resident,
              "packed calls of sequences with at most 256 columns fail on Hopper GPUs");
  return wrong;
}

}  // namespace tilewright::cli
