#include "cli/traps.hpp"

#include <string>
#include <string_view>

#include <signal.h>
#include <unistd.h>

#include "base/error.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"

namespace tilewright::cli {
namespace {

// Rendered beforehand, because a signal handler may neither allocate nor format. Never destroyed:
// the signal may come while the process ends.
struct Report {
  std::string text;
  std::string json;
};
const Report* prepared = nullptr;

void write_once(int descriptor, const std::string& text) {
  [[maybe_unused]] const ssize_t written = ::write(descriptor, text.data(), text.size());
}

void on_trap(int) {
  write_once(STDERR_FILENO, prepared->text);
  write_once(STDOUT_FILENO, prepared->json);
  ::_exit(kWrongInput);
}

}  // namespace

void report_divisions_by_zero(bool json) {
  const Error error(ErrorCode::snippet, "a snippet divided an integer by zero",
                    "`tilewright check` with the same arguments names the place; guard it with a "
                    "condition, for example x == 0 ? 0 : y / x");
  prepared = new Report{std::string(error.what()) + '\n',
                        json ? to_json(error).dump(2) + '\n' : std::string()};
  struct sigaction action = {};
  action.sa_handler = on_trap;
  ::sigaction(SIGFPE, &action, nullptr);
}

}  // namespace tilewright::cli
