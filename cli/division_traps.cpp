#include "cli/division_traps.hpp"

#include <string>
#include <string_view>

#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/temporary_files.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"

namespace tilewright::cli {
namespace {

// Rendered beforehand, because a signal handler may neither allocate nor format. Never destroyed:
// the signal may come while the process ends.
struct Report {
  std::string text;
  std::string json;
  ExitStatus status;
};

struct Reports {
  pid_t process;
  Report division;
  Report instruction;
  Report memory;
  Report file;
};
const Reports* prepared = nullptr;

Report rendered(const Error& error, bool json, ExitStatus status) {
  return {std::string(error.what()) + '\n',
          json ? cli::to_json(error).dump(2) + '\n' : std::string(), status};
}

void write_once(int descriptor, const std::string& text) {
  [[maybe_unused]] const ssize_t written = ::write(descriptor, text.data(), text.size());
}

const unsigned char* instruction_at(const void* context) {
#if defined(__x86_64__)
  const auto* machine = static_cast<const ucontext_t*>(context);
  return reinterpret_cast<const unsigned char*>(machine->uc_mcontext.gregs[REG_RIP]);
#else
  static_cast<void>(context);
  return nullptr;
#endif
}

// Kernels are loaded from anonymous memory, or from a private file
// (runtime/compile/shared_object.cpp). dladdr() takes the loader's lock, which the thread of a
// kernel does not hold.
bool is_in_kernel(const void* address) {
  Dl_info info{};
  if (!address || ::dladdr(address, &info) == 0 || !info.dli_fname) return false;
  const std::string_view file = info.dli_fname;
  return file.starts_with("/proc/self/fd/") || file.ends_with("/kernel.so");
}

// What compilers write where a division is by zero: ud2 of both, ud1 of clang.
bool is_deliberate(const unsigned char* instruction) {
  const bool has_size = instruction[0] == 0x67;  // clang's ud1 addresses memory by 32 bits
  const unsigned char* const code = instruction + (has_size ? 1 : 0);
  return code[0] == 0x0f && (code[1] == 0x0b || code[1] == 0xb9);
}

const Report& report_of(int signal, const unsigned char* instruction) {
  if (signal == SIGBUS) return prepared->file;
  if (signal == SIGSEGV) return prepared->memory;
  if (signal == SIGILL && !is_deliberate(instruction)) return prepared->instruction;
  return prepared->division;
}

void on_trap(int signal, siginfo_t*, void* context) {
  const unsigned char* const instruction = instruction_at(context);
  if (::getpid() != prepared->process || !is_in_kernel(instruction)) {
    ::signal(signal, SIG_DFL);  // the instruction is tried again, and raises it again
    return;
  }
  const Report& report = report_of(signal, instruction);
  write_once(STDERR_FILENO, report.text);
  write_once(STDOUT_FILENO, report.json);
  ::_exit(report.status);
}

void on_end(int signal) {
  remove_temporary_files();
  ::signal(signal, SIG_DFL);
  ::raise(signal);  // takes effect when this handler returns
}

}  // namespace

void report_traps(bool json) {
  const Error division(ErrorCode::snippet, "a snippet divided an integer by zero",
                       "`tilewright check` with the same arguments names the place; guard it with "
                       "a condition, for example x == 0 ? 0 : y / x (the least int divided by -1 "
                       "ends the same way)");
  const Error instruction(ErrorCode::device,
                          "a kernel has an instruction that this processor lacks",
                          "clear what was built for another machine: `tilewright cache clear`, or "
                          "name a bundle for this one in TILEWRIGHT_BUNDLES");
  const Error memory(ErrorCode::internal, "a kernel read or wrote memory that is not its own",
                     "`tilewright check` with the same arguments looks for indices outside their "
                     "buffers; otherwise please report the command and its input");
  const Error file(ErrorCode::file, "a file became shorter while a kernel read it",
                   "try again once the file is complete");
  prepared =
      new Reports{::getpid(), rendered(division, json, kWrongInput),
                  rendered(instruction, json, kMachineRefuses),
                  rendered(memory, json, kMachineRefuses), rendered(file, json, kWrongInput)};
  struct sigaction action = {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO;
  for (const int signal : {SIGFPE, SIGILL, SIGSEGV, SIGBUS}) ::sigaction(signal, &action, nullptr);
}

void clean_up_at_signals() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction before = {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // nohup
    struct sigaction action = {};
    action.sa_handler = on_end;
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace tilewright::cli
