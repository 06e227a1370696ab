#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "cli/arguments.hpp"
#include "cli/colour.hpp"
#include "cli/command_line_words.hpp"
#include "cli/division_traps.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "cli/verb_words.hpp"
#include "generator/messages/compiler_messages.hpp"
#include "runtime/compile/worker_service.hpp"

namespace tilewright::cli {
namespace {

std::vector<std::unique_ptr<Verb>> all_verbs() {
  std::vector<std::unique_ptr<Verb>> verbs;
  verbs.push_back(make_run_verb());
  verbs.push_back(make_check_verb());
  verbs.push_back(make_render_verb());
  verbs.push_back(make_explain_verb());
  verbs.push_back(make_compile_verb());
  verbs.push_back(make_precompile_verb());
  verbs.push_back(make_mask_verb());
  verbs.push_back(make_bench_verb());
  verbs.push_back(make_tune_verb());
  verbs.push_back(make_fuzz_verb());
  verbs.push_back(make_cache_verb());
  verbs.push_back(make_doctor_verb());
  verbs.push_back(make_completions_verb(all_verbs));
  verbs.push_back(make_manual_verb(all_verbs));
  return verbs;
}

ExitStatus status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
    case ErrorCode::spec:
    case ErrorCode::snippet:
    case ErrorCode::kernel_template:
    case ErrorCode::tensor:
    case ErrorCode::block_mask:
    case ErrorCode::file:
      return kWrongInput;
    case ErrorCode::device:
    case ErrorCode::compiler:
    case ErrorCode::missing_kernel:
    case ErrorCode::memory:
    case ErrorCode::disk:
    case ErrorCode::internal:
      return kMachineRefuses;
  }
  return kMachineRefuses;
}

// An error that shows its place in a snippet, without the compiler's log.
Error without_log(const Error& error) {
  std::vector<std::string> notes = error.notes();
  const std::size_t removed = std::erase_if(notes, is_compiler_log);
  if (removed > 0) notes.emplace_back("--verbose shows the compiler's log");
  return Error({.code = error.code(),
                .message = error.message(),
                .place = error.place(),
                .notes = std::move(notes),
                .hint = error.hint()});
}

ExitStatus report(const Error& error, bool json, bool verbose = true) {
  const bool is_short = !verbose && error.code() == ErrorCode::snippet && error.place();
  const std::string text = is_short ? without_log(error).what() : error.what();
  std::fputs(((stderr_has_colours() ? in_colours(text) : text) + '\n').c_str(), stderr);
  try {
    if (json) print_json(cli::to_json(error));
  } catch (const Error&) {
    // Standard output is full or closed: stderr has said it all.
  }
  return status_of(error.code());
}

ExitStatus run(const std::vector<std::string>& words) {
  try {
    const std::vector<std::unique_ptr<Verb>> verbs = all_verbs();
    Verb* verb = parse_command_line(words, verbs);
    if (!verb) return kDone;
    report_traps(asks_for_json(words));
    // doctor lists them itself.
    if (verb->name() != "doctor") report_unknown_variables(diagnostics_to_stderr());
    return verb->execute();
  } catch (const Error& error) {
    return report(in_command_line_words(error), asks_for_json(words), asks_for_the_log(words));
  } catch (const std::bad_alloc&) {
    return report(Error(ErrorCode::memory, "out of memory",
                        "use smaller shapes, or a machine with more memory"),
                  asks_for_json(words));
  } catch (const std::exception& error) {
    return report(Error(ErrorCode::internal, error.what(),
                        "this is a defect of tilewright; please report the command and its input"),
                  asks_for_json(words));
  }
}

}  // namespace
}  // namespace tilewright::cli

namespace {

// Where a standard stream is closed, the next file that is opened would take its number, and words
// would be written into it.
void open_standard_streams() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = ::open("/dev/null", O_RDWR);
  if (descriptor > STDERR_FILENO) ::close(descriptor);
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  // `tilewright ... | head` ends the reader first; writing then fails with EPIPE, which is handled.
  std::signal(SIGPIPE, SIG_IGN);
  tilewright::cli::clean_up_at_signals();
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  // Hidden: the library starts this program so, with a socket as its stdin.
  if (words == std::vector<std::string>{tilewright::kWorkerVerb}) {
    return tilewright::serve_compiles();
  }
  return tilewright::cli::run(words);
}
