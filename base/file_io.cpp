#include "base/file_io.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "base/signal_blocked.hpp"
#include "base/temporary_files.hpp"

namespace tilewright {
namespace {

std::string_view type_name(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISLNK(mode)) return "a symbolic link";
  return "no regular file";
}

[[noreturn]] void refuse_type(ErrorCode code, const std::filesystem::path& path, mode_t mode,
                              std::string hint) {
  throw Error(code, fmt::format("\"{}\" is {}, not a regular file", path.native(), type_name(mode)),
              std::move(hint));
}

// For a file that is not there: a name in the same folder that was perhaps meant.
std::string neighbour_hint(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const FileDescriptor open_folder(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::vector<std::string> names;
  if (!open_folder) {
    return fmt::format("there is no folder \"{}\"", folder.native());
  }
  if (list_folder(open_folder.get(), names) || names.size() > 10'000) return {};
  return did_you_mean(path.filename().native(), names);
}

void require_no_nul(ErrorCode code, const std::filesystem::path& path) {
  if (path.native().find('\0') != std::string::npos) {
    throw Error(code, fmt::format("the path \"{}\" has a NUL byte in it", path.c_str()));
  }
}

std::string unique_temporary_name(const std::string& name) {
  static std::atomic<std::uint64_t> counter{0};
  constexpr std::size_t kKeptOfName = 100;  // NAME_MAX is 255
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return fmt::format("{}{}-{:x}-{:x}-{:x}", kTemporaryPrefix, name.substr(0, kKeptOfName),
                     ::getpid(), now, counter++);
}

std::error_code write_all(const FileDescriptor& file, std::span<const std::byte> bytes) {
  const SignalBlocked no_size_signal(SIGXFSZ);  // of a file size limit, which is EFBIG then
  const SignalBlocked no_pipe_signal(SIGPIPE);  // of a reader that went away: EPIPE
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return last_system_error();
    if (written == 0) return std::make_error_code(std::errc::no_space_on_device);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

std::error_code sync(int file) {
  while (::fsync(file) != 0) {
    if (errno == EINTR) continue;
    // File systems that cannot sync a folder say so; they have nothing to lose either.
    if (errno == EINVAL || errno == ENOTSUP) return {};
    return last_system_error();
  }
  return {};
}

std::error_code fill(FileDescriptor& file, std::span<const std::byte> bytes) {
  std::error_code error = write_all(file, bytes);
  if (!error) error = sync(file.get());
  return error;
}

std::error_code create_and_fill(int folder, const std::string& name,
                                std::span<const std::byte> bytes, mode_t mode) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  FileDescriptor file(::openat(folder, name.c_str(), kFlags, mode));
  if (!file) return last_system_error();
  const std::error_code error = fill(file, bytes);
  const std::error_code close_error = file.close();
  return error ? error : close_error;
}

// The whole file without a name, which goes with the process; closed where the file system, or a
// machine without /proc, has none.
FileDescriptor nameless_file(int folder, mode_t mode) {
  FileDescriptor file(::openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
  if (file && ::access("/proc/self/fd", X_OK) != 0) static_cast<void>(file.close());
  return file;
}

std::error_code give_name(const FileDescriptor& file, int folder, const std::string& name) {
  const std::string path = fmt::format("/proc/self/fd/{}", file.get());
  const int result = ::linkat(AT_FDCWD, path.c_str(), folder, name.c_str(), AT_SYMLINK_FOLLOW);
  return result == 0 ? std::error_code() : last_system_error();
}

// Puts the finished file at `temporary`, which the caller renames and which a signal removes.
std::error_code finish_temporary(int folder, const std::string& temporary,
                                 std::span<const std::byte> bytes, mode_t mode) {
  FileDescriptor file = nameless_file(folder, mode);
  if (!file) return create_and_fill(folder, temporary, bytes, mode);
  if (const std::error_code error = fill(file, bytes)) return error;
  if (give_name(file, folder, temporary)) return create_and_fill(folder, temporary, bytes, mode);
  return file.close();
}

// What /dev/stdout and its like stand for: an open file of this process.
std::optional<int> own_descriptor(const std::filesystem::path& path) {
  std::filesystem::path at = path;
  std::error_code error;
  for (int links = 0; links < 8; ++links) {
    const std::string text = at.lexically_normal().native();
    for (const std::string& folder : {std::string("/proc/self/fd/"), std::string("/dev/fd/"),
                                      fmt::format("/proc/{}/fd/", ::getpid())}) {
      if (!text.starts_with(folder)) continue;
      int number = -1;
      const char* const end = text.data() + text.size();
      const auto [stop, failure] = std::from_chars(text.data() + folder.size(), end, number);
      if (failure == std::errc() && stop == end && number >= 0) return number;
    }
    const std::filesystem::path to = std::filesystem::read_symlink(at, error);
    if (error) return std::nullopt;
    at = to.is_absolute() ? to : at.parent_path() / to;
  }
  return std::nullopt;
}

// A device, a pipe, or an open file of this process: what takes bytes as they come. Nothing for a
// file's name.
FileDescriptor opened_stream(const std::filesystem::path& path) {
  if (const std::optional<int> number = own_descriptor(path)) {
    return FileDescriptor(::fcntl(*number, F_DUPFD_CLOEXEC, 3));
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  if (!S_ISCHR(status.st_mode) && !S_ISFIFO(status.st_mode)) return {};
  return FileDescriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
}

// Where a write to `path` has to go: a link's target, so that the link survives.
std::filesystem::path resolved_target(const std::filesystem::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return path;
  const bool is_link = S_ISLNK(status.st_mode);
  if (is_link && ::stat(path.c_str(), &status) != 0) {
    throw Error(ErrorCode::disk, fmt::format("\"{}\" is a symbolic link to nothing", path.native()),
                "remove the link, or create what it points to");
  }
  if (!S_ISREG(status.st_mode)) {
    refuse_type(ErrorCode::disk, path, status.st_mode,
                "give a file's name, a pipe, or a device such as /dev/null");
  }
  return is_link ? std::filesystem::canonical(path) : path;
}

}  // namespace

bool is_stream(const std::filesystem::path& path) {
  if (own_descriptor(path)) return true;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  return S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode);
}

std::vector<std::byte> read_file(const std::filesystem::path& path, const ReadOptions& options) {
  require_no_nul(ErrorCode::file, path);
  const auto fail = [&](const std::string& why, std::string hint = {}) {
    throw Error(ErrorCode::file, fmt::format("cannot read \"{}\": {}", path.native(), why),
                std::move(hint));
  };
  const OpenedFile opened = open_for_reading(AT_FDCWD, path.native(), options.follow_symlinks);
  if (opened.error == std::errc::no_such_file_or_directory) {
    fail(opened.error.message(), neighbour_hint(path));
  }
  if (opened.error == std::errc::too_many_symbolic_link_levels && !options.follow_symlinks) {
    fail("it is a symbolic link");
  }
  if (opened.error) fail(opened.error.message());
  if (!S_ISREG(opened.status.st_mode)) {
    refuse_type(ErrorCode::file, path, opened.status.st_mode, "give the name of a file");
  }
  const auto size = static_cast<std::uint64_t>(opened.status.st_size);
  if (size > options.max_bytes) {
    fail(fmt::format("it has {} bytes, and at most {} are allowed", size, options.max_bytes));
  }
  std::vector<std::byte> bytes;
  const std::error_code error = read_whole(opened.file, size, bytes);
  if (error == std::errc::device_or_resource_busy) fail("it changed while it was read");
  if (error) fail(error.message());
  return bytes;
}

std::string read_text_file(const std::filesystem::path& path, const ReadOptions& options) {
  const std::vector<std::byte> bytes = read_file(path, options);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

namespace {

bool is_refusal(const std::error_code& error) {
  return error == std::errc::permission_denied || error == std::errc::operation_not_permitted ||
         error == std::errc::read_only_file_system;
}

}  // namespace

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes, mode_t mode) {
  require_no_nul(ErrorCode::disk, path);
  const auto fail = [&](const std::error_code& error, std::string hint = {}) {
    if (hint.empty() && is_refusal(error)) hint = kWritableFolderHint;
    throw Error(ErrorCode::disk,
                fmt::format("cannot write \"{}\": {}", path.native(), error.message()),
                std::move(hint));
  };
  if (path.empty()) fail(std::make_error_code(std::errc::no_such_file_or_directory));
  if (!path.has_filename()) fail(std::make_error_code(std::errc::is_a_directory));
  if (is_stream(path)) {
    const FileDescriptor stream = opened_stream(path);
    const std::error_code error = stream ? write_all(stream, bytes) : last_system_error();
    if (error) fail(error);
    return;
  }
  const std::filesystem::path target = resolved_target(path);
  const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
  const FileDescriptor open_folder(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!open_folder) {
    const std::error_code error = last_system_error();
    fail(error, error == std::errc::no_such_file_or_directory
                    ? fmt::format("create the folder \"{}\" first", folder.native())
                    : std::string());
  }
  if (const auto error = publish_file(open_folder.get(), target.filename().native(), bytes, mode)) {
    fail(error);
  }
}

void write_text_file(const std::filesystem::path& path, std::string_view text, mode_t mode) {
  write_file(path, std::as_bytes(std::span(text.data(), text.size())), mode);
}

std::error_code FileDescriptor::close() {
  const int number = std::exchange(number_, -1);
  // After EINTR Linux has closed the file; closing again could hit another thread's new one.
  if (number < 0 || ::close(number) == 0 || errno == EINTR) return {};
  return last_system_error();
}

std::error_code last_system_error() {
  return {errno, std::generic_category()};
}

OpenedFile open_for_reading(int folder, const std::string& name, bool follow_symlinks) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follow_symlinks ? 0 : O_NOFOLLOW);
  OpenedFile opened;
  opened.file = FileDescriptor(::openat(folder, name.c_str(), flags));
  if (!opened.file) {
    opened.error = last_system_error();
  } else if (::fstat(opened.file.get(), &opened.status) != 0) {
    opened.error = last_system_error();
    static_cast<void>(opened.file.close());
  }
  return opened;
}

std::error_code read_whole(const FileDescriptor& file, std::size_t size,
                           std::vector<std::byte>& bytes) {
  bytes.resize(size + 1);  // one more, to notice a file that grows
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        ::pread(file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return last_system_error();
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  if (done != size) return std::make_error_code(std::errc::device_or_resource_busy);
  bytes.resize(size);
  return {};
}

std::error_code publish_file(int folder, const std::string& name, std::span<const std::byte> bytes,
                             mode_t mode) {
  const std::string temporary = unique_temporary_name(name);
  const TemporaryFile known(folder, temporary);
  std::error_code error = finish_temporary(folder, temporary, bytes, mode);
  if (!error && ::renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) {
    error = last_system_error();
  }
  if (error) {
    if (error != std::errc::file_exists) ::unlinkat(folder, temporary.c_str(), 0);
    return error;
  }
  return sync(folder);
}

std::error_code list_folder(int folder, std::vector<std::string>& names) {
  // A second open: fdopendir() takes its descriptor over, and a duplicate would share the position.
  const int again = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return last_system_error();
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(again), ::closedir);
  if (!stream) {
    const std::error_code error = last_system_error();
    ::close(again);
    return error;
  }
  names.clear();
  for (;;) {
    errno = 0;
    const dirent* item = ::readdir(stream.get());
    if (item == nullptr) break;
    const std::string_view name = item->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return last_system_error();
  std::sort(names.begin(), names.end());
  return {};
}

}  // namespace tilewright
