#include "runtime/compile/host_compiler.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "runtime/compile/compile_limits.hpp"
#include "runtime/compile/cpu_identity.hpp"
#include "runtime/compile/process.hpp"
#include "runtime/compile/temporary_directory.hpp"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInstallHint = "apt-get install g++, or set TILEWRIGHT_CXX to a C++ compiler";

// Relative names, in a separate directory: messages and debug information hold no path, and the
// same source gives the same bytes.
constexpr const char* kSourceName = "kernel.cpp";
constexpr const char* kObjectName = "kernel.o";
constexpr const char* kBinaryName = "kernel.so";

// Without exceptions no call needs the C++ library's unwinder, which is not linked.
constexpr std::array kCompileOptions = {
    "-std=c++20",      "-fno-exceptions",      "-fPIC", "-fdiagnostics-color=never",
    "-fmax-errors=20", "-frandom-seed=kernel",
};

// A snippet with a path that returns nothing would be undefined behaviour in the kernel. An
// interpretation that is instrumented finds such a path when it is taken. -w would silence this
// error too; GCC has no other word for all warnings, of which a kernel gets hardly any.
constexpr const char* kRefuseMissingReturn = "-Werror=return-type";
constexpr const char* kNoWarningsOfClang = "-Wno-everything";

// GCC makes variables of inline functions unique in the process, even across objects loaded with
// RTLD_LOCAL: two kernels would share what only has the same name. Clang does not know the option.
constexpr const char* kNoUniqueSymbols = "-fno-gnu-unique";

// Leaving out start-up files and the C++ library saves 10 of 35 ms for a small kernel. It also
// leaves out crtfastmath.o, which would change the floating-point modes of the process that loads
// the kernel.
constexpr std::array kLinkOptions = {
    "-shared", "-nostartfiles", "-nodefaultlibs", "-Wl,-Bsymbolic", "-Wl,--build-id=none",
};

// What nothing defines is found when the kernel is made, not when a process loads it. The process
// brings the libraries of sanitizers.
constexpr const char* kRefuseUndefined = "-Wl,-z,defs";
constexpr std::array kLibraries = {"-lm", "-lgcc", "-lc"};

// Not among the ingredients of the key, so they must not change what the compiler does.
constexpr std::array kRemovedVariables = {
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "DEPENDENCIES_OUTPUT",
    "SUNPRO_DEPENDENCIES",
    "LANGUAGE",
    "GCC_COLORS",
    "LD_PRELOAD",
};

struct Choice {
  std::string command;
  std::string origin;  // for messages
};

Choice chosen_command() {
  for (const char* variable : {"TILEWRIGHT_CXX", "CXX"}) {
    const char* value = std::getenv(variable);
    if (value && std::string_view(value).find_first_not_of(" \t") != std::string_view::npos) {
      return {value, fmt::format(" (from {})", variable)};
    }
  }
  return {"c++", ""};
}

std::vector<std::string> split_words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// Flags that choose where a compiler lies and what it compiles for. Others could load plugins, run
// programs, include or write files (-fplugin, -wrapper, -specs, -include, -o, @file).
constexpr std::array<std::string_view, 11> kAllowedFlags = {
    "-B",       "-O",    "-g",       "-m",         "-pipe",
    "-pthread", "-std=", "-stdlib=", "--sysroot=", "--gcc-toolchain=",
    "--target="};

void require_allowed(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const bool is_flag = word.starts_with('-') || word.starts_with('@');
    const bool is_allowed =
        std::any_of(kAllowedFlags.begin(), kAllowedFlags.end(),
                    [&](std::string_view flag) { return word.starts_with(flag); });
    if (!is_flag || is_allowed) continue;
    throw Error(ErrorCode::usage,
                fmt::format("the C++ compiler's flag \"{}\" is not one that is passed on", word),
                fmt::format("allowed are those that start with {}; set TILEWRIGHT_CXX to the "
                            "compiler alone",
                            fmt::join(kAllowedFlags, ", ")));
  }
}

bool is_program(const fs::path& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

// Every program of that name, the one that would be started first.
std::vector<fs::path> programs_named(const std::string& name) {
  std::error_code ignored;
  if (name.find('/') != std::string::npos) {
    const fs::path path = fs::absolute(name, ignored);
    return is_program(path) ? std::vector{path} : std::vector<fs::path>();
  }
  const char* value = std::getenv("PATH");
  std::istringstream directories(value ? value : "/usr/local/bin:/usr/bin:/bin");
  std::vector<fs::path> found;
  for (std::string directory; std::getline(directories, directory, ':');) {
    const fs::path path =
        fs::absolute(fs::path(directory.empty() ? "." : directory) / name, ignored);
    if (is_program(path)) found.push_back(path);
  }
  return found;
}

std::string describe_program(const fs::path& path) {
  std::error_code ignored;
  struct stat status = {};
  stat(path.c_str(), &status);
  return fmt::format("{} size {} time {}.{:09}\n", fs::canonical(path, ignored).string(),
                     status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

// A compiler may be started by another program of its name (/usr/lib/ccache/g++), so all of a
// name are listed: a change of any of them then is a change of the compiler.
std::string describe_programs(const std::vector<std::string>& words) {
  std::string text;
  std::set<std::string> listed;
  for (const std::string& word : words) {
    if (word.starts_with('-')) continue;
    for (const fs::path& path : programs_named(word)) {
      std::string description = describe_program(path);
      if (listed.insert(description).second) text += description;
    }
  }
  return text;
}

std::string make_identity(const std::vector<std::string>& words) {
  return fmt::format("command {}\n{}options {}\ncpu {}\n", fmt::join(words, " "),
                     describe_programs(words), HostCompiler::own_options(), cpu_identity());
}

ProcessOptions process_options(const fs::path& directory) {
  ProcessOptions options{.directory = directory, .timeout = compile_limits().wall};
  for (const char* name : kRemovedVariables) options.environment.emplace_back(name, std::nullopt);
  options.environment.emplace_back("LC_ALL", "C");
  // What a killed compiler leaves goes away with the directory.
  if (!directory.empty()) options.environment.emplace_back("TMPDIR", directory.string());
  return options;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "undefined symbol" is lld's.
bool names_an_undefined_function(const std::string& log) {
  return contains(log, "undefined reference to ") || contains(log, "undefined symbol: ");
}

bool names_a_place_in_the_source(const std::string& log) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    // The assembler says "Error", the compiler "error" and "fatal error".
    if (line.starts_with(std::string(kSourceName) + ':') && contains(line, "rror: ")) return true;
  }
  return false;
}

[[noreturn]] void fail_for_the_machine(const std::string& command, const ProcessResult& process) {
  Error::Details details{
      .code = ErrorCode::compiler,
      .message = fmt::format("the compiler \"{}\" failed: {}", command, process.describe_end()),
      .hint = "see the log above; try another compiler with TILEWRIGHT_CXX"};
  if (!process.errors.empty()) details.notes.push_back(process.errors.substr(0, 4000));
  const CompileLimits limits = compile_limits();
  bool is_limit = true;
  if (process.timed_out) {
    details.message =
        fmt::format("the compiler \"{}\" took more than {} s", command, limits.wall.count());
    details.hint = advice_for_time(limits);
  } else if (process.signal == SIGXCPU || contains(process.errors, "CPU time limit exceeded")) {
    details.message = fmt::format("the compiler \"{}\" used more than {} s of processor time",
                                  command, limits.cpu.count());
    details.hint = advice_for_time(limits);
  } else if (contains(process.errors, "out of memory") ||
             contains(process.errors, "virtual memory exhausted") ||
             contains(process.errors, "bad_alloc")) {
    details.message = fmt::format("the compiler \"{}\" ran out of memory", command);
    details.hint = advice_for_memory(limits);
  } else {
    is_limit = false;
  }
  if (is_limit) throw LimitReached(std::move(details));
  if (contains(process.errors, "No space left on device")) {
    details.hint = "free some space in TMPDIR (else /tmp), or set TMPDIR to another directory";
  } else if (contains(process.errors, "Killed signal") || process.signal == SIGKILL) {
    details.hint = "the machine may be out of memory; free some and try again";
  } else if (contains(process.errors, "cc1plus")) {
    details.hint = kInstallHint;
  }
  throw Error(std::move(details));
}

// A failed compile is the source's fault only if the log says where; anything else is the
// machine's.
void require_source_error(const std::string& command, const ProcessResult& process) {
  const bool crashed = contains(process.errors, "internal compiler error") ||
                       contains(process.errors, "No space left on device");
  const bool ended = process.exit_status.has_value() && !process.timed_out;
  const bool is_of_source =
      names_a_place_in_the_source(process.errors) || names_an_undefined_function(process.errors);
  if (!ended || crashed || !is_of_source) {
    fail_for_the_machine(command, process);
  }
}

void write_source(const fs::path& directory, const std::string& source) {
  // Not write_file(): only this process sees the directory, so syncing would only cost time.
  std::ofstream file(directory / kSourceName, std::ios::binary);
  file << source;
  if (!file.flush()) {
    throw Error(ErrorCode::disk,
                fmt::format("cannot write the kernel's source into {}", directory.string()),
                "free some space in TMPDIR (else /tmp), or set TMPDIR to another directory");
  }
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

template <typename Texts>
void append(std::vector<std::string>& words, const Texts& texts) {
  words.insert(words.end(), std::begin(texts), std::end(texts));
}

bool is_sanitizer(const std::string& option) {
  return option.starts_with("-fsanitize");
}

}  // namespace

HostCompiler HostCompiler::find() {
  return find(chosen_command().command);
}

HostCompiler HostCompiler::find(const std::string& command) {
  HostCompiler compiler;
  compiler.command_ = command;
  compiler.words_ = split_words(command);
  require_allowed(compiler.words_);
  const std::vector<fs::path> programs =
      compiler.words_.empty() ? std::vector<fs::path>() : programs_named(compiler.words_[0]);
  if (programs.empty()) {
    const Choice choice = chosen_command();
    throw Error(ErrorCode::compiler,
                fmt::format("no C++ compiler: \"{}\"{} is not a program", command,
                            choice.command == command ? choice.origin : ""),
                kInstallHint);
  }
  compiler.identity_ = make_identity(compiler.words_);
  // Not resolved: ccache and clang++ behave by the name that they are started with.
  compiler.words_[0] = programs[0].string();
  std::error_code ignored;
  compiler.path_ = fs::canonical(programs[0], ignored);
  return compiler;
}

std::vector<std::string> HostCompiler::trap_on_undefined() {
  return {"-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"};
}

std::string HostCompiler::own_options() {
  return fmt::format("{} {} {} {} {} {} {}", fmt::join(kCompileOptions, " "), kNoWarningsOfClang,
                     kNoUniqueSymbols, kRefuseMissingReturn, fmt::join(kLinkOptions, " "),
                     kRefuseUndefined, fmt::join(kLibraries, " "));
}

HostCompiler HostCompiler::from_words(std::vector<std::string> words, std::string version) {
  if (words.empty()) throw Error(ErrorCode::internal, "a compiler without a name");
  HostCompiler compiler;
  compiler.command_ = fmt::format("{}", fmt::join(words, " "));
  compiler.path_ = words[0];
  compiler.words_ = std::move(words);
  compiler.version_ = std::move(version);
  return compiler;
}

std::string HostCompiler::version() const {
  if (!version_.empty()) return version_;
  static std::mutex mutex;
  static auto& known = *new std::map<std::string, std::string>;
  const std::lock_guard lock(mutex);
  const auto found = known.find(identity_);
  if (found != known.end()) return found->second;
  std::vector<std::string> arguments = words_;
  arguments.push_back("--version");
  const TemporaryDirectory directory("version");  // wrappers may write where they run
  const ProcessResult process = run_process(arguments, process_options(directory.path()));
  if (!process.succeeded()) fail_for_the_machine(command_, process);
  return known[identity_] = first_line(process.output);
}

HostCompiler::Result HostCompiler::compile(const std::string& source,
                                           const std::vector<std::string>& options) const {
  const auto start = std::chrono::steady_clock::now();
  const TemporaryDirectory directory("compile");
  const ProcessOptions process = process_options(directory.path());
  write_source(directory.path(), source);

  Result result;
  for (const std::vector<std::string>& arguments : steps(directory.path(), options)) {
    const ProcessResult step = run_process(arguments, process);
    result.log += step.errors;
    result.succeeded = step.succeeded();
    if (!result.succeeded) {
      require_source_error(command_, step);
      break;
    }
  }
  if (result.succeeded && !fs::exists(directory.path() / kBinaryName)) {
    throw Error(ErrorCode::compiler, fmt::format("\"{}\" wrote no output", command_), kInstallHint);
  }
  if (result.succeeded) result.binary = read_file(directory.path() / kBinaryName);
  result.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::vector<std::vector<std::string>> HostCompiler::steps(
    const fs::path& directory, const std::vector<std::string>& options) const {
  std::vector<std::string> compile = words_;
  append(compile, kCompileOptions);
  const bool is_clang = contains(version(), "clang");
  compile.push_back(is_clang ? kNoWarningsOfClang : kNoUniqueSymbols);
  compile.push_back("-ffile-prefix-map=" + directory.string() + "=.");
  append(compile, options);

  if (std::none_of(options.begin(), options.end(), is_sanitizer)) {
    compile.push_back(kRefuseMissingReturn);
    append(compile, kLinkOptions);
    compile.push_back(kRefuseUndefined);
    append(compile, std::array{kSourceName, "-o", kBinaryName});
    append(compile, kLibraries);
    return {compile};
  }
  append(compile, std::array{"-c", kSourceName, "-o", kObjectName});
  std::vector<std::string> link = words_;
  append(link, kLinkOptions);
  append(link, std::array{kObjectName, "-o", kBinaryName});
  append(link, kLibraries);
  return {compile, link};
}

}  // namespace tilewright
