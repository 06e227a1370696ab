#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace tilewright {

/// The system's C++ compiler, which makes shared objects out of kernel sources.
class HostCompiler {
 public:
  struct Result {
    bool succeeded = false;         ///< false: the source is wrong, and the log says where
    std::vector<std::byte> binary;  ///< the shared object; empty where it did not succeed
    std::string log;                ///< messages; positions read "kernel.cpp:12:5"
    double milliseconds = 0;
  };

  /// Looks for TILEWRIGHT_CXX, else CXX, else `c++`, in PATH. A value may hold several words, as in
  /// "ccache g++" or "g++ -B/opt/bin"; no shell reads it. Flags come from a list of allowed ones.
  /// Starts nothing, so it costs microseconds.
  /// @throws Error with code compiler where there is none, usage for a flag that is not allowed
  static HostCompiler find();
  /// The same for a given command.
  static HostCompiler find(const std::string& command);

  /// One that find() found in another process, by its words() and version().
  static HostCompiler from_words(std::vector<std::string> words, std::string version);

  /// What compile() adds to every command, as text.
  static std::string own_options();

  /// Options for compile(): the process ends where the kernel does what C++ leaves undefined.
  /// GCC's and clang's; needs no library.
  static std::vector<std::string> trap_on_undefined();

  /// As given: "ccache g++".
  const std::string& command() const { return command_; }
  /// The command as it is started; the first word is an absolute path.
  const std::vector<std::string>& words() const { return words_; }
  /// The file of the first word, links resolved.
  const std::filesystem::path& path() const { return path_; }

  /// Changes whenever the same source and options could give other bytes: the command, path, size
  /// and time of each program in it, the options that compile() adds, and this machine's CPU, as
  /// `-march=native` depends on it. A wrapper script is known by its own file alone.
  const std::string& identity() const { return identity_; }

  /// The first line of `--version`. Runs the compiler once per process.
  /// @throws Error with code compiler where it cannot be run
  std::string version() const;

  /// Compiles one translation unit into a shared object. Equal source, options and identity give
  /// equal bytes. `-fsanitize=...` among the options instruments the code, but no sanitizer's
  /// library is linked. Nothing of the C++ library or the start-up files is linked either, only
  /// libm, libgcc and libc. The time limit is that of compile_limits().
  /// @throws Error with code compiler where the compiler hangs, crashes, or fails without naming a
  ///         place in the source; with code disk where no temporary file can be written
  Result compile(const std::string& source, const std::vector<std::string>& options) const;

 private:
  HostCompiler() = default;
  // The command lines of one compile: one, or where sanitizers must not be linked, two.
  std::vector<std::vector<std::string>> steps(const std::filesystem::path& directory,
                                              const std::vector<std::string>& options) const;

  std::string command_;
  std::vector<std::string> words_;  // the first one is an absolute path
  std::filesystem::path path_;
  std::string identity_;
  std::string version_;  // where it is known from another process
};

}  // namespace tilewright
