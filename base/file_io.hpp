#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace tilewright {

// Whole files, for every room: each function either does all of its work or throws.

struct ReadOptions {
  std::uint64_t max_bytes = std::uint64_t{1} << 30;  ///< a longer file is refused before it is read
  bool follow_symlinks = true;                       ///< false: a symbolic link is refused
};

/// The contents of a regular file. A directory, FIFO or device is refused, never waited for.
/// Throws Error (file) where it is missing, unreadable, too long, or changes while it is read.
std::vector<std::byte> read_file(const std::filesystem::path& path,
                                 const ReadOptions& options = {});

/// read_file() as text; the bytes are taken as they are.
std::string read_text_file(const std::filesystem::path& path, const ReadOptions& options = {});

/// Writes a file so that others see the old contents or all of the new ones, also after a crash: a
/// temporary file in the same folder, synced, renamed over `path`, the folder synced. Where the
/// file system allows it, the temporary file has no name until it is complete, so that a process
/// that is killed leaves no half of a file, and a whole one only if it is killed between its two
/// names; elsewhere remove_temporary_files() removes it. A symbolic link is
/// followed. `mode` is what open(2) takes, so the umask applies.
/// A stream takes the bytes as they are, and nothing is renamed. A FIFO waits for its reader.
/// Throws Error (disk), and then leaves neither a partial file nor the temporary one. A directory,
/// a socket and a block device are refused.
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes,
                mode_t mode = 0666);

/// The hint of errors about a folder without write permission.
inline constexpr std::string_view kWritableFolderHint = "choose a folder that you may write to";

/// Whether write_file() writes to `path` as it is: a character device (/dev/null), a FIFO, or an
/// open file of this process (/dev/stdout, /dev/fd/N, /proc/self/fd/N).
bool is_stream(const std::filesystem::path& path);

/// write_file() for text.
void write_text_file(const std::filesystem::path& path, std::string_view text, mode_t mode = 0666);

// The steps that they take, for callers that must look at errno. They do not throw, except
// bad_alloc.

/// An open file, closed at the end of its scope.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() { static_cast<void>(close()); }

  explicit operator bool() const { return number_ >= 0; }
  int get() const { return number_; }

  /// Closes now and says what close(2) said: NFS reports a full disk only here.
  std::error_code close();

 private:
  int number_ = -1;
};

/// errno as an error code.
std::error_code last_system_error();

struct OpenedFile {
  FileDescriptor file;
  struct stat status {};  ///< of the open file, so that what is checked is what is read
  std::error_code error;  ///< where it is set, `file` is closed
};

/// Opens `name` below the open folder `folder` (or AT_FDCWD) for reading. Never blocks, not on a
/// FIFO either; the caller checks the type in `status`.
OpenedFile open_for_reading(int folder, const std::string& name, bool follow_symlinks);

/// Reads an open file of `size` bytes from its start. errc::device_or_resource_busy where there are
/// more or fewer bytes: another process is writing it.
std::error_code read_whole(const FileDescriptor& file, std::size_t size,
                           std::vector<std::byte>& bytes);

/// Publishes `bytes` as `name` in the open folder, as write_file() does, without its checks.
/// The temporary file is called kTemporaryPrefix + name + something unique.
std::error_code publish_file(int folder, const std::string& name, std::span<const std::byte> bytes,
                             mode_t mode);

/// How the names of publish_file()'s temporary files begin.
inline constexpr std::string_view kTemporaryPrefix = ".tmp-";

/// The names in an open folder, sorted, without "." and "..".
std::error_code list_folder(int folder, std::vector<std::string>& names);

}  // namespace tilewright
